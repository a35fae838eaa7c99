# SPDX-License-Identifier: Apache-2.0
"""gather_backward compared with NumPy's add.at, and as the adjoint of gather."""

import cuplug
import numpy as np
import pytest
from backends import COMPLEX, FLOATING, SIGNED, UNSIGNED, assert_same, dtype_of
from cuplug.ops import gather, gather_backward
from hypothesis import given, settings
from hypothesis import strategies as st


def whole_numbers(shape, dtype, seed=0) -> np.ndarray:
    """Return small whole numbers: their sums are exact in any order."""
    dtype = dtype_of(dtype)
    random = np.random.default_rng(seed)
    x = random.integers(-4, 5, shape)
    return np.asarray(x + 1j * random.integers(-4, 5, shape) if dtype.kind == "c" else x, dtype)


def expected(grad, index, source, mode="raise", axis=0):
    """Return NumPy's sums; 16-bit floats are added in float32 and rounded once."""
    wide = np.dtype(np.float32) if source.dtype.itemsize == 2 else source.dtype
    m = source.shape[axis]
    index = np.asarray(index)
    rows = {"raise": index, "wrap": index % max(m, 1), "clip": np.clip(index, 0, m - 1)}[mode]
    out = np.zeros(source.shape, wide)
    at = axis % source.ndim
    moved = np.moveaxis(grad, range(at, at + index.ndim), range(index.ndim))
    np.add.at(np.moveaxis(out, at, 0), rows, moved.astype(wide))
    return out.astype(source.dtype)


def taken(source, index, axis=0):
    """Return the shape of gather's result."""
    at = axis % source.ndim
    return (*source.shape[:at], *np.shape(index), *source.shape[at + 1 :])


@pytest.mark.parametrize("dtype", [*FLOATING, *COMPLEX])
@pytest.mark.parametrize("row", [(), (1,), (3,), (4,), (2, 8), (129,), (512,)])
def test_every_dtype(backend, dtype, row):
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    source = np.zeros((50, *row), dtype_of(dtype))
    index = np.random.default_rng(1).integers(-50, 50, (7, 11))
    grad = whole_numbers((7, 11, *row), dtype)
    for index_dtype in (np.int32, np.int64):
        result = backend(gather_backward, grad, index.astype(index_dtype), source)
        assert_same(result, expected(grad, index, source))


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_every_dtype_of_index(backend, axis, dtype):
    if not backend.supports(np.dtype(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    source = np.zeros((70, 41, 13), np.float32)
    low = 0 if dtype.startswith("u") else -13
    for n in 1, 511, 512, 513, 1100:
        index = np.random.default_rng(n).integers(low, 13, n).astype(dtype)
        grad = whole_numbers(taken(source, index, axis), "float32", n)
        result = backend(gather_backward, grad, index, source, axis=axis)
        assert_same(result, expected(grad, index.astype(np.int64), source, axis=axis))


@pytest.mark.sanitizer
@settings(max_examples=60)
@given(
    shape=st.lists(st.integers(0, 6), min_size=1, max_size=4),
    index_shape=st.lists(st.integers(0, 5), max_size=3),
    mode=st.sampled_from(["raise", "wrap", "clip"]),
    dtype=st.sampled_from([*FLOATING, *COMPLEX]),
    data=st.data(),
)
def test_shapes_axes_and_modes(backend, shape, index_shape, mode, dtype, data):
    """Along any axis, with an array and with one integer."""
    if not backend.supports(dtype_of(dtype)):
        return
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    shape[axis] += 1
    source, m = np.zeros(shape, dtype_of(dtype)), shape[axis]
    reach = m if mode == "raise" else 5 * m
    index = np.random.default_rng(m).integers(-reach, reach, index_shape)
    one = data.draw(st.integers(-reach, reach - 1))
    for i in (index, one):
        grad = whole_numbers(taken(source, i, axis), dtype)
        result = backend(gather_backward, grad, i, source, mode=mode, axis=axis)
        assert_same(result, expected(grad, i, source, mode, axis))


CUTS = [  # shape, axis, indices: rows in buckets, columns, parts, and a single piece
    ((300_000,), 0, 50_000),
    ((3,), 0, 200_000),
    ((1,), 0, 70_000),
    ((1000, 17), 0, 20_000),
    ((5, 9001), 0, 40),
    ((7, 11, 5000), 1, 9),
    ((40_000, 13), 1, 5),
    ((2, 3001, 3), 1, 40_000),
    ((70_000, 2), 0, 3),
]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
@pytest.mark.parametrize(("shape", "axis", "n"), CUTS)
def test_large(backend, shape, axis, n, dtype):
    """More than one thread, and more than one block for a row."""
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    source = np.zeros(shape, dtype_of(dtype))
    index = np.random.default_rng(n).integers(-shape[axis], shape[axis], n)
    grad = whole_numbers(taken(source, index, axis), dtype)
    result = backend(gather_backward, grad, index, source, axis=axis)
    assert_same(result, expected(grad, index, source, axis=axis))


@pytest.mark.parametrize("m", [1000, 300_000])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex128"])
def test_the_host_adds_in_order(dtype, m):
    """The same bits as by sequential addition, also in buckets."""
    source = np.zeros(m, dtype_of(dtype))
    random = np.random.default_rng(0)
    index = random.integers(0, 1000, 100_000) * (m // 1000)
    grad = random.standard_normal(100_000).astype(source.dtype)
    wanted = expected(grad, index, source)
    for _ in range(3):
        assert gather_backward(grad, index, source, device="cpu").tobytes() == wanted.tobytes()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_many_small_numbers_are_not_lost(backend, dtype):
    """Added in 16 bits, the sum would stop at 256 or 2048."""
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    source, n = np.zeros((3, 2), dtype_of(dtype)), 8192
    grad = np.ones((n, 2), source.dtype)
    result = backend(gather_backward, grad, np.ones(n, np.int32), source)
    assert result.astype(np.float64).tolist() == [[0, 0], [n, n], [0, 0]]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_sums_of_any_numbers(backend, dtype):
    source = np.zeros((40, 6), dtype)
    random = np.random.default_rng(0)
    index = random.integers(-40, 40, 3000)
    grad = random.standard_normal((3000, 6)).astype(dtype)
    wanted = expected(grad, index, source)
    result = backend(gather_backward, grad, index, source)
    np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)


def test_it_is_the_adjoint_of_gather():
    random = np.random.default_rng(0)
    source, index = random.standard_normal((5, 7)), random.integers(-7, 7, (3, 4))
    grad = random.standard_normal((5, 3, 4))
    there = np.vdot(grad, gather(source, index, axis=1))
    assert there == pytest.approx(np.vdot(gather_backward(grad, index, source, axis=1), source))


def test_strided_gradients_and_indices(backend):
    source = np.zeros((9, 4), np.float32)
    grad = whole_numbers((6, 20), "float32").T[::2][:, :4]
    index = np.arange(20)[::-2] % 9
    wanted = expected(grad, index, source)
    assert_same(backend(gather_backward, grad, index, source), wanted)
    row = np.broadcast_to(np.float32([1, 2, 3, 4]), (10, 4))
    assert_same(backend(gather_backward, row, index, source), expected(row, index, source))


@pytest.mark.parametrize("offset", [1, 2, 3, 4])
def test_gradients_and_outputs_at_any_address(backend, offset):
    if backend.name in ("staged", "own"):
        pytest.skip("copies are aligned")
    grad = whole_numbers((40 * 8 + offset,), "float32")
    view = backend.put(grad)[offset:].reshape(40, 8)
    out = backend.put(np.full(30 * 8 + 8, 7, np.float32))
    index = np.random.default_rng(0).integers(0, 30, 40)
    source = np.zeros((30, 8), np.float32)
    within = out[offset : offset + 240].reshape(30, 8)
    arrays = (view, backend.put(index), backend.put(source))
    gather_backward(*arrays, out=within, **backend.keywords)
    seen = backend.take(out)
    assert_same(seen[offset : offset + 240], expected(view_of(grad, offset), index, source).ravel())
    assert (np.delete(seen, range(offset, offset + 240)) == 7).all()


def view_of(grad, offset):
    return grad[offset:].reshape(40, 8)


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
def test_empty(backend, mode):
    none = np.empty((3, 0), np.int32)
    result = backend(gather_backward, np.empty((3, 0, 2), np.float32), none, np.zeros((4, 2), "f4"))
    assert_same(result, np.zeros((4, 2), np.float32))
    source = np.empty((0, 2), np.float32)
    assert backend(gather_backward, np.empty((3, 0, 2), "f4"), none, source).shape == (0, 2)
    one = np.array([0], np.int32)
    with pytest.raises(IndexError, match="gather_backward: source: got an empty axis 0, expected"):
        backend(gather_backward, np.empty((1, 2), np.float32), one, source, mode=mode)


def test_rows_of_no_elements_still_check_the_index(backend):
    source, index = np.empty((3, 0), np.float32), np.array([1, 3], np.int32)
    assert backend(gather_backward, np.empty((2, 0), "f4"), index - 2, source).shape == (3, 0)
    with pytest.raises(IndexError, match="index 3 at position 1 is out of bounds for size 3"):
        backend(gather_backward, np.empty((2, 0), np.float32), index, source)
        cuplug.synchronize()


@pytest.mark.parametrize("bad", [5, -6, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("position", [0, 3, 99_999])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_bad_index(backend, bad, position, dtype):
    index = np.zeros(100_000, np.int32)
    index[position] = bad
    grad, source = np.zeros((100_000, 3), dtype), np.zeros((5, 3), dtype)
    message = f"gather_backward: index: index {bad} at position {position} is out of bounds for"
    with pytest.raises(IndexError, match=message):
        backend(gather_backward, grad, index, source)
        cuplug.synchronize()
    index[position] = 4
    assert_same(backend(gather_backward, grad, index, source), source)


def test_first_of_many_bad_indices_on_the_host():
    index = np.zeros(500_000, np.int64)
    index[70_001:] = 2**40
    grad = np.zeros(500_000, np.float32)
    for _ in range(5):
        with pytest.raises(IndexError, match="index 1099511627776 at position 70001 is out of"):
            gather_backward(grad, index, np.zeros(5, np.float32), device="cpu")


@pytest.mark.parametrize("bad", [3, -4, 2**63 - 1, -(2**63)])
def test_one_bad_index(backend, bad):
    wanted = f"gather_backward: index: index {bad} is out of bounds for size 3"
    with pytest.raises(IndexError, match=wanted):
        backend(gather_backward, np.zeros(2, "f4"), bad, np.zeros((2, 3), "f4"), axis=1)


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        ((5, 4), "grad: got 2 dimensions, expected 3"),
        ((5, 7, 4), "grad: got size 7 in dimension 1, expected 6"),
        ((3, 6, 4), "grad: got size 3 in dimension 0, expected 5"),
        ((5, 6, 3), "grad: got size 3 in dimension 2, expected 4"),
    ],
)
def test_gradients_of_another_shape(backend, shape, wanted):
    source, index = np.zeros((5, 9, 4), np.float32), np.zeros(6, np.int32)
    with pytest.raises(ValueError, match=f"^gather_backward: {wanted}$"):
        backend(gather_backward, np.zeros(shape, np.float32), index, source, axis=1)


def test_integers_have_no_gradient():
    with pytest.raises(TypeError, match=r"gather_backward: grad: got int32\[2\], expected T"):
        gather_backward(np.zeros(2, np.int32), np.zeros(2, int), np.zeros(2, np.int32))


@pytest.mark.large
@pytest.mark.gpu
def test_beyond_32_bits():
    source = cuplug.asarray(np.zeros(2**32 + 10, np.float16), device="cuda")
    index = cuplug.asarray(np.array([2**32 + 9, -1, 3], np.int64), device="cuda")
    grad = cuplug.asarray(np.array([1, 2, 5], np.float16), device="cuda")
    result = gather_backward(grad, index, source).numpy()
    assert (result[3], result[-1], np.count_nonzero(result)) == (5, 3, 2)
