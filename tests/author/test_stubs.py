# SPDX-License-Identifier: Apache-2.0
"""Type stubs of operators: the text for signatures, and the types that type checkers infer."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cuplug._engine.base.flags import PACKAGE
from cuplug._engine.signature.signature import parse
from cuplug._integration.author.stubs import write_stubs

GATHER = (
    'gather(source: T[m, *row], index: I[*n], mode: "raise" | "wrap" = "raise") -> T[*n, *row] '
    "where T: float32 | bfloat16 | int64, I: int32 | int64"
)


def test_stubs():
    text = write_stubs(
        [[(parse(GATHER), 'Elements, "gathered".')], [(parse("gather()"), "")]], "T."
    )
    assert "class _gather(Operator):" in text
    assert 'mode: Literal["raise", "wrap"] = "raise"' in text
    assert text.count("gather: _gather") == 1
    compile(text, "ops.pyi", "exec")


def test_results_of_one_name_with_other_types():
    """Moduli have the array's type in one overload, and another type in the next one."""
    rows = [
        f"f(x: {x}[n]) -> (moduli: {y}[n], phases: {x}[n])"
        for x, y in (("float32", "float32"), ("complex64", "float32"), ("float64", "float64"))
    ]
    text = write_stubs([[(parse(row), "") for row in rows]], "T.")
    assert text.count("class _f_moduli_phases(NamedTuple") == 1
    assert text.count("class _f_moduli_phases_2(NamedTuple") == 1
    assert text.count("-> _f_moduli_phases[_Array]:") == 1
    assert text.count("-> _f_moduli_phases_2[_Array]:") == 1
    compile(text, "ops.pyi", "exec")


def check_types(folder, text):
    """Return mypy's output for a text that imports the shipped stubs."""
    (folder / "use.py").write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--no-error-summary"]
    environment = os.environ | {"MYPYPATH": str(Path(PACKAGE).parent)}
    options = ["--cache-dir", os.devnull, "use.py"]
    done = subprocess.run(
        [*command, *options], cwd=folder, env=environment, capture_output=True, text=True
    )
    return done.stdout.splitlines()


USE = """
import cuplug
import numpy as np
from cuplug.ops import gather, relu

flat = np.zeros(3, np.float32)
square = np.zeros((3, 3), np.int64)
rows: np.ndarray[tuple[int, int], np.dtype[np.float32]] = gather(flat, square)
reveal_type(relu(flat))
cuplug.prepare(gather)
relu("x", slope=1)
"""


@pytest.mark.slow
def test_type_checkers_take_the_stubs(tmp_path):
    """An index of two dimensions returns a result of two; other results are like the array."""
    pytest.importorskip("mypy")
    said = check_types(tmp_path, USE)
    errors = [line for line in said if ": error: " in line]
    assert len(errors) == 1, said
    assert 'Unexpected keyword argument "slope"' in errors[0]
    (revealed,) = [line for line in said if "Revealed type is" in line]
    assert "ndarray[tuple[int]" in revealed.replace("builtins.", "")


@pytest.mark.parametrize(
    ("signature", "n_calls"),
    [
        ("f(x: T[m, n]) -> T[n, m] where T: any", 1),
        ("f(x: T[n]) -> T[n, n] where T: any", 2),
        ("f(x: T[...], k: int) -> T[...] where T: any", 1),
        ("f(x: T[...], y: T[...]) -> T[...] where T: any", 2),
        ("f(x: T[*s, n]) -> (a: T[*s, n], b: T[*s]) where T: any", 2),
        ("f(x: T[*s], y: U[*t]) -> U[*t] where T: any, U: any", 1),
    ],
)
def test_stubs_of_results_with_other_ranks(signature, n_calls):
    text = write_stubs([[(parse(signature), "")]], "A title.")
    assert text.count("def __call__(") == n_calls
    assert text.count("x: ndarray[Any, _Dtype]") == n_calls - 1
