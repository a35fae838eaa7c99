# SPDX-License-Identifier: Apache-2.0
"""CUPLUG_DTYPE_LIST is the only list of dtypes: a new one is a new line, and docs match it."""

import re
import shutil
import sys
from pathlib import Path

import pytest
from builds import COMPILER, compile_library, run_at
from cuplug._engine.base import flags
from cuplug._engine.base.dtypes import DTYPES
from places import ROOT

HEADER = ROOT / "include/cuplug/abi.h"
ROW = re.compile(r"^  X\((\w+), (\w+), (\d+), (\d+), (\d+), (\d+)\)", re.M)


def rows() -> list[tuple[str, ...]]:
    """Return the lines of the list: name, code, bits, lanes, minor version of the ABI."""
    found = ROW.findall(HEADER.read_text().partition("CUPLUG_DTYPE_LIST(X)")[2])
    assert all(name.upper() == constant for name, constant, *_ in found)
    return [(name, *numbers) for name, _, *numbers in found]


def test_the_package_has_the_list():
    ids = [(int(c) << 24 | int(b) << 16 | int(lanes)) for _, c, b, lanes, _ in rows()]
    assert [(x.name, x.id) for x in DTYPES.values()] == list(
        zip((name for name, *_ in rows()), ids, strict=True)
    )


def test_the_documents_have_the_list():
    table = (ROOT / "docs/abi.md").read_text().partition("### Dtypes")[2].partition("\n### ")[0]
    lines = re.findall(r"^\| `(\w+)` \| (\d+) \| (\d+) \| (\d+) \| 2\.(\d+) \|", table, re.M)
    assert lines == rows()
    names = (ROOT / "docs/signatures.md").read_text().partition("## dtypes")[2]
    first = next(line for line in names.splitlines() if line.startswith("| `bool`"))
    assert re.findall(r"`(\w+)`", first) == list(DTYPES)


def test_abi_2_0_is_fixed():
    """In a plugin compiled for 2.0, `any` means these dtypes; 2.1 adds more."""
    assert [name for name, *_, minor in rows() if minor == "0"] == list(DTYPES)[:23]


NEW = "float8_e3m4"  # of ml_dtypes
C_SOURCE = """
#include <cuplug/plugin.h>
#include <string.h>
CUPLUG_ENTRY int NAME(const cuplug_call *call) {
  const cuplug_tensor *x = call->tensors, *y = call->outputs;
  memcpy(y->data, x->data, (size_t)(cuplug_n_elements(x) * cuplug_element_bytes(x)));
  return CUPLUG_OK;
}
CUPLUG_HOST_OPERATOR(NAME, "NAME(x: T[n]) -> T[n] where T: any", "A copy.");
CUPLUG_HOST_OPERATOR(NAME, "NAME(x: T[n, m]) -> T[n, m] where T: any", "A copy.");
CUPLUG_PLUGIN(NAME, "1.0.0");
"""
CPP_SOURCE = f"""
#include <cuplug/plugin.hpp>
CUPLUG_TYPED_HOST_OPERATOR(in_cpp, "in_cpp(x: T[n]) -> T[n] where T: int8 | {NEW}", "Copy.");
CUPLUG_HOST_ENTRY(in_cpp, (T), x, out) {{
  static_assert(sizeof(T) == 1, "");
  for (int64_t i = 0; i < x.size(); i++) out[i] = x[i];
  return CUPLUG_OK;
}}
CUPLUG_PLUGIN(in_cpp, "1.0.0");
"""
PROGRAM = f"""
import cuplug, ml_dtypes, numpy as np
from cuplug._engine.base.dtypes import DTYPES

assert list(DTYPES)[-1] == "{NEW}"
x = np.arange(4, dtype=np.uint8).view(ml_dtypes.{NEW})
for name in ("rebuilt", "in_cpp"):
    y = getattr(cuplug.load(f"lib{{name}}.so"), name)(x)
    assert y.dtype == x.dtype and y.tobytes() == x.tobytes()
y = cuplug.asarray(x.reshape(2, 2)).T
assert cuplug.asarray(y, copy=True).numpy().tobytes() == bytes([0, 2, 1, 3])
old = cuplug.load("libold.so").old
assert old(x.view(np.int8)).tobytes() == x.tobytes()
for shape in ((4,), (2, 2)):
    try:
        old(x.reshape(shape))
    except TypeError as error:
        print(error)
"""
REFUSED = (
    f"old: x: got {NEW}[{{}}], expected T[n] with T: any dtype of the ABI that the plugin was "
    "compiled for; rebuild the plugin with this version of cuplug"
)


def add_dtype(folder: Path) -> None:
    """Add a dtype to the list of a copy of the sources."""
    header = folder / "include/cuplug/abi.h"
    text = header.read_text()
    last = ROW.findall(text)[-1]
    line = f"  X({', '.join(last)})"
    new = f"{line} \\\n  X({NEW}, {NEW.upper()}, 7, 8, 1, 1)"
    assert text.count(line) == 1
    text = text.replace(line, new).replace("CUPLUG_ABI_MINOR 0", "CUPLUG_ABI_MINOR 1")
    header.write_text(text)


@pytest.mark.slow
def test_a_dtype_is_a_line_of_the_list(tmp_path):
    """A core and plugins with one more dtype need no other edit. Older plugins reject it."""
    for name in ("Makefile", "core", "include", "build_backend"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    add_dtype(tmp_path)
    run_at(["make", "core"], tmp_path)
    shutil.copytree(flags.PACKAGE, tmp_path / "package/cuplug")
    library = "cuplug/lib/libcuplug.so.1"
    shutil.copy(tmp_path / "build/python" / library, tmp_path / "package" / library)
    for name, text, include in (
        ("old", C_SOURCE, flags.get_include()),
        ("rebuilt", C_SOURCE, str(tmp_path / "include")),
        ("in_cpp", CPP_SOURCE, str(tmp_path / "include")),
    ):
        source = tmp_path / f"{name}.{'cpp' if text is CPP_SOURCE else 'c'}"
        source.write_text(text.replace("NAME", name))
        command = [*COMPILER, "-O1", "-shared", "-fPIC", f"-I{include}"]
        output = ["-o", str(tmp_path / f"lib{name}.so"), "-lstdc++"]
        compile_library([*command, str(source), *output])
    seen = run_at([sys.executable, "-c", PROGRAM], tmp_path, PYTHONPATH=str(tmp_path / "package"))
    one, two = seen.splitlines()
    assert one.startswith(REFUSED.format("4"))
    assert two.startswith(REFUSED.format("2, 2"))
