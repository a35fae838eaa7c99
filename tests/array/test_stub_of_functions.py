# SPDX-License-Identifier: Apache-2.0
"""The names and parameters of `cuplug.array_api` that type checkers read."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from cuplug import array_api

STUB = Path(array_api.__file__).with_suffix(".pyi")
PROGRAM = """
import cuplug
from cuplug import array_api as xp

x = cuplug.asarray([1.0])
y: cuplug.Array = xp.sum(x, axis=0) + xp.add(x, 2.0) + xp.clip(x, 0, 1) + xp.reshape(x, (1,))
xp.{call}
"""


def test_the_stub_has_the_names_and_their_parameters():
    names = set()
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.ImportFrom) and ".array" in node.module:
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
        elif isinstance(node, ast.FunctionDef):
            names.add(node.name)
            given = [x.arg for x in (*node.args.posonlyargs, *node.args.args)]
            given += [x.arg for x in node.args.kwonlyargs]
            assert given == [*inspect.signature(getattr(array_api, node.name)).parameters]
    assert names - {"Array"} == {*array_api.__all__, "__array_api_version__", "__all__"}


@pytest.mark.slow
def test_wrong_calls_are_found(tmp_path):
    pytest.importorskip("mypy")
    calls = {
        "mean(x, axis=0)": "",
        "where(x > 0, x, 1.0)": "",
        "sum(x, axes=1)": 'Unexpected keyword argument "axes"',
        "abs(x, x)": 'Too many arguments for "abs"',
        "no_such_function(x)": 'Module has no attribute "no_such_function"',
    }
    programs = [tmp_path / f"program{k}.py" for k in range(len(calls))]
    for program, call in zip(programs, calls, strict=True):
        program.write_text(PROGRAM.format(call=call))
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", *programs]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    for program, error in zip(programs, calls.values(), strict=True):
        said = [line for line in done.stdout.splitlines() if program.name in line]
        assert any(error in line for line in said) if error else not said, done.stdout
