# SPDX-License-Identifier: Apache-2.0
"""Zeros of both signs and NaNs with payloads: equal elements, which keep their order and their bits
when they are sorted."""

import cuplug
import ml_dtypes
import numpy as np
import pytest
from cuplug import array_api as xp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes

DTYPES = {"float16": "u2", "bfloat16": "u2", "float32": "u4", "float64": "u8"}
# of 1.5, -2, infinity, zeros of both signs; NaNs of both signs with different payloads
PICKED = {
    "float16": [0x3E00, 0xC000, 0x7C00, 0, 0x8000, 0x7E01, 0xFE02, 0x7C03],
    "bfloat16": [0x3FC0, 0xC000, 0x7F80, 0, 0x8000, 0x7FC1, 0xFFC2, 0x7F83],
    "float32": [0x3FC00000, 0xC0000000, 0x7F800000, 0, 1 << 31, 0x7FC00001, 0xFFC00002, 0x7F800003],
}
PICKED["float64"] = [0x3FF8 << 48, 0xC000 << 48, 0x7FF0 << 48, 0, 1 << 63]
PICKED["float64"] += [(0x7FF8 << 48) + 1, (0xFFF8 << 48) + 2, (0x7FF0 << 48) + 3]


def drawn(dtype, shape, seed, parts=8):
    bits = np.array(PICKED[dtype][:parts], DTYPES[dtype])
    own = np.random.default_rng(seed).choice(bits, shape)
    return own.view(getattr(ml_dtypes, dtype, dtype))


def bits_of(x):
    x = x if isinstance(x, np.ndarray) else x.numpy()
    return x.view(f"u{x.dtype.itemsize}")


def order_of(x, axis, descending):
    """Return a stable order, in which NaN is the largest: from keys that NumPy sorts."""
    with np.errstate(all="ignore"):
        values = x.astype("float64")
    values = np.where(np.isnan(values), np.inf, np.where(np.isinf(values), 1e300, values))
    return np.argsort(-values if descending else values, axis=axis, kind="stable")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    return request.param


def check_sort(x, axis, descending, device="cpu"):
    own = cuplug.asarray(x, device=device)
    order = order_of(x, axis, descending)
    found = xp.sort(own, axis=axis, descending=descending)
    np.testing.assert_array_equal(bits_of(found), np.take_along_axis(bits_of(x), order, axis))
    index = xp.argsort(own, axis=axis, descending=descending).numpy()
    np.testing.assert_array_equal(index, order)


def check_unique(x, device="cpu"):
    """The first zero represents all zeros; each NaN is separate."""
    flat = x.reshape(-1)
    order = order_of(flat, 0, False)
    ordered, bits = flat[order], bits_of(flat)[order]
    with np.errstate(all="ignore"):
        first = np.r_[True, ordered[1:] != ordered[:-1]][: len(flat)]
    own = cuplug.asarray(x, device=device)
    np.testing.assert_array_equal(bits_of(xp.unique_values(own)), bits[first])
    np.testing.assert_array_equal(bits_of(xp.unique_all(own).values), bits[first])
    np.testing.assert_array_equal(bits_of(xp.unique_counts(own).values), bits[first])


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_lines_of_all_lengths(device, dtype, descending):
    for seed, n in enumerate([1, 2, 3, 7, 33, 64, 300, 5000]):
        for parts in (8, 5):
            check_sort(drawn(dtype, (n,), seed, parts), 0, descending, device)
            check_sort(drawn(dtype, (3, n), seed, parts), 1, descending, device)
            check_sort(drawn(dtype, (n, 3), seed, parts), 0, descending, device)


@pytest.mark.parametrize("dtype", DTYPES)
def test_long_lines(device, dtype):
    """Lines that several threads sort, among numbers of all kinds."""
    x = drawn(dtype, 200_000, 0)
    x[::3] = np.random.default_rng(1).normal(size=len(x[::3])).astype(x.dtype)
    for descending in (False, True):
        check_sort(x, 0, descending, device)
        check_sort(x.reshape(2, -1), 1, descending, device)
        check_sort(x.reshape(-1, 5), 0, descending, device)
    check_unique(x, device)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
def test_lines_on_a_gpu(dtype):
    """With a block for each line, by digits, by merged parts, and lines of one element."""
    for shape, axis in [((70_000, 3), 1), ((3, 70_000), 0), ((300, 1100), 1), ((100, 9000), 1),
                        ((9000, 100), 0), ((2, 33_000, 5), 1), ((200_000, 1), 1)]:  # fmt: skip
        for descending in (False, True):
            check_sort(drawn(dtype, shape, 0), axis, descending, "cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
def test_some_among_many_on_a_gpu(dtype):
    """One -0.0 or NaN, anywhere in parts of a line; two lines of which the second has some."""
    for bits in (3, 4, 5, 6):
        for at in (0, 12_345, 999_999):
            x = (
                np.random.default_rng(at)
                .normal(size=1_000_000)
                .astype(getattr(ml_dtypes, dtype, dtype))
            )
            x[::7] = 0
            x.view(DTYPES[dtype])[at] = PICKED[dtype][bits]
            check_sort(x, 0, False, "cuda")
            check_sort(x.reshape(2, -1), 1, True, "cuda")
    check_unique(x, "cuda")


@pytest.mark.gpu
@pytest.mark.sanitizer
def test_captured_on_a_gpu():
    """A graph restores them in each run, independent of the previous one."""
    torch = pytest.importorskip("torch")
    x = torch.zeros(20_000, device="cuda")
    cuplug.ops.sort(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = cuplug.ops.sort(x)
    for parts in (8, 3, 4, 5):
        own = drawn("float32", 20_000, parts, parts)
        x.view(torch.int32).copy_(torch.from_numpy(own.view("i4")))
        graph.replay()
        found = out.view(torch.int32).cpu().numpy().view("u4")
        np.testing.assert_array_equal(found, bits_of(own)[order_of(own, 0, False)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_that_differ(device, dtype):
    for seed, n in enumerate([1, 2, 5, 40, 5000, 40_000]):
        check_unique(drawn(dtype, (n,), seed), device)
        check_unique(drawn(dtype, (n,), seed, 5), device)
        check_unique(drawn(dtype, (n,), seed, 5)[::-1].copy(), device)


@settings(deadline=None, max_examples=100)
@given(
    st.sampled_from(sorted(DTYPES)),
    array_shapes(max_dims=3, max_side=40),
    st.integers(0, 1000),
    st.booleans(),
    st.data(),
)
def test_any_axis(device, dtype, shape, seed, descending, data):
    x = drawn(dtype, shape, seed, data.draw(st.integers(1, 8)))
    check_sort(x, data.draw(st.integers(0, len(shape) - 1)), descending, device)
    check_unique(x, device)
