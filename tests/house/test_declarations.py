# SPDX-License-Identifier: Apache-2.0
"""The declarations of headers for Cython equal the headers."""

import re
import sys

import pytest
from places import ROOT

sys.path.insert(0, str(ROOT / "build_backend"))
import declarations

BASE = ROOT / "build" / "python" / "cuplug" / "_engine" / "base"


def declared(text: str) -> list[str]:
    """Return the C lines that are declared to Cython."""
    found = declarations.Declarations(shared={"take"}, later=set())
    found.declare(text)
    return found.lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("CUPLUG_API int cuplug_a(void);", ["int cuplug_a() noexcept"]),
        ("static inline int cuplug_a(int x) { if (x) { x++; } return x; }",
         ["int cuplug_a(int x) noexcept"]),
        ("CUPLUG_API void *cuplug_a(const char *const *x, int from, uint64_t n[4]);",
         ["void *cuplug_a(const char *const *x, int from_, uint64_t *n) noexcept"]),
        ("int cuplug_take(int64_t (*sizes)[64]);",
         ['int cuplug_take "cuplug_core->take"(int64_t (*sizes)[64]) noexcept']),
        ("int cuplug_hidden(void); CUPLUG_API int cuplug_a(struct other *x);", []),
        ("typedef struct x { int a, *b[2]; union { double f; char in[1 << 3]; }; other c; } x;",
         ["ctypedef struct x:", "    int a", "    int *b[2]", "    double f",
          '    char in_ "in"[8]']),
        ("typedef struct x x; struct x { x *next; };", ["ctypedef struct x:", "    x *next"]),
        ("typedef struct x x;", ["ctypedef struct x:", "    pass"]),
        ("struct x { int a; };", ["struct x:", "    int a"]),
        ("typedef enum x { A, B = 1 << 2, CUPLUG__C } x;", ["ctypedef enum x:", "    A", "    B"]),
        ("typedef int cuplug_f(void *user); CUPLUG_API cuplug_f cuplug_a;",
         ["ctypedef int cuplug_f(void *user) noexcept", "int cuplug_a(void *user) noexcept"]),
        ("typedef struct x { int (*call)(void *user); } x;",
         ["ctypedef struct x:", "    int (*call)(void *user) noexcept"]),
    ],
)  # fmt: skip
def test_declarations_of_c(text, lines):
    assert declared(text) == lines


def test_all_functions_that_the_core_exports_are_declared():
    exported = set(re.findall(r"(cuplug_\w+);", (ROOT / "core/libcuplug.map").read_text()))
    text = "".join((BASE / name).read_text() for name in ("core.pxd", "core_call.pxd"))
    missing = {x for x in exported if not re.search(rf"\b{x}\(", text)}
    assert len(exported) > 80
    assert missing == set()


def test_functions_of_the_table_are_called_through_it():
    table = (ROOT / "include/internal/functions.h").read_text()
    names = set(declarations.SHARED_FUNCTIONS.findall(table))
    text = (BASE / "core_call.pxd").read_text()
    assert len(names) > 20
    assert set(re.findall(r'"cuplug_core->(\w+)"\(', text)) == names


def test_files_that_are_as_they_were_keep_their_time(tmp_path):
    path = tmp_path / "x.pxd"
    declarations.write(path, "a\n")
    before = path.stat().st_mtime_ns
    declarations.write(path, "a\n")
    assert path.stat().st_mtime_ns == before
    declarations.write(path, "b\n")
    assert path.read_text() == "b\n"
