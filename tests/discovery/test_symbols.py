# SPDX-License-Identifier: Apache-2.0
"""Dynamic symbols, read from files."""

import random

import pytest
from cuplug._engine.discovery.symbols import NONE, symbol_reader
from places import FIXTURES

NAMES = ("fail", "has_allocator", "stream")
FLAGS = ["-fvisibility=default"]


@pytest.mark.parametrize("style", ["gnu", "sysv", "both"])
def test_hash_tables_of_all_styles(build_plugin, style):
    flags = [*FLAGS, f"-Wl,--hash-style={style}"]
    path = build_plugin(FIXTURES / "tvm_failing.c", "failing", extra=flags)
    found = symbol_reader("__tvm_ffi_", "TVMFFI")(str(path))
    assert sorted(found.defined) == [f"__tvm_ffi_{x}" for x in NAMES]
    assert {"TVMFFIErrorSetRaisedFromCStr", "TVMFFIHasAllocator"} <= set(found.undefined)


def test_no_symbol_with_the_prefix(build_plugin):
    path = build_plugin(FIXTURES / "plain.c", "plain", extra=FLAGS)
    found = symbol_reader("__tvm_ffi_")(str(path))
    assert (found.defined, found.undefined) == ((), ())
    assert any(name.startswith("libc.so") for name in found.needed)


def test_files_that_are_no_shared_objects(tmp_path):
    read = symbol_reader("x")
    assert read(str(tmp_path)) == read(str(tmp_path / "missing")) == NONE
    file = tmp_path / "text.so"
    file.write_text("text")
    assert read(str(file)) == NONE


def test_damaged_files_have_symbols_or_none(build_plugin, tmp_path):
    data = build_plugin(FIXTURES / "tvm_failing.c", "failing", extra=FLAGS).read_bytes()
    numbers = random.Random(7)
    for k in range(300):
        damaged = bytearray(data)
        for _ in range(4):
            damaged[numbers.randrange(min(len(data), 0x1000))] = numbers.randrange(256)
        file = tmp_path / f"{k}.so"
        file.write_bytes(damaged[: numbers.choice([len(data), numbers.randrange(len(data))])])
        names = symbol_reader("__tvm_ffi_")(str(file)).defined
        assert all(name.startswith("__tvm_ffi_") for name in names)
