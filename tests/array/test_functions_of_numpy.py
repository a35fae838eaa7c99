# SPDX-License-Identifier: Apache-2.0
"""Functions of NumPy, called with cuplug arrays: correct, or an error that names an alternative."""

import cuplug
import numpy as np
import pytest
from cuplug import array_api as xp

# For arrays on a device: run as text on an emulated GPU, and in this process.
BODY = """
import cuplug
import numpy as np

x = cuplug.asarray(np.arange(6.0).reshape(2, 3), device=DEVICE)
y = cuplug.asarray(np.array([[0, 1, 2], [3, 4, 6.0]]), device=DEVICE)
n = cuplug.asarray(np.array([1, np.nan]), device=DEVICE)
row = cuplug.asarray(np.ones((1, 3)), device=DEVICE)
assert np.array_equal(x, x) is True and np.array_equal(x, y) is False
assert np.array_equal(x, x[:1]) is False and np.array_equal(x, x.numpy()) is True
assert np.array_equal(n, n) is False and np.array_equal(n, n, equal_nan=True) is True
assert np.array_equiv(row, np.ones((2, 3))) is True and np.array_equiv(x, x[:1]) is False
assert np.array_equiv(x, row[:, :2]) is False
assert float(np.sum(x)) == 15 and np.shape(x) == (2, 3) and np.ndim(x) == 2 and np.size(x) == 6
assert np.mean(x, axis=0).device == x.device
for found in (np.where(x > 2, x, 0), np.expand_dims(x, 0), np.broadcast_to(x, (4, 2, 3))):
    assert type(found) is cuplug.Array and found.device == x.device
for made in (np.zeros((2, 3), like=x), np.asarray([1, 2], like=x), np.arange(3, like=x)):
    assert type(made) is cuplug.Array and made.device == x.device
np.testing.assert_array_equal(np.where(x > 2, x, -1).numpy(), [[-1, -1, -1], [3, 4, 5]])
for call in (lambda: np.sort_complex(x), lambda: np.apply_over_axes(sum, x, 0),
             lambda: np.i0(x), lambda: np.polydiv(n, n)):
    try:
        call()
    except TypeError as error:
        assert "numpy." in str(error) and "use x.numpy()" in str(error), error
    else:
        raise AssertionError("nothing raised")
"""
# Functions that use stock plugins and cuBLAS.
MORE = """
if x.device.type == "cuda":
    try:
        np.concatenate([x, y.numpy()])
    except TypeError as error:
        assert "cuplug.asarray" in str(error), error
    else:
        raise AssertionError("nothing raised")
assert float(np.linalg.norm(x)) == float(np.sqrt(np.sum(x * x)))
assert type(np.linalg.norm(x, axis=1)) is type(np.linalg.norm(x, 1, (0, 1))) is cuplug.Array
same = np.empty_like(x)
np.copyto(same, x)
assert np.allclose(same, x) is True and np.copy(x).device == x.device
assert np.concatenate((x, y), 1).shape == (2, 6) and np.tile(x, 2).shape == (2, 6)
for found in (np.median(x), np.kron(x, x), np.pad(x, 1), np.diff(x, 1, 0), np.roll(x, 1, axis=0),
              np.where(x > 2)[0], np.tril(x, -1), np.expand_dims(x, (0, 2)), np.flip(x, 1),
              np.isin(x, [1, 2]), np.histogram(x, 3)[0], np.moveaxis(x, 0, 1), np.zeros_like(x),
              np.full_like(x, 7), np.meshgrid(n, n)[0], np.broadcast_arrays(x, row)[1]):
    assert type(found) is cuplug.Array and found.device == x.device
"""


@pytest.mark.gpu
def test_on_a_gpu():
    exec((BODY + MORE).replace("DEVICE", "'cuda'"), {})


@pytest.mark.slow
def test_on_an_emulated_gpu(run_emulated):
    install = "from emulation import install_expressions\ninstall_expressions()\n"
    run_emulated(install + BODY.replace("DEVICE", "'cuda'"))


def test_on_the_host():
    exec((BODY + MORE).replace("DEVICE", "'cpu'"), {})
    x = cuplug.asarray(np.arange(6.0).reshape(2, 3), device="cpu")
    theirs = np.arange(6.0).reshape(2, 3)
    assert np.array_equal(x, theirs + 1) is False
    joined = np.concatenate([x, theirs])
    assert type(joined) is cuplug.Array
    np.testing.assert_array_equal(joined.numpy(), np.concatenate([theirs, theirs]))
    np.testing.assert_allclose(np.linalg.norm(x, axis=0).numpy(), np.linalg.norm(theirs, axis=0))
    np.testing.assert_allclose(np.linalg.inv(x[:, :2]).numpy(), np.linalg.inv(theirs[:, :2]))
    np.testing.assert_allclose(np.fft.rfft(x, axis=0).numpy(), np.fft.rfft(theirs, axis=0))


def test_arrays_of_the_host_are_written_to_files(tmp_path):
    x = cuplug.asarray(np.arange(6.0).reshape(2, 3), device="cpu")
    np.save(tmp_path / "x.npy", x)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), x.numpy())


# ---- Axes, conditions, bounds --------------------------------------------------------------------

OF_AXES = [
    *(xp.sum, xp.max, xp.any, xp.mean, xp.var, xp.argmax, xp.sort, xp.argsort, xp.cumulative_sum),
    *(xp.flip, xp.diff, xp.squeeze, xp.unstack, xp.count_nonzero),
]


@pytest.mark.parametrize("function", OF_AXES, ids=lambda x: x.__name__)
def test_axes_that_are_not_there(function):
    for x in (xp.ones((2, 3), device="cpu"), xp.ones(3, device="cpu")):
        for axis in (x.ndim, -x.ndim - 1, 99):
            with pytest.raises(np.exceptions.AxisError, match=rf"axis: got {axis}, expected -"):
                function(x, axis=axis)
    assert issubclass(np.exceptions.AxisError, ValueError)
    assert issubclass(np.exceptions.AxisError, IndexError)


@pytest.mark.parametrize("dtype", ["bool", "int32", "float16", "float64", "complex64"])
def test_arrays_of_one_element_are_conditions(dtype):
    for shape in ((), (1,), (1, 1, 1)):
        for value in (0, 1):
            assert bool(xp.full(shape, value, dtype=dtype, device="cpu")) is bool(value)
    for shape in ((2,), (0,), (1, 2)):
        with pytest.raises(TypeError, match=r"any\(\) or x.all"):
            bool(xp.ones(shape, dtype=dtype, device="cpu"))


def test_bounds_without_dimensions():
    for number in (np.float32, np.array, np.int16, lambda x: xp.asarray(x, device="cpu")):
        start, stop = number(1), number(5)
        same = xp.linspace(start, stop, 5, device="cpu"), xp.linspace(1, 5, 5, device="cpu")
        np.testing.assert_array_equal(same[0].numpy(), same[1].numpy())
        seen, wanted = xp.arange(start, stop, number(2), device="cpu"), np.arange(1, 5, 2)
        np.testing.assert_array_equal(seen.numpy(), wanted)
    assert xp.arange(np.float32(3), device="cpu").dtype == np.float64
    assert xp.arange(np.uint8(3), device="cpu").dtype == np.int64
    with pytest.raises(TypeError, match="expected a number"):
        xp.arange(xp.ones(2, device="cpu"))


def test_empty_lists_of_lists_select_nothing():
    x, theirs = xp.ones((2, 3), device="cpu"), np.ones((2, 3))
    for key in ([], [[]], [[], []], ([[]], 0)):
        assert x[key].shape == theirs[key].shape


def test_versions_of_the_standard():
    x = xp.ones(1, device="cpu")
    for year in range(2021, 2026):
        assert x.__array_namespace__(api_version=f"{year}.12") is xp
    with pytest.raises(ValueError, match="api_version"):
        x.__array_namespace__(api_version="2020.12")


# ---- Bools ---------------------------------------------------------------------------------------

RAW = np.array([0, 1, 4, 255, 2, 0, 128] * 400, "uint8").view(bool)
PLAIN = RAW.view("uint8") != 0
OF_BOOLS = {
    name: getattr(xp, name)
    for name in (
        *("unique_all", "unique_counts", "unique_inverse", "unique_values", "sort", "argsort"),
        *("sum", "max", "min", "any", "all", "count_nonzero", "argmax", "argmin", "nonzero"),
        *("cumulative_sum", "cumulative_prod", "logical_not", "bitwise_invert", "mean", "abs"),
    )
}
OF_BOOLS |= {
    "equal": lambda x: x == cuplug.asarray(PLAIN[: x.size], device="cpu"),
    "add": lambda x: x + cuplug.asarray(PLAIN[: x.size], device="cpu"),
    "exclusive": lambda x: x ^ cuplug.asarray(PLAIN[: x.size], device="cpu"),
    "descending": lambda x: xp.argsort(x, descending=True),
    "masked": lambda x: xp.arange(x.size, device="cpu")[x],
    "where": lambda x: xp.where(x, 1.0, 2.0),
    "searched": lambda x: xp.searchsorted(xp.sort(x), x, side="right"),
    "multiplied": lambda x: x * 3,
    "converted": lambda x: x.astype("int8"),
    "fused": cuplug.fuse(lambda x: (x + 0).sum()),
    "elementwise": cuplug.elementwise("f(x: bool) -> int32", "x"),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("size", [7, RAW.size])
@pytest.mark.parametrize("name", OF_BOOLS)
def test_bytes_other_than_0_are_true(name, size):
    seen, wanted = (OF_BOOLS[name](cuplug.asarray(x[:size], device="cpu")) for x in (RAW, PLAIN))
    is_one = isinstance(wanted, cuplug.Array)
    for a, b in zip(*((x,) if is_one else x for x in (seen, wanted)), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_bools_are_searched_and_summed_as_in_numpy():
    for values in ([False, True, True], [False], [True, False], [[True, False], [False, True]]):
        theirs = np.array(values)
        x = cuplug.asarray(theirs, device="cpu")
        assert int(x.argmax()) == theirs.argmax()
        assert int(x.argmin()) == theirs.argmin()
        for seen, wanted in ((x.cumsum(), theirs.cumsum()), (x.cumprod(), theirs.cumprod())):
            assert seen.dtype == wanted.dtype
            np.testing.assert_array_equal(seen.numpy(), wanted)


def test_signs_and_clips_are_those_of_numpy():
    inf, nan = float("inf"), float("nan")
    parts = [inf, -inf, nan, 0.0, -2.0, 1e308]
    z = np.array([complex(a, b) for a in parts for b in parts])
    with np.errstate(all="ignore"):
        wanted = np.sign(z)
    seen = xp.sign(cuplug.asarray(z, device="cpu")).numpy()
    is_usual = abs(z) < 1e308  # beyond it NumPy's modulus is infinite
    np.testing.assert_allclose(seen[is_usual], wanted[is_usual])
    is_infinite = np.isinf(z.real) | np.isinf(z.imag)
    np.testing.assert_array_equal(seen[is_infinite], wanted[is_infinite])
    u = np.array([1, 200], "uint8")
    for bounds in ((-1, 1000), (-1, 100), (50, 300), (None, 2**70), (-(2**70), None)):
        clipped = xp.clip(cuplug.asarray(u, device="cpu"), *bounds)
        np.testing.assert_array_equal(clipped.numpy(), np.clip(u, *bounds))
    with pytest.raises(ValueError, match="maximum"):
        xp.clip(cuplug.asarray(u, device="cpu"), 300, None)


MADE = {
    "zeros": lambda **like: np.zeros((2, 3), "int32", **like),
    "ones": lambda **like: np.ones(3, dtype=np.float16, **like),
    "full": lambda **like: np.full((2,), 7, **like),
    "full of a dtype": lambda **like: np.full((), 7, dtype="float32", **like),
    "eye": lambda **like: np.eye(3, 4, 1, "int64", **like),
    "identity": lambda **like: np.identity(3, "uint8", **like),
    "tri": lambda **like: np.tri(3, 4, -1, **like),
    "arange": lambda **like: np.arange(5, **like),
    "arange of four": lambda **like: np.arange(1, 7, 2, "float32", **like),
    "arange by names": lambda **like: np.arange(start=1.0, stop=4, **like),
    "array": lambda **like: np.array([[1, 2.5]], ndmin=3, **like),
    "asarray": lambda **like: np.asarray([True], device="cpu", **like),
    "asanyarray": lambda **like: np.asanyarray((1, 2), dtype="int16", **like),
    "ascontiguousarray": lambda **like: np.ascontiguousarray(np.ones((2, 3)).T, **like),
    "ascontiguousarray of a number": lambda **like: np.ascontiguousarray(3.0, **like),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_arrays_are_made_like_cuplugs(make):
    wanted, made = make(), make(like=xp.ones(1, device="cpu"))
    assert type(made) is cuplug.Array
    assert made.flags.c_contiguous
    assert (made.dtype, made.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(made.numpy(), wanted)


def test_copies_are_made_as_numpy_makes_them():
    x = xp.ones(2, device="cpu")
    np.asarray(x, like=x)[0] = 5
    np.array(x, like=x)[1] = 7
    assert x.tolist() == [5, 1]
    assert np.empty(3, like=x).shape == (3,)
    assert np.asfortranarray(np.ones((2, 3)), like=x).flags.f_contiguous
    assert type(np.fromiter([1.0], float, like=x)) is cuplug.Array


@pytest.mark.parametrize("order", "CFAK")
@pytest.mark.parametrize("turn", [lambda a: a, lambda a: a.T, lambda a: a.transpose(1, 2, 0)])
def test_the_order_in_memory(order, turn):
    theirs = turn(np.arange(24.0).reshape(2, 3, 4))
    mine = turn(xp.reshape(xp.arange(24.0, device="cpu"), (2, 3, 4)))
    pairs = [
        (np.empty_like(mine, order=order), np.empty_like(theirs, order=order)),
        (np.zeros_like(mine, "int8", order), np.zeros_like(theirs, "int8", order)),
        (
            np.full_like(mine, 3, shape=(6, 4), order=order),
            np.full_like(theirs, 3, shape=(6, 4), order=order),
        ),
        (np.ones((2, 3), order="F", like=mine), np.ones((2, 3), order="F")),
    ]
    if order in "CF":
        pairs.append((np.array(mine, order=order, like=mine), np.array(theirs, order=order)))
        pairs.append(
            (np.asarray(mine, "int64", order, like=mine), np.asarray(theirs, "int64", order))
        )
    for found, wanted in pairs:
        assert found.dtype == wanted.dtype
        assert [*found.strides] == [*wanted.strides]
    with pytest.raises(ValueError, match="order"):
        np.empty_like(mine, order="other")


def test_required_flags():
    x = xp.reshape(xp.arange(6, device="cpu"), (2, 3))
    assert np.require(x, "float32", "F", like=x).flags.f_contiguous
    owner = np.require(x.T, requirements=["C", "OWNDATA"], like=x)
    assert owner.flags.c_contiguous
    assert owner.base is None
    for bad, error in (("Q", KeyError), (["C", "F"], ValueError)):
        with pytest.raises(error, match="require"):
            np.require(x, None, bad, like=x)


def test_the_dtype_of_einsum():
    x = xp.asarray(np.arange(6, dtype="float32").reshape(2, 3), device="cpu")
    found = np.einsum("ij,kj", x, x, dtype="float64")
    np.testing.assert_array_equal(found.numpy(), (x @ x.T).numpy())
    assert found.dtype == np.float64
    assert np.einsum("ij->", x, dtype="float16", casting="same_kind").dtype == np.float16
    with pytest.raises(TypeError, match="einsum: dtype: got int32, expected one that float32"):
        np.einsum("ij->", x, dtype="int32")
