# SPDX-License-Identifier: Apache-2.0
"""Cumulative sums and products, and their gradients, compared with NumPy."""

import numpy as np
import pytest
from backends import COMPLEX, FLOATING, assert_same, dtype_of
from cuplug.ops import (
    cumulative_prod,
    cumulative_prod_backward,
    cumulative_sum,
    cumulative_sum_backward,
)
from hypothesis import given, settings
from hypothesis import strategies as st

DTYPES = ["int32", "int64", "uint32", "uint64", *FLOATING, *COMPLEX]
SHAPES = [(1,), (41,), (3, 0, 2), (0, 3), (7, 300), (3, 5, 40), (4, 17, 9)]


def numbers(shape, dtype, seed=0) -> np.ndarray:
    """Return ones and minus ones, and zeros: their sums and products are exact."""
    random = np.random.default_rng(seed)
    dtype = dtype_of(dtype)
    x = random.integers(0 if dtype.kind == "u" else -1, 2, shape)
    return np.asarray(x + 1j * (x == 0) if dtype.kind == "c" else x, dtype)


def computed(x) -> np.ndarray:
    """Return 16-bit floats as float32."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 else x


def wanted(function, x, axis, include_initial=False) -> np.ndarray:
    wide = computed(x)
    found = function(wide, axis, dtype=wide.dtype)
    if include_initial:
        shape = list(x.shape)
        shape[axis] = 1
        found = np.concatenate([np.full(shape, function is np.cumprod, wide.dtype), found], axis)
    return found.astype(x.dtype)


def wanted_back(grad, axis, include_initial=False) -> np.ndarray:
    sums = np.flip(np.cumsum(np.flip(computed(grad), axis), axis), axis).astype(grad.dtype)
    return np.take(sums, range(include_initial, grad.shape[axis]), axis)


def check(backend, x, axis, include_initial):
    result = backend(cumulative_sum, x, axis, include_initial)
    assert_same(result, wanted(np.cumsum, x, axis, include_initial))
    result = backend(cumulative_prod, x, axis, include_initial)
    assert_same(result, wanted(np.cumprod, x, axis, include_initial))
    if x.dtype.kind in "fc" and x.shape[axis] >= include_initial:
        result = backend(cumulative_sum_backward, x, axis, include_initial)
        assert_same(result, wanted_back(x, axis, include_initial))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_dtype(backend, dtype, shape):
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    for axis in range(-1, len(shape) - 1):
        check(backend, numbers(shape, dtype), axis, False)
        check(backend, numbers(shape, dtype), axis, True)


@pytest.mark.sanitizer
@settings(max_examples=30)
@given(
    shape=st.lists(st.integers(0, 50), min_size=1, max_size=3),
    dtype=st.sampled_from(["int32", "float16", "float32", "complex64", "complex128"]),
    include_initial=st.booleans(),
    data=st.data(),
)
def test_shapes_and_axes(backend, shape, dtype, include_initial, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    check(backend, numbers(tuple(shape), dtype), axis, include_initial)


LONG = [((700_000,), 0), ((3, 70_000), 1), ((70_000, 3), 0), ((70_000, 20), 0), ((9, 5000), 0),
        ((70_000, 7), 0), ((6, 131_616), 1), ((2, 16, 5), 1), ((11, 15), 1), ((300, 5000), 0),
        ((2, 1000, 33), 1)]  # fmt: skip


@pytest.mark.parametrize("dtype", ["int64", "float16", "float32", "complex128"])
@pytest.mark.parametrize(("shape", "axis"), LONG, ids=str)
def test_long_lines(backend, dtype, shape, axis):
    """In chunks on the host; by all of a GPU, a block or a thread for each line."""
    check(backend, numbers(shape, dtype), axis, False)
    check(backend, numbers(shape, dtype), axis, True)


def test_windows_of_tiles(backend):
    """A GPU first combines the totals of 2,621,440 elements of 4 bytes."""
    for n in (2_621_441, 7_000_000):
        check(backend, numbers((n,), "float32"), 0, False)


def test_the_same_bits_again(backend):
    x = np.random.default_rng(0).standard_normal(5_000_003).astype(np.float32)
    first = np.asarray(backend(cumulative_sum, x))
    for _ in range(5):
        np.testing.assert_array_equal(backend(cumulative_sum, x), first)


def test_integers_are_cut_where_there_are_threads(run_python):
    code = """
import cuplug, numpy as np
x = np.random.default_rng(0).integers(-1 << 62, 1 << 62, (3, 200_000))
for axis, lines in ((1, x), (0, x.T.copy())):
    assert np.array_equal(cuplug.ops.cumulative_sum(lines, axis), lines.cumsum(axis))
    assert np.array_equal(cuplug.ops.cumulative_prod(lines, axis), lines.cumprod(axis))
"""
    for n in ("1", "3"):
        done = run_python(code, env={"OMP_NUM_THREADS": n})
        assert not done.returncode, done.stderr


@pytest.mark.parametrize("shape", [(1001, n) for n in (2, 3, 4, 15, 63, 64, 65)], ids=str)
def test_short_lines(backend, shape):
    """On the host, several lines at once; for halves, the lines that fit a block."""
    for dtype in ("int32", "float16", "bfloat16", "float32", "float64", "complex64"):
        if not backend.supports(dtype_of(dtype)):
            continue
        for include_initial in (False, True):
            check(backend, numbers(shape, dtype), 1, include_initial)
            check(backend, numbers(shape, dtype), 0, include_initial)


def test_many_lines(backend):
    check(backend, numbers((3000, 9), "float32"), 1, True)
    check(backend, numbers((2, 5, 4500), "float32"), 1, True)
    for dtype in ("int64", "float16", "float32", "complex128"):
        if backend.supports(dtype_of(dtype)):
            check(backend, numbers((4100, 140), dtype), 1, dtype == "float32")


@pytest.mark.parametrize("dtype", DTYPES)
def test_without_dimensions(backend, dtype):
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    x = np.array(3).astype(dtype_of(dtype))
    for axis in (0, -1):
        assert_same(backend(cumulative_sum, x, axis), x)
        assert_same(backend(cumulative_prod, x, axis), x)
        if x.dtype.kind in "fc":
            assert_same(backend(cumulative_sum_backward, x, axis), x)
    for arguments in ((0, True), (1,), (-2,)):
        with pytest.raises(ValueError, match=r"cumulative_sum: got s = \(\), axis = "):
            backend(cumulative_sum, x, *arguments)


def test_strided_arrays(backend):
    x = numbers((60, 70), "float64").T[::2, ::-3]
    assert_same(backend(cumulative_sum, x, 0), np.cumsum(x, 0))


def test_sums_of_any_numbers(backend):
    x = np.random.default_rng(0).standard_normal((2, 300_000)).astype(np.float32)
    result = backend(cumulative_sum, x)
    np.testing.assert_allclose(result, np.cumsum(x.astype(np.float64), -1), atol=2e-2)


@pytest.mark.parametrize("shape", [(1_000_003,), (3, 200_001), (200_001, 3), (9000, 40), (3000, 9)])
def test_sums_and_products_on_the_host_are_rounded_once(shape):
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1.5, shape).astype("float32")
    factors = np.exp2(random.normal(size=shape) / 30).astype("float32")
    for axis in range(x.ndim):
        wanted = np.cumsum(x, axis, dtype="float64")
        seen = cumulative_sum(x, axis, device="cpu")
        np.testing.assert_allclose(seen, wanted, rtol=6e-8, atol=1e-9)
        wanted = np.cumprod(factors, axis, dtype="float64")
        seen = cumulative_prod(factors, axis, device="cpu")
        np.testing.assert_allclose(seen, wanted, rtol=6e-8)


def check_in_order(function, operator, x, rtol=0):
    """Compare with NumPy, which adds sequentially."""
    with np.errstate(all="ignore"):
        for each, axis in ((x, 0), (np.stack([x, x]), 1), (np.stack([x, x], 1), 0)):
            wanted = function(each, axis)
            np.testing.assert_allclose(operator(each, axis, device="cpu"), wanted, rtol=rtol)


@pytest.mark.parametrize("shift", range(4))
@pytest.mark.parametrize("n", [40, 300_001])
def test_the_order_on_the_host_makes_no_infinity_and_no_zero(n, shift):
    sums = np.tile([-1e308, 1e308, 1e308, -1e308], n)[:n]
    check_in_order(np.cumsum, cumulative_sum, np.r_[np.zeros(shift), sums])
    high, top = 2.0**100, 2.0**1000
    for number, dtype in ((high, "float32"), (top, "float64"), (high, "complex64"),
                          (2.0**500, "complex128"), (high, dtype_of("bfloat16"))):  # fmt: skip
        factors = np.tile([1 / number, number, number, 1 / number], n)[:n]
        x = np.r_[np.ones(shift), factors].astype(dtype)
        if x.dtype.itemsize == 2:
            seen = cumulative_prod(x, device="cpu").astype("float32")
            np.testing.assert_array_equal(seen, np.cumprod(x.astype("float32")))
        else:
            check_in_order(np.cumprod, cumulative_prod, x)


@pytest.mark.parametrize("value", [0.0, -0.0, np.inf, -np.inf, np.nan])
def test_infinities_and_zeros_of_elements_on_the_host(value):
    x = np.r_[np.full(65_000, 2.0), np.full(150_000, 0.5), np.full(200_000, 2.0)]
    for at in (0, 65_807, 65_808, 180_000, 414_999):
        changed = x.copy()
        changed[at] = value
        check_in_order(np.cumprod, cumulative_prod, changed)
        check_in_order(np.cumsum, cumulative_sum, changed, 1e-12)


def test_16_bit_sums_do_not_stop(backend):
    """Added in 16 bits, they would stay at 2048."""
    result = backend(cumulative_sum, np.ones(5000, np.float16))
    assert_same(result, np.arange(1, 5001, dtype=np.float32).astype(np.float16))


def test_integers_wrap_around(backend):
    x = np.full(3, 2**62, np.int64)
    assert backend(cumulative_sum, x).tolist() == [2**62, -(2**63), -(2**62)]


@pytest.mark.parametrize("n", [1, 3, 100_000])
def test_infinities(backend, n):
    x = np.ones(2 * n)
    x[n] = np.inf
    assert_same(backend(cumulative_sum, x), np.cumsum(x))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("n", [5, 300_000])
def test_complex_products_are_not_searched_for_infinities(backend, dtype, n):
    """The product of an infinity and 1 is infinite in C, and NaN in NumPy and on GPUs."""
    x = np.ones(n, dtype)
    x[:3] = 2, complex(np.inf, np.inf), 1j
    result = backend(cumulative_prod, x)
    assert_same(result[:1], x[:1])
    assert np.isnan([result[1:].real, result[1:].imag]).all()
    x[1] = complex(np.inf, 1)
    wanted = np.cumprod(x[:5])
    assert_same(backend(cumulative_prod, x)[:5], wanted)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", *COMPLEX])
@pytest.mark.parametrize("include_initial", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((1,), 0), ((3, 17), 1), ((5, 20), 0), ((2, 9), 0),
    ((70_000,), 0), ((70_000, 2), 0), ((3, 66_000), 1), ((2, 5000), 0)], ids=str)  # fmt: skip
def test_the_first_value_is_the_first_element(backend, dtype, include_initial, shape, axis):
    """Combined with 0 or 1, -0 would lose its sign, and an infinity would get a NaN part."""
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    x = np.zeros(shape, dtype_of(dtype))
    x[...] = complex(-0.0, -0.0) if x.dtype.kind == "c" else -0.0
    sums = backend(cumulative_sum, x, axis, include_initial)
    sums = np.take(sums, range(include_initial, sums.shape[axis]), axis)
    assert sums.tobytes() == x.tobytes()
    assert backend(cumulative_sum_backward, x, axis).tobytes() == x.tobytes()
    first = np.take(x, [0], axis)
    first[...] = complex(np.inf, -0.0) if x.dtype.kind == "c" else -np.inf
    np.moveaxis(x, axis, 0)[0] = np.take(first, 0, axis)
    products = np.take(backend(cumulative_prod, x, axis, include_initial), [include_initial], axis)
    assert products.tobytes() == first.tobytes()


def test_a_gradient_too_short_is_refused():
    with pytest.raises(ValueError, match="cumulative_sum_backward"):
        cumulative_sum_backward(np.ones((2, 0)), include_initial=True)


def products_backward(grad, x, axis):
    """Return the gradient of products in float64 or complex128: of each pair of elements."""
    grad, x = (np.moveaxis(y, axis, 0) for y in (grad, np.conj(x)))
    wanted = np.zeros(x.shape, np.result_type(x, np.float64))
    for i in range(len(x)):
        for k in range(i, len(x)):
            wanted[i] += grad[k] * np.prod(np.delete(x[: k + 1], i, axis=0), axis=0)
    return np.moveaxis(wanted, 0, axis)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", *COMPLEX])
@pytest.mark.parametrize("initial", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((1,), 0), ((3, 7), 1), ((9, 2), 0), ((2, 5, 3), 1),
    ((0, 3), 0), ((3, 0), 1), ((3, 0), 0)], ids=str)  # fmt: skip
def test_gradients_of_products(backend, dtype, initial, shape, axis):
    """Small integers and zeros, whose results are exact."""
    if not backend.supports(dtype_of(dtype)):
        pytest.skip(f"{backend.name} has no {dtype}")
    random = np.random.default_rng(0)
    x = random.integers(-1, 3, shape).astype(dtype_of(dtype))
    longer = tuple(n + (initial and k == axis) for k, n in enumerate(shape))
    grad = random.integers(-2, 3, longer).astype(x.dtype)
    if x.dtype.kind == "c":
        x, grad = x + 1j * random.integers(-1, 2, shape), grad * (1 - 1j)
    x, grad = x.astype(dtype_of(dtype)), grad.astype(dtype_of(dtype))
    seen = backend(cumulative_prod_backward, grad, x, axis, initial)
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    own = np.take(grad, range(initial, grad.shape[axis]), axis).astype(wide)
    np.testing.assert_array_equal(seen.astype(wide), products_backward(own, x.astype(wide), axis))


def test_a_gradient_of_other_products_is_refused():
    with pytest.raises(ValueError, match="cumulative_prod_backward: grad: got size 3 in dim"):
        cumulative_prod_backward(np.ones((3, 2)), np.ones((4, 2)), 1)
    with pytest.raises(ValueError, match="cumulative_prod_backward"):
        cumulative_prod_backward(np.ones(4), np.ones(4), include_initial=True)
