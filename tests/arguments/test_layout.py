# SPDX-License-Identifier: Apache-2.0
"""The layout of the public structures, in each language for authors, and in docs/abi.md."""

import os
import re
import shutil
import subprocess

import pytest
from builds import COMPILER, compile_library
from cuplug._source.compilers.toolkit import find_nvcc
from places import ROOT, TESTS

SOURCE = TESTS / "arguments" / "test_layout.c"
INCLUDE = f"-I{ROOT / 'include'}"
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Werror"]
OPTIONS = [*WARNINGS, "-pedantic", INCLUDE]
STANDARDS = {
    "c": ["c11", "c17", "c2x", "gnu11"],
    "c++": ["c++11", "c++14", "c++17", "c++20"],
}
COMPILERS = [
    (compiler, language, standard)
    for compiler in ("gcc", "clang")
    for language, standards in STANDARDS.items()
    for standard in standards
]


@pytest.mark.parametrize(("compiler", "language", "standard"), COMPILERS)
def test_layout(compiler, language, standard, tmp_path):
    names = {"gcc": COMPILER, "clang": ["clang"]}
    if language == "c++":
        names = {"gcc": [os.environ.get("CXX", "c++")], "clang": ["clang++"]}
    command = names[compiler]
    if not shutil.which(command[0]):
        pytest.skip(f"needs {command[0]}")
    program = tmp_path / "layout"
    flags = [*OPTIONS, "-x", language, f"-std={standard}"]
    compile_library([*command, *flags, str(SOURCE), "-o", str(program)])
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.uninstrumented
@pytest.mark.skipif(not find_nvcc(), reason="needs nvcc")
@pytest.mark.parametrize("standard", ["c++17", "c++20"])
def test_nvcc(standard, tmp_path):
    """Compile only to an object, since a program would need the CUDA runtime."""
    flags = [INCLUDE, f"-std={standard}", "-x", "cu", "-Xcompiler", ",".join(WARNINGS)]
    compile_library([find_nvcc(), *flags, "-c", str(SOURCE), "-o", str(tmp_path / "layout.o")])


def test_a_moved_field_is_seen(tmp_path):
    """The assertions can fail: with one changed number, the file does not compile."""
    text = SOURCE.read_text()
    right = "FIELD(cuplug_options, user, 40, 8);"
    assert text.count(right) == 1
    wrong = tmp_path / "wrong.c"
    wrong.write_text(text.replace(right, "FIELD(cuplug_options, user, 964, 8);"))
    command = [*COMPILER, *OPTIONS, "-fsyntax-only", str(wrong)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    assert "cuplug_options.user moved" in done.stderr


# The structures of docs/abi.md, in its order, and the fields that it names unlike the header.
STRUCTURES = ["cuplug_call", "cuplug_tensor", "cuplug_services", "cuplug_grid", "cuplug_fault"]
OTHER_NAMES = {"code": "dtype.code", "bits": "dtype.bits", "lanes": "dtype.lanes"}
FIELD = re.compile(r"`(?:u?int(\d+) |\w+ (?=\*))?(\*?)([\w.]+)(?:\[(\d)\])?`")


def told_fields(page: str) -> list[tuple[str, str, int, int]]:
    """Return the page's structures, fields, offsets and sizes in bytes."""
    tables = re.findall(r"\| offset \| field \| \|\n\|---\|---\|---\|\n((?:\|.*\n)+)", page)
    assert len(tables) == len(STRUCTURES)
    fields = []
    for structure, table in zip(STRUCTURES, tables, strict=True):
        for row in table.splitlines():
            _, start, cell, *_ = row.split("|")
            at = int(start)
            for bits, star, name, count in FIELD.findall(cell):
                is_number = bits and not star
                n_bytes = int(bits) // 8 * int(count or 1) if is_number else 8
                fields.append((structure, OTHER_NAMES.get(name, name), at, n_bytes))
                at += n_bytes
    return fields


def test_the_page_tells_each_field(tmp_path):
    told = told_fields((ROOT / "docs" / "abi.md").read_text())
    lines = ["#include <cuplug/fault.h>", "#include <cuplug/plugin.h>"]
    for structure, field, offset, n_bytes in told:
        lines += [
            f'_Static_assert(offsetof({structure}, {field}) == {offset}, "{field}");',
            f'_Static_assert(sizeof(({structure}){{0}}.{field}) == {n_bytes}, "{field}");',
        ]
    for structure in STRUCTURES:
        n_told = sum(n_bytes for name, _, _, n_bytes in told if name == structure)
        lines.append(f'_Static_assert(sizeof({structure}) == {n_told}, "{structure}");')
    source = tmp_path / "page.c"
    source.write_text("\n".join([*lines, ""]))
    compile_library([*COMPILER, INCLUDE, "-std=c11", "-fsyntax-only", str(source)])
