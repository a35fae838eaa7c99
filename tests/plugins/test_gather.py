# SPDX-License-Identifier: Apache-2.0
"""gather compared with NumPy's take."""

import cuplug
import numpy as np
import pytest
from backends import COMPLEX, FLOATING, SIGNED, UNSIGNED, assert_same, contents, dtype_of
from cuplug.ops import gather, gather_backward
from hypothesis import given, settings
from hypothesis import strategies as st

INDICES = [*SIGNED, *UNSIGNED]
DTYPES = [*FLOATING, *SIGNED, *UNSIGNED, *COMPLEX, "bool"]


def numbers(shape, dtype, seed=0) -> np.ndarray:
    """Return random bytes as an array; of bool, zeros and ones."""
    random = np.random.default_rng(seed)
    dtype = dtype_of(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    if dtype.kind in "fcV":
        return random.standard_normal(shape).astype(dtype)
    return random.integers(0, 100, shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("row", [(), (1,), (3,), (4,), (2, 8), (129,)])
def test_every_dtype(backend, dtype, row):
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    source = numbers((50, *row), dtype)
    index = np.random.default_rng(1).integers(-50, 50, (7, 11))
    for index_dtype in (np.int32, np.int64):
        result = backend(gather, source, index.astype(index_dtype))
        assert_same(result, np.take(source, index, axis=0))


@pytest.mark.parametrize("dtype", INDICES)
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_every_dtype_of_index(backend, axis, dtype):
    """Also dtypes and axes whose indices are resolved in blocks of 512."""
    if not backend.supports(np.dtype(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    source = numbers((70, 41, 13), "float32")
    low = 0 if dtype.startswith("u") else -13
    keywords = {} if axis is None else {"axis": axis}
    for n in 1, 511, 512, 513, 1100:
        index = np.random.default_rng(n).integers(low, 13, n).astype(dtype)
        wanted = np.take(source, index.astype(np.int64), axis=axis or 0)
        assert_same(backend(gather, source, index, **keywords), wanted)


@pytest.mark.sanitizer
@settings(max_examples=60)
@given(
    shape=st.lists(st.integers(0, 6), min_size=1, max_size=4),
    index_shape=st.lists(st.integers(0, 5), max_size=3),
    mode=st.sampled_from(["raise", "wrap", "clip"]),
    dtype=st.sampled_from(["uint8", "float32", "complex128"]),
    data=st.data(),
)
def test_axes(backend, shape, index_shape, mode, dtype, data):
    """NumPy's take along any axis, with an array and with one integer."""
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    shape[axis] += 1
    source, m = numbers(shape, dtype), shape[axis]
    reach = m if mode == "raise" else 5 * m
    index = np.random.default_rng(m).integers(-reach, reach, index_shape)
    result = backend(gather, source, index, mode=mode, axis=axis)
    assert_same(result, np.take(source, index, axis=axis, mode=mode))
    one = data.draw(st.integers(-reach, reach - 1))
    result = backend(gather, source, one, mode=mode, axis=axis)
    assert_same(result, np.asarray(np.take(source, one, axis=axis, mode=mode)))


@pytest.mark.parametrize("shape", [(3, 200_000), (200_000, 3), (40, 70, 60)])
def test_large_axes(backend, shape):
    """More than one thread, and more than one block for a row."""
    source = numbers(shape, "float32")
    for axis in range(len(shape)):
        n = 700 if shape[axis] > 1000 else 7
        index = np.random.default_rng(axis).integers(-shape[axis], shape[axis], n)
        assert_same(backend(gather, source, index, axis=axis), np.take(source, index, axis))
        assert_same(backend(gather, source, -2, axis=axis), np.take(source, -2, axis))


@pytest.mark.sanitizer
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize(
    "shape", [(1, 9), (8, 9), (70, 9), (2300, 3), (33, 5, 3), (9, 300), (3, 4, 300), (4100, 256)]
)
def test_columns(backend, shape, dtype):
    """Few and many parts, with outputs at pack boundaries and between them."""
    if not backend.supports(np.dtype(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    source = numbers(shape, dtype)
    for n in 1, 3, 4, 132, 256, 300:
        index = np.random.default_rng(n).integers(-shape[1], shape[1], n)
        wanted = np.take(source, index, axis=1)
        assert_same(backend(gather, source, index, axis=1), wanted)
        if backend.name in ("staged", "own"):
            continue
        out = backend.put(np.zeros(wanted.size + 1, dtype))
        gather(backend.put(source), backend.put(index), axis=1,
               out=out[1:].reshape(wanted.shape), **backend.keywords)  # fmt: skip
        assert_same(backend.take(out)[1:], wanted.reshape(-1))


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
def test_unsigned_indices_beyond_int64(backend, mode):
    if not backend.supports(np.dtype(np.uint64)):
        pytest.skip(f"{backend.name} has no uint64")
    source = numbers((7,), "float32")
    index = np.array([3, 2**63, 2**64 - 1], np.uint64)
    if mode != "raise":
        wanted = source[[3, 2**63 % 7, (2**64 - 1) % 7] if mode == "wrap" else [3, 6, 6]]
        assert_same(backend(gather, source, index, mode=mode), wanted)
        return
    with pytest.raises(IndexError, match="at position 1 is out of|at position 2 is out of"):
        backend(gather, source, index)
        cuplug.synchronize()


@pytest.mark.parametrize("axis", [2, -3])
@pytest.mark.parametrize("index", [1, np.array([1])])
def test_axis_out_of_range(axis, index):
    limit = r"max\(len\(s\), 1\)"
    wanted = rf"gather: got s = \(2, 3\), axis = {axis}, expected -{limit} <= axis < {limit}"
    with pytest.raises(ValueError, match=wanted):
        gather(np.zeros((2, 3)), index, axis=axis)


@pytest.mark.parametrize("axis", [0, -1])
def test_source_without_dimensions(backend, axis):
    source = np.array(2.5, "float32")
    for index in (np.array(0), np.array([0, -1, 0]), np.zeros((2, 0), int)):
        assert_same(backend(gather, source, index, axis=axis), np.take(source, index, axis))
    assert_same(backend(gather, source, -1, axis=axis), source)
    grad, index = np.array([1, 2, 4], "float32"), np.array([0, -1, 0])
    assert_same(backend(gather_backward, grad, index, source, axis=axis), np.array(7, "float32"))
    assert_same(backend(gather_backward, source, 0, source, axis=axis), source)
    with pytest.raises(IndexError, match="index 1 at position 0 is out of bounds for size 1"):
        backend(gather, source, np.array([1]), axis=axis)
        cuplug.synchronize()
    with pytest.raises(ValueError, match="axis = 1, expected"):
        backend(gather, source, np.array([0]), axis=1)


@pytest.mark.parametrize("bad", [3, -4, 2**63 - 1, -(2**63)])
def test_one_bad_index(backend, bad):
    with pytest.raises(IndexError, match=f"gather: index: index {bad} is out of bounds for size 3"):
        backend(gather, numbers((2, 3), "float32"), bad, axis=1)


def test_first_bad_index_along_another_axis():
    index = np.zeros(3000, np.uint16)
    index[1500:] = 9
    with pytest.raises(IndexError, match="index 9 at position 1500 is out of bounds for size 5"):
        gather(np.zeros((50, 5), np.float32), index, axis=1)


@pytest.mark.sanitizer
@settings(max_examples=40)
@given(
    row=st.lists(st.integers(0, 5), max_size=3),
    shape=st.lists(st.integers(0, 9), max_size=3),
    m=st.integers(1, 40),
    mode=st.sampled_from(["raise", "wrap", "clip"]),
    seed=st.integers(0, 2**31),
)
def test_shapes_and_modes(backend, row, shape, m, mode, seed):
    source = numbers((m, *row), "float32", seed)
    reach = m if mode == "raise" else 5 * m
    index = np.random.default_rng(seed).integers(-reach, reach, shape, dtype=np.int64)
    result = backend(gather, source, index, mode=mode)
    rows = {"raise": index, "wrap": index % m, "clip": np.clip(index, 0, m - 1)}[mode]
    assert_same(result, source[rows])


@pytest.mark.parametrize("n", [1, 63, 64, 65, 4095, 4096, 4097, 200_000])
def test_lengths(backend, n):
    source = numbers((1000,), "float32")
    index = np.random.default_rng(n).integers(-1000, 1000, n, dtype=np.int32)
    assert_same(backend(gather, source, index), source[index])


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("row_bytes", [1, 2, 4, 8, 16, 24])
def test_sources_past_the_cache_on_the_host(row_bytes, dtype, mode):
    m = (3 << 20) // row_bytes
    source = numbers((m, row_bytes), "uint8")
    for n in 127, 128, 129, 1000, 20_000:
        index = np.random.default_rng(n).integers(-m, m, n, dtype=dtype)
        wanted = np.clip(index, 0, m - 1) if mode == "clip" else index
        assert_same(gather(source, index, mode=mode), source[wanted])
        if mode == "raise":
            index[n * 2 // 3] = -m - 1
            with pytest.raises(IndexError, match=f"index {-m - 1} at position {n * 2 // 3} is out"):
                gather(source, index)


@pytest.mark.parametrize("bad", [5, -6, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("position", [0, 3, 99_999])
def test_bad_index(backend, bad, position):
    index = np.zeros(100_000, np.int32)
    index[position] = bad
    message = f"gather: index: index {bad} at position {position} is out of bounds for size 5$"
    with pytest.raises(IndexError, match=message):
        backend(gather, numbers((5, 3), "float32"), index)
        cuplug.synchronize()


def test_first_of_many_bad_indices_on_the_host():
    index = np.zeros(500_000, np.int64)
    index[70_001:] = 2**40
    for _ in range(5):
        with pytest.raises(IndexError, match="index 1099511627776 at position 70001 is out of"):
            gather(np.zeros(5, np.float32), index)


def test_works_again_after_a_bad_index(backend):
    source = numbers((5,), "float32")
    with pytest.raises(IndexError):
        backend(gather, source, np.array([9], np.int32))
        cuplug.synchronize()
    assert_same(backend(gather, source, np.array([4], np.int32)), source[[4]])


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
def test_empty_axis(backend, mode):
    source = np.empty((0, 2), np.float32)
    assert backend(gather, source, np.empty((3, 0), np.int32), mode=mode).shape == (3, 0, 2)
    with pytest.raises(IndexError, match="gather: source: got an empty axis 0, expected at least"):
        backend(gather, source, np.array([0], np.int32), mode=mode)


def test_row_of_no_bytes_still_checks_the_index(backend):
    source = np.empty((3, 0), np.float32)
    assert backend(gather, source, np.arange(-3, 3).repeat(100)).shape == (600, 0)
    assert backend(gather, source, np.array([1, -3], np.int32)).shape == (2, 0)
    with pytest.raises(IndexError, match="index 3 at position 1 is out of bounds for size 3"):
        backend(gather, source, np.array([1, 3], np.int32))
        cuplug.synchronize()


@pytest.mark.parametrize("offset", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("row", [4, 16, 48, 7])
def test_views_at_any_address(backend, offset, row):
    if backend.name in ("staged", "own"):
        pytest.skip("copies are aligned")
    buffer = backend.put(np.random.default_rng(0).integers(0, 255, 40 * row + 16, dtype=np.uint8))
    source = buffer[offset : offset + 40 * row].reshape(40, row)
    index = backend.put(np.arange(-40, 40, 3, dtype=np.int32))
    result = backend.take(gather(source, index, **backend.keywords))
    assert_same(result, backend.take(source)[np.arange(-40, 40, 3)])


@pytest.mark.sanitizer
@pytest.mark.parametrize("index_from", range(4))
@pytest.mark.parametrize("out_from", range(4))
@pytest.mark.parametrize("n", [3, 4, 1022])
@pytest.mark.parametrize(("dtype", "index_dtype"), [("float32", "int32"), ("uint8", "int64")])
def test_indices_and_outputs_at_any_element(backend, index_from, out_from, n, dtype, index_dtype):
    if backend.name in ("staged", "own"):
        pytest.skip("copies are aligned")
    source = numbers((300,), dtype)
    index = np.random.default_rng(n).integers(-300, 300, n + index_from).astype(index_dtype)
    wanted = np.zeros(n + out_from + 1, dtype)
    wanted[out_from:-1] = source[index[index_from:]]
    out = backend.put(np.zeros_like(wanted))
    arrays = (backend.put(source), backend.put(index)[index_from:])
    gather(*arrays, out=out[out_from:-1], **backend.keywords)
    assert_same(backend.take(out), wanted)


@pytest.mark.parametrize("position", [0, 1, 1027])
def test_the_others_beside_a_bad_index(backend, position):
    source, index = numbers((300,), "float32"), np.arange(1028, dtype=np.int32) % 300
    index[position] = 300
    out = backend.put(np.zeros(1028, np.float32))
    with pytest.raises(IndexError, match=f"index 300 at position {position} is out of bounds"):
        gather(backend.put(source), backend.put(index), out=out, **backend.keywords)
        cuplug.synchronize()
    if backend.name not in ("host", "staged"):
        wanted = np.where(index == 300, 0, source[index % 300]).astype(np.float32)
        assert_same((contents if backend.name == "own" else backend.take)(out), wanted)


@pytest.mark.parametrize("n", [44, 45])
def test_the_others_beside_a_bad_column(backend, n):
    source, index = numbers((500, 9), "float32") + 1, np.arange(n) % 18 - 9
    index[[0, 7, 43]] = 9, -10, 2**40
    out = backend.put(np.zeros((500, n), np.float32))
    with pytest.raises(IndexError, match=r"index \S+ at position \d+ is out of bounds for size 9"):
        gather(backend.put(source), backend.put(index), axis=1, out=out, **backend.keywords)
        cuplug.synchronize()
    if backend.name not in ("host", "staged"):
        is_bad = (index < -9) | (index >= 9)
        wanted = np.where(is_bad, 0, source[:, np.where(is_bad, 0, index)])
        assert_same((contents if backend.name == "own" else backend.take)(out), wanted)


@pytest.mark.large
@pytest.mark.gpu
def test_beyond_32_bits():

    source = np.zeros(2**31 + 10, np.int8)
    source[-1] = 7
    on_gpu = cuplug.asarray(source, device="cuda")
    index = cuplug.asarray(np.array([2**31 + 9, -1], np.int64), device="cuda")
    assert gather(on_gpu, index).numpy().tolist() == [7, 7]


def test_messages_show_indices_beyond_int64():
    for index in (2**63 + 5, 2**64 - 1, 3):
        with pytest.raises(IndexError, match=f"index {index} at position 1 is out of bounds"):
            gather(np.arange(3.0), np.array([0, index], "uint64"))
