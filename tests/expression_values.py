# SPDX-License-Identifier: Apache-2.0
"""Arrays for tests of expressions, and the compilation of their code by NVRTC."""

from functools import cache

import cuplug
import numpy as np
import pytest
from backends import dtype_of
from cuplug._source.compilers import jit
from cuplug._source.compilers.headers import is_self_contained
from cuplug._source.expressions.cuda_compiler import OPTIONS
from hypothesis import strategies as st

MINIMAL = "--minimal"
# Shapes with enough elements for reductions in parts, along either axis.
LONG = [(5,), (300, 41), (100_003,), (2, 40_000), (40_000, 2), (3, 20, 400), (70_000, 3)]


def values(shape, dtype, seed=0):
    drawn = np.random.default_rng(seed).integers(0, 9, shape)
    return np.asarray(drawn).astype(dtype_of(dtype))


def sliced(draw, x):
    """Draw a view of an array: transposed, with steps, or reversed."""
    parts = [
        slice(draw(st.integers(0, 2)), None, draw(st.sampled_from([1, 2, 3, -1, -2])))
        for _ in range(x.ndim)
    ]
    view = x[(*parts, ...)]
    return view.transpose(draw(st.permutations(range(x.ndim))))


def nvrtc(code: str) -> bytes:
    """Compile with NVRTC if it is installed, without warnings. Code that includes no files must
    compile with --minimal."""
    try:
        jit.nvrtc.find()
    except cuplug.CompileError:
        pytest.skip("needs NVRTC")
    minimal = [MINIMAL] if knows_minimal() and is_self_contained(code, {}) else []
    binary = jit.compile_to_binary(code, options=[*OPTIONS, *minimal], name="test.cu")
    assert binary.log == ""
    return binary.image


@cache
def knows_minimal() -> bool:
    try:
        return bool(jit.compile_to_binary("", options=[MINIMAL]))
    except cuplug.CompileError:
        return False
