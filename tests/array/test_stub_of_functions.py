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
import numpy as np

import cuplug
from cuplug import array_api as xp
from cuplug.ops import gather, relu

x = cuplug.asarray([1.0])
y: cuplug.Array = xp.sum(x, axis=0) + xp.add(x, 2.0) + xp.clip(x, 0, 1) + xp.reshape(x, (1,))
z: cuplug.Array = (x @ x.T).sum(axis=0) / 2 + xp.fft.fft(x).real
values, counts = xp.unique_counts(xp.linalg.svdvals(xp.eye(3)))
shape: tuple[int, ...] = z.shape
host: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = x.numpy()
twice = cuplug.elementwise("twice(x: T) -> T", "2 * x")
print(relu(np.ones(3)), gather(x, cuplug.asarray([0])), twice(y), values, counts, shape, host)
xp.{call}
"""
CHECKERS = {
    "mypy": ["--strict", "--no-error-summary"],
    "pyright": ["--pythonpath", sys.executable],
}


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
@pytest.mark.parametrize(("checker", "options"), CHECKERS.items())
def test_wrong_calls_are_found(checker, options, tmp_path):
    pytest.importorskip(checker)
    is_mypy = checker == "mypy"
    calls = {
        "mean(x, axis=0)": "",
        "where(x > 0, x, 1.0)": "",
        "sum(x, axes=1)": 'keyword argument "axes"' if is_mypy else 'parameter named "axes"',
        "abs(x, x)": 'Too many arguments for "abs"' if is_mypy else "Expected 1 positional",
        "no_such_function(x)": 'attribute "no_such' if is_mypy else '"no_such_function" is not',
    }
    programs = [tmp_path / f"program{k}.py" for k in range(len(calls))]
    for program, call in zip(programs, calls, strict=True):
        program.write_text(PROGRAM.format(call=call))
    command = [sys.executable, "-m", checker, *options, *programs]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    for program, error in zip(programs, calls.values(), strict=True):
        said = [line for line in done.stdout.splitlines() if f"{program.name}:" in line]
        assert any(error in line for line in said) if error else not said, done.stdout
