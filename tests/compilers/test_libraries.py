# SPDX-License-Identifier: Apache-2.0
"""The libraries of compilers: loaded ones by their names, and those that are none."""

import subprocess
from pathlib import Path

import pytest
from cuplug import CompileError
from cuplug._engine.base import libraries
from cuplug._source.compilers import program


@pytest.fixture
def shared_library(tmp_path) -> str:
    """Return the path of a library without functions, whose name no other test has."""
    (tmp_path / "empty.c").write_text("")
    path = tmp_path / f"{tmp_path.name}.so"
    subprocess.run(["cc", "-shared", "-o", path, tmp_path / "empty.c"], check=True)
    return str(path)


def test_a_library_that_is_no_compiler(shared_library):
    asked = ("", "f.cu", "90", [], [], {}, False)
    with pytest.raises(CompileError, match=r"\.so has no nvrtcVersion: it is too old or damaged"):
        program.compile_program(shared_library, *asked)
    with pytest.raises(CompileError, match=r"\.so has no nvJitLinkCreate: it is too old or"):
        program.link_program(shared_library, "f", {}, [], False)
    with pytest.raises(CompileError, match="^nvJitLink cannot be loaded: "):
        program.link_program("/no/such.so", "f", {}, [], False)


def test_loaded_libraries_are_found_by_the_start_of_their_names(shared_library):
    name = Path(shared_library).name
    assert libraries.find_loaded(name) == ""
    libraries.open_library(shared_library)
    assert libraries.find_loaded(name) == libraries.find_loaded(name[:-3]) == shared_library
    assert libraries.find_loaded(name[1:]) == ""
