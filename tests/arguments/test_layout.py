# SPDX-License-Identifier: Apache-2.0
"""The layout of the public structures, in each language that an author may write in."""

import os
import shutil
import subprocess

import pytest
from builds import COMPILER, compile_library
from places import ROOT, TESTS

SOURCE = TESTS / "arguments" / "test_layout.c"
OPTIONS = ["-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}"]


@pytest.mark.parametrize("standard", ["c11", "c17", "gnu11", "c++11", "c++14", "c++17", "c++20"])
def test_layout(standard, tmp_path):
    is_cxx = "++" in standard
    compiler = [os.environ.get("CXX", "c++")] if is_cxx else COMPILER
    if not shutil.which(compiler[0]):
        pytest.skip(f"needs {compiler[0]}")
    language = ["-x", "c++" if is_cxx else "c", f"-std={standard}"]
    program = tmp_path / "layout"
    compile_library([*compiler, *OPTIONS, *language, str(SOURCE), "-o", str(program)])
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_moved_field_is_seen(tmp_path):
    """The assertions do fail: with one number changed, the file does not compile."""
    text = SOURCE.read_text()
    right = "FIELD(cuplug_options, user, 40, 8);"
    assert text.count(right) == 1
    wrong = tmp_path / "wrong.c"
    wrong.write_text(text.replace(right, "FIELD(cuplug_options, user, 964, 8);"))
    command = [*COMPILER, *OPTIONS, "-fsyntax-only", str(wrong)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    assert "cuplug_options.user moved" in done.stderr
