# SPDX-License-Identifier: Apache-2.0
"""Arrays that share memory, or only its span; numpy.shares_memory is the reference."""

import cuplug
import numpy as np
import pytest
from backends import assert_same
from cuplug.ops import leaky_relu, relu, relu_backward
from hypothesis import given, settings
from hypothesis import strategies as st

BOTH = cuplug.elementwise("both(inout x: T, inout y: U)", "x = x + 1; y = y + 2")
ADD = cuplug.elementwise("add(x: T[...], y: T[...]) -> T[...]", "x + y")
BYTES = 3000


def view(memory, dtype, offset, dims):
    """Return an array somewhere in memory: its strides in elements, maybe negative."""
    itemsize = np.dtype(dtype).itemsize
    shape = tuple(n for n, _ in dims)
    strides = tuple(step * itemsize for _, step in dims)
    low = sum(min(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True) if n)
    return np.ndarray(shape, dtype, memory, offset * itemsize - low, strides)


def has_own_elements(x):
    addresses = np.zeros(x.shape, int)
    for k, stride in enumerate(x.strides):
        index = np.arange(x.shape[k]).reshape(-1, *(1,) * (x.ndim - k - 1))
        addresses = addresses + index * stride
    found = np.sort(addresses, axis=None)
    return bool((np.diff(found) >= x.itemsize).all())


@st.composite
def arrays(draw, memory, shape=None):
    dtype = draw(st.sampled_from(["int8", "int16", "int64"]))
    n_dims = draw(st.integers(1, 3)) if shape is None else len(shape)
    sizes = shape or [draw(st.integers(1, 6)) for _ in range(n_dims)]
    dims = [(n, draw(st.integers(-18, 18).filter(bool))) for n in sizes]
    return view(memory, dtype, draw(st.integers(0, 60)), dims)


@settings(max_examples=600, deadline=None)
@given(st.data())
def test_two_arrays_are_changed_in_place(data):
    memory = np.zeros(BYTES, np.uint8)
    x = data.draw(arrays(memory))
    y = data.draw(arrays(memory, x.shape))
    if not (has_own_elements(x) and has_own_elements(y)):
        return
    if np.shares_memory(x, y):
        with pytest.raises(ValueError, match="overlaps|elements share|interleave|strides"):
            BOTH(x, y)
        return
    before = x.copy(), y.copy()
    try:
        BOTH(x, y)
    except ValueError as refusal:
        error = str(refusal)  # with strides that only manual code creates
    else:
        error = ""
    assert "overlaps" not in error
    if error:
        return
    np.testing.assert_array_equal(x, before[0] + 1)
    np.testing.assert_array_equal(y, before[1] + 2)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("n", [1, 3, 200])
def test_parts_of_one_buffer(axis, n):
    whole = np.zeros((n, 12, 16), "float32")
    x, y = np.split(whole, 2, axis) if whole.shape[axis] % 2 == 0 else (whole[:, :6], whole[:, 6:])
    BOTH(x, y)
    assert (x == 1).all()
    assert (y == 2).all()
    BOTH(whole[..., ::2], whole[..., 1::2])
    BOTH(whole[::-1, :, 3], whole[:, :, 4])
    out = whole[:, :, 8:]
    np.testing.assert_array_equal(ADD(whole[:, :, :8].copy(), whole[:, :, :8], out=out), out)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize("shape", [(), (1,), (5,), (300, 7), (70_001,), (3_000_000,)], ids=str)
def test_an_input_as_the_output(dtype, shape):
    if dtype != "int32":
        assert_in_place(leaky_relu, shape, dtype)
    assert_in_place(relu, shape, dtype)
    assert_in_place(cuplug.elementwise("f(x: T[...]) -> T[...]", "x * 2 + 1"), shape, dtype)


def assert_in_place(operator, shape, dtype):
    x = np.resize(np.arange(-50, 50), shape).astype(dtype)
    expected = operator(x.copy())
    assert operator(x, out=x) is x
    assert_same(x, expected)


def test_one_of_the_inputs_as_the_output():
    grad, x = np.arange(6.0), np.arange(6.0) - 3
    expected = relu_backward(grad, x)
    for k in range(2):
        given = [grad.copy(), x.copy()]
        assert_same(relu_backward(*given, out=given[k]), expected)
    wide = np.arange(48.0).reshape(6, 8)[:, ::2]
    expected = ADD(wide, wide[::-1].copy())
    assert_same(np.ascontiguousarray(ADD(wide, wide[::-1].copy(), out=wide)), expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x[::-1],  # other elements at the same addresses
        lambda x: x.T,
        lambda x: x.view("int64"),
        lambda x: np.ndarray(x.shape, x.dtype, x.base, 8),
    ],
)
def test_what_only_overlaps_is_refused(make):
    x = np.zeros(17)[:16].reshape(4, 4)
    f = cuplug.elementwise("f(x: T[...], y: float64[...]) -> float64[...]", "x + y")
    with pytest.raises(ValueError, match="out: its memory overlaps x"):
        f(make(x), np.ones((4, 4)), out=x)


def test_code_that_reads_any_element_needs_memory_of_its_own():
    f = cuplug.elementwise("f(x: T[n], k: int64[...]) -> T[...]", "x[n - 1 - i]")
    x = np.arange(4)
    with pytest.raises(ValueError, match="out: got the memory of x, expected an array of its own"):
        f(x, np.zeros(4, int), out=x)
