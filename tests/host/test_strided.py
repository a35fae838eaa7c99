# SPDX-License-Identifier: Apache-2.0
"""Arrays of any strides, compared with NumPy: copied, written, and iterated over."""

import math

import cuplug
import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

MOST = 20_000  # elements: rows and tiles of all sizes, and several blocks
SIZES = [0, 1, 1, 2, 3, 4, 7, 16, 17, 64, 300, 3000]
DTYPES = ["int8", "int16", "float32", "float64", "complex128"]
ADD = cuplug.elementwise("add(a: T, b: T) -> T", "a + b")


@st.composite
def shapes(draw):
    """Return sizes, also of 0 and 1, of MOST elements at most."""
    shape, room = [], MOST
    for _ in range(draw(st.integers(0, 6))):
        shape.append(draw(st.sampled_from([n for n in SIZES if n <= room])))
        room //= max(shape[-1], 1)
    return tuple(draw(st.permutations(shape)))


def layout(draw, shape):
    """Return a function for memory, and one for its view of a shape.

    The dimensions are in any order, reversed or not, with gaps between elements and rows.
    """
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, 1, -1, 2, -3])) for _ in shape]
    sizes = [abs(step) * n + draw(st.integers(0, 1)) for n, step in zip(shape, steps, strict=True)]
    assume(math.prod(sizes) < 1 << 20)

    def make(dtype):
        return np.resize(np.arange(-50, 50), [sizes[d] for d in order]).astype(dtype)

    def view(memory):
        whole = memory.transpose(np.argsort(order).astype(int))
        stepped = whole[(..., *(slice(None, None, step) for step in steps))]
        return stepped[(..., *map(slice, shape))]

    return make, view


@settings(max_examples=200)
@given(st.data(), shapes(), st.sampled_from(DTYPES))
def test_any_strides(data, shape, dtype):
    (make, view), (make_other, view_other) = (layout(data.draw, shape) for _ in range(2))
    repeated = [slice(0, 1) if data.draw(st.integers(0, 5)) == 0 else slice(None) for _ in shape]
    x = np.broadcast_to(view(make(dtype))[tuple(repeated)], shape)
    y = view_other(make_other(dtype))
    np.testing.assert_array_equal(cuplug.asarray(x, copy=True), x)
    np.testing.assert_array_equal(ADD(x, y), x + y)
    for write, values in (
        (lambda out: cuplug.asarray(out).__setitem__(..., cuplug.asarray(x)), x),
        (lambda out: ADD(x, y, out=out), x + y),
        (lambda out: ADD(y, x.copy(), out=out), x + y),
    ):
        memory, expected = make_other(dtype), make_other(dtype)
        write(view_other(memory))
        view_other(expected)[...] = values
        np.testing.assert_array_equal(memory, expected)  # and nothing between the elements
