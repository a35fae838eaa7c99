# SPDX-License-Identifier: Apache-2.0
"""Methods of cuplug.Array, compared with the methods of NumPy arrays."""

import cuplug
import numpy as np
import pytest
from cuplug import array_api as xp

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
DTYPES = ["float64", "float32", "int64", "uint8", "complex64"]


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def values(dtype, shape=(3, 4, 1)):
    x = np.random.default_rng(0).integers(0, 9, shape).astype(dtype)
    return x + np.asarray(1j, dtype) * x[::-1] if x.dtype.kind == "c" else x


def same(seen, wanted):
    assert isinstance(seen, cuplug.Array)
    assert seen.dtype == wanted.dtype
    np.testing.assert_allclose(seen.numpy(), wanted, rtol=1e-6)


OF_NUMBERS = {
    "astype": lambda x: x.astype("complex128"),
    "conj": lambda x: x.conj(),
    "copy": lambda x: x.copy(),
    "flatten": lambda x: x.flatten(),
    "mean": lambda x: x.mean(axis=0),
    "mean of all": lambda x: x.mean(),
    "mean in a dtype": lambda x: x.mean(dtype="complex128"),
    "nonzero": lambda x: x.nonzero()[0],
    "prod": lambda x: x[:2].prod(1, keepdims=True),
    "ravel": lambda x: x.ravel(),
    "ravel of a turned array": lambda x: x.transpose().ravel(),
    "real and imag": lambda x: x.real - x.imag,
    "repeat": lambda x: x.repeat(2, axis=1),
    "repeat all": lambda x: x.repeat(2),
    "reshape": lambda x: x.reshape(2, -1),
    "reshape by a tuple": lambda x: x.reshape((2, 6)),
    "round": lambda x: x.round(),
    "round to tens": lambda x: x.round(-1),
    "squeeze": lambda x: x.squeeze(),
    "squeeze an axis": lambda x: x.squeeze(axis=2),
    "sum": lambda x: x.sum(axis=(0, 2)),
    "sum in a dtype": lambda x: x.sum(dtype="complex128"),
    "swapaxes": lambda x: x.swapaxes(0, -1),
    "take": lambda x: x.take([2, 0, 0], axis=1),
    "take of all": lambda x: x.take([0, -1]),
    "transpose": lambda x: x.transpose(),
    "transpose by axes": lambda x: x.transpose(1, 0, 2),
    "transpose by a tuple": lambda x: x.transpose((2, 0, 1)),
}
OF_REAL_NUMBERS = {
    "all": lambda x: x.all(axis=1),
    "any": lambda x: x.any(),
    "argmax": lambda x: x.argmax(axis=1),
    "argmin": lambda x: x.argmin(),
    "argsort": lambda x: np.take_along_axis(values("float64"), _numpy(x.argsort(1)), 1),
    "clip": lambda x: x.clip(2, 5),
    "cumprod": lambda x: x.cumprod(axis=1),
    "cumsum": lambda x: x.cumsum(),
    "divmod": lambda x: divmod(x, 3)[1],
    "max": lambda x: x.max(axis=0, keepdims=True),
    "min": lambda x: x.min(),
    "std": lambda x: x.std(axis=1, ddof=1),
    "var": lambda x: x.var(),
    "var in a dtype": lambda x: x.var(dtype="float64"),
}


def _numpy(x):
    return x.numpy() if isinstance(x, cuplug.Array) else x


@pytest.mark.sample(10)
@pytest.mark.parametrize("name", [*OF_NUMBERS, *OF_REAL_NUMBERS])
@pytest.mark.parametrize("dtype", DTYPES)
def test_methods_are_those_of_numpy(name, dtype, device):
    if dtype == "complex64" and name in OF_REAL_NUMBERS:
        pytest.skip("of real numbers")
    method = OF_NUMBERS.get(name) or OF_REAL_NUMBERS[name]
    x = values(dtype)
    seen, wanted = method(cuplug.asarray(x, device=device)), method(x)
    same(cuplug.asarray(seen), np.asarray(wanted))


def test_rounded_to_decimals(device):
    x = np.array([-1.25, 0.125, 0.375, 2.5, 1e300, np.inf, np.nan])
    same(cuplug.asarray(x, device=device).round(2), x.round(2))
    same(cuplug.asarray(x, device=device).round(decimals=-1), x.round(-1))


def test_parts_of_complex_numbers_are_rounded(device):
    x = np.array([-1.25 + 0.5j, 2.5 - 3.5j, complex(np.nan, -0.0), 7j])
    same(cuplug.asarray(x, device=device).round(), x.round())
    same(cuplug.asarray(x, device=device).round(1), x.round(1))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("decimals", [2, 5, 60, 300, -60, -300])
def test_what_cannot_be_scaled_is_rounded(device, dtype, decimals):
    """NumPy returns infinities and NaN."""
    x = np.array([np.finfo(dtype).max, 0, -0.0, 700.5, np.inf, -1.25], dtype)
    seen = cuplug.asarray(x, device=device).round(decimals).numpy()
    few = np.array([round(float(v), decimals) if np.isfinite(v) else v for v in x])
    np.testing.assert_allclose(seen, few.astype(dtype), rtol=np.finfo(dtype).eps)
    assert (np.signbit(seen) == np.signbit(x)).all()


def test_results_go_to_arrays_that_hold_them():
    x = cuplug.asarray(np.array([0.5, 1.5]), device="cpu")
    whole = cuplug.asarray(np.zeros((), int), copy=True, device="cpu")
    with pytest.raises(TypeError, match="out: got elements of int64, expected an array that holds"):
        x.sum(out=whole)
    narrow = cuplug.asarray(np.zeros((), "float32"), copy=True, device="cpu")
    assert float(x.sum(out=narrow)) == 2.0


def test_values_of_python(device):
    x = cuplug.asarray(values("float32", (2, 3)), device=device)
    assert x.tolist() == values("float32", (2, 3)).tolist()
    assert x.tobytes() == values("float32", (2, 3)).tobytes()
    assert x.itemsize == 4
    assert type(x[0, 0].item()) is float
    assert x[:1, :1].item() == x.numpy()[0, 0]
    assert f"{x.mean() / 3:.2f}" == f"{x.numpy().mean() / 3:.2f}"
    assert f"{x}" == str(x) == str(x.numpy())
    assert f"{x[0, 0]}" == str(x.numpy()[0, 0])
    assert str(cuplug.asarray(np.arange(1e5), device=device)) == str(np.arange(1e5))
    assert round(x[0, 0] / 3, 2) == round(x.tolist()[0][0] / 3, 2)
    assert type(round(x[0, 0])) is int
    out = np.empty((2, 3), np.float32)
    assert (2 * x).get(out=out) is out
    np.testing.assert_array_equal(out, (2 * x).get())
    assert x.numpy()[1, 2] in x
    assert -1 not in x
    assert "a" not in x
    assert x.std(correction=1).item() == x.std(ddof=1).item() > x.std().item()


def test_changes_in_place(device):
    host = values("int64", (4, 5))
    x = cuplug.asarray(host, device=device, copy=True)
    x.sort(axis=0)
    same(x, np.sort(host, axis=0))
    x.sort(descending=True)
    same(x, -np.sort(-np.sort(host, axis=0)))
    x[:, 1:3].fill(7)
    assert (x[:, 1:3] == 7).all()
    z = cuplug.asarray(values("complex64"), device=device, copy=True)
    z.real.fill(1)  # a view
    z.imag[0] = 2
    same(z[0], np.full((4, 1), 1 + 2j, "complex64"))


def test_parts_of_complex_numbers_are_views(device):
    z = cuplug.asarray(values("complex64"), device=device, copy=True)
    xp = z.__array_namespace__()
    xp.real(z).fill(3)
    xp.imag(z)[0] = 4
    same(z[0], np.full((4, 1), 3 + 4j, "complex64"))
    x = cuplug.asarray(values("float32"), device=device)
    xp.real(x).fill(0)  # a copy
    same(x, values("float32"))
    with pytest.raises(TypeError, match="imag: got float32, expected numbers of the kind complex"):
        xp.imag(x)


def test_the_end_of_an_iteration(device):
    rows = iter(cuplug.asarray(values("float32")[:, :, 0], device=device))
    for wanted in values("float32")[:, :, 0]:
        same(next(rows), wanted)
    with pytest.raises(StopIteration):
        next(rows)
    assert list(cuplug.empty((0, 3), device=device)) == []
    with pytest.raises(TypeError, match="iteration over an array without dimensions"):
        iter(cuplug.empty((), device=device))


def test_outputs_that_are_given(device):
    x = cuplug.asarray(values("float64"), device=device)
    out = cuplug.empty((4, 1), "float32", device=device)
    assert x.sum(axis=0, out=out) is out
    same(out, values("float64").sum(0).astype("float32"))
    with pytest.raises(
        TypeError, match=r"out: got shape \(4, 1\), expected a cuplug.Array of \(\)"
    ):
        x.sum(out=out)
    with pytest.raises(TypeError, match=r"out: got ndarray, expected a cuplug.Array of \(\)"):
        x.sum(out=np.empty(()))


def test_functions_of_numpy_that_ask_for_methods(device):
    x = cuplug.asarray(values("float64"), device=device)
    for function in (np.sum, np.mean, np.std, np.max, np.all, np.argmin, np.cumsum, np.round):
        same(function(x), np.asarray(function(values("float64"))))
    same(np.clip(x, 2, 5), values("float64").clip(2, 5))


def test_integers_where_functions_are_of_floats(device):
    x = cuplug.asarray(values("int64"), device=device)
    for name in ("sqrt", "exp", "sin", "expm1", "signbit"):
        same(getattr(xp, name)(x), getattr(np, name)(values("int64")))
    same(xp.mean(x > 3), np.mean(values("int64") > 3))
    with pytest.raises(TypeError, match="sqrt: got bool, expected numbers of the kind float"):
        xp.sqrt(x > 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: x.item(), r"item: got shape \(3, 4, 1\), expected one element"),
        (lambda x: x.reshape(5), r"reshape: shape: got \(5,\), expected 12 elements"),
        (lambda x: x.reshape("a"), "reshape: shape: got 'a', expected an integer or a sequence"),
        (lambda x: x.round(400), "round: decimals: got 400, expected -308 to 308"),
        (lambda x: x.round(0.5), "round: decimals: got 0.5, expected an integer"),
        (lambda x: x.astype("S3"), "astype: dtype: got .S3, expected one of numbers"),
        (lambda x: x.mean(dtype="int32"), "mean: dtype: got int32, expected one of floats"),
        (lambda x: f"{x:.2f}", r"format: got shape \(3, 4, 1\), expected \(\)"),
        (lambda x: x.squeeze(0), "squeeze: axis: got 0 of size 3, expected size 1"),
        (lambda x: x.std(correction="a"), "std: correction: got 'a', expected a number"),
        (lambda x: x.sum(axis=3), "sum: axis: got 3, expected"),
        (lambda x: x.swapaxes(0, 5), "swapaxes: axis: got 5, expected"),
        (lambda x: x.transpose(0), "permute_dims: axes: got"),
        (lambda x: x.take([9], axis=1), "index 9 at position 0 is out of bounds for size 4"),
        (lambda x: cuplug.Array([1, 2]), "make one with cuplug.asarray"),
        (lambda x: x @ x, r"^matmul: x2: got an array of shape \(3, 4, 1\), expected 1 rows"),
        (lambda x: x == [1, 2], "^equal: y: got list, expected a cuplug.Array; use cuplug.asarray"),
        (lambda x: (1, 2) - x, "^subtract: y: got tuple, expected a cuplug.Array"),
        (lambda x: x > 1 and x < 3, r"bool: got shape .*: write x.any\(\) or x.all\(\), and"),
        (lambda x: round(x), r"round: got shape \(3, 4, 1\), expected \(\)"),
        (lambda x: list(x[0, 0, 0]), "^iteration over an array without dimensions"),
        (
            lambda x: x.astype("int64").__iadd__(x),
            "got int64 and float64, which are promoted to float64,",
        ),
    ],
)
def test_bad_arguments_have_sentences(call, message):
    with pytest.raises((TypeError, ValueError, IndexError), match=message):
        call(cuplug.asarray(values("float64"), device="cpu"))


def test_what_is_left_out_says_where_it_is():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'$"):
        xp.nothing  # noqa: B018
    for theirs, ours in {"power": "pow", "cumsum": "cumulative_sum", "array": "asarray"}.items():
        with pytest.raises(AttributeError, match=f"{theirs!r}: the standard calls it {ours}$"):
            getattr(xp, theirs)


def test_products_with_arrays_of_numpy_are_those_of_numpy():
    x = np.arange(6.0).reshape(2, 3)
    ours = cuplug.asarray(x, device="cpu")
    np.testing.assert_array_equal(ours @ x.T, x @ x.T)
    np.testing.assert_array_equal(x.T @ ours, x.T @ x)


@pytest.mark.parametrize("dtype", ["float32", "int16", "uint8"])
def test_ufuncs_of_numpy_compute_where_arrays_are(dtype, device):
    x = np.arange(1, 7).reshape(2, 3).astype(dtype)
    ours = cuplug.asarray(x, device=device)
    seen = {
        "a number first": (np.float64(2) * ours, np.float64(2) * x),
        "a comparison": (np.int64(3) < ours, x > 3),
        "of one": (np.sqrt(ours), np.sqrt(x)),
        "of two": (np.maximum(ours, ours[::-1]), np.maximum(x, x[::-1])),
    }
    for what, (result, wanted) in seen.items():
        assert type(result) is cuplug.Array, what
        assert result.device == ours.device
        assert result.dtype == wanted.dtype
        np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-6)


def test_other_ufuncs_are_computed_by_numpy():
    x = np.arange(4.0)
    ours = cuplug.asarray(x.copy(), device="cpu")
    assert type(x + ours) is np.ndarray
    for found, wanted in (
        (np.add(ours, 1, dtype="float32"), x + 1),
        (np.cbrt(ours), np.cbrt(x)),
        (np.add.accumulate(ours), x.cumsum()),
        (np.multiply.outer(ours, 2), 2 * x),
    ):
        assert type(found) is cuplug.Array
        np.testing.assert_allclose(found.numpy(), wanted)
    for found, wanted in zip(np.modf(ours + 0.5), np.modf(x + 0.5), strict=True):
        assert type(found) is cuplug.Array
        np.testing.assert_array_equal(found.numpy(), wanted)
    out = np.empty(4)
    assert np.add(ours, x, out=out) is out
    np.testing.assert_array_equal(out, 2 * x)
    assert np.multiply(x, 3, out=ours) is ours
    assert ours.tolist() == (3 * x).tolist()
    whole, exponents = cuplug.empty(4, device="cpu"), cuplug.empty(4, "int32", device="cpu")
    assert np.frexp(ours, whole, exponents)[1] is exponents
    np.testing.assert_array_equal(exponents.numpy(), np.frexp(3 * x)[1])
    np.add.at(ours, np.array([0, 0]), 1)
    assert ours.tolist() == [2.0, 3.0, 6.0, 9.0]


@pytest.mark.parametrize("value", [2, 2.5, True, 1 + 2j])
def test_arrays_without_dimensions_have_the_hash_of_their_value(value):
    x = cuplug.asarray(value, device="cpu")
    assert hash(x) == hash(value)
    assert {x: "found"}[value] == "found"
    with pytest.raises(TypeError, match=r"hash: got shape \(1,\), expected \(\)"):
        hash(cuplug.asarray([value], device="cpu"))


def test_reductions_and_outputs_of_ufuncs_are_ours():
    x = np.arange(6.0).reshape(2, 3)
    ours = cuplug.asarray(x.copy(), device="cpu")
    for function in (np.add, np.multiply, np.maximum, np.minimum, np.logical_or):
        for keywords in ({}, {"axis": None}, {"axis": 1, "keepdims": True}):
            found = function.reduce(ours, **keywords)
            assert type(found) is cuplug.Array
            np.testing.assert_array_equal(found.numpy(), function.reduce(x, **keywords))
    out = cuplug.empty((2, 3), device="cpu")
    assert np.subtract(ours, 1, out=out) is out
    assert out.tolist() == (x - 1).tolist()
    with pytest.raises(ValueError, match="out: got shape"):
        np.subtract(ours, 1, out=out[0])
    with pytest.raises(TypeError, match="out: got int32, expected an array that holds float64"):
        np.subtract(ours, 1, out=out.astype("int32"))
    z = ours * 1j
    for call in (np.maximum.reduce, np.maximum.accumulate, lambda z: np.fmax(z, z)):
        with pytest.raises(TypeError, match="expected real numbers; use"):
            call(z)


@pytest.mark.parametrize("number", [-1, 0, 255, 256, -(2**70), 2**70])
def test_integers_compare_with_those_that_their_dtype_has_not(number, device):
    x = np.array([0, 7, 255], "uint8")
    ours = cuplug.asarray(x, device=device)
    for name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
        wanted = [getattr(int(each), name)(number) for each in x]
        assert getattr(ours, name)(number).tolist() == wanted, name
    assert (number < ours).tolist() == [number < int(each) for each in x]


@pytest.mark.parametrize("wanted", ["float64", "f8", float, np.float64, np.dtype(">f8")])
def test_dtypes_by_all_their_names(wanted):
    x = cuplug.asarray(np.array([[1, 2], [3, 4]], np.int32), device="cpu").T
    for _ in range(3):  # the earlier result is used again
        found = xp.astype(x, wanted)
        assert found.dtype == np.float64
        assert found.tolist() == x.astype(wanted).tolist() == [[1, 3], [2, 4]]
        assert xp.astype(x, "int32").strides == (8, 4)  # of its own dtype: in C order
        for other in (5, None, "floating", object):
            with pytest.raises(TypeError, match="astype: dtype"):
                xp.astype(x, other)


def test_item_by_number_and_position(device):
    x = values("float64")[..., 0]
    own = cuplug.asarray(x, device=device)
    for index in ((3,), (-1,), (1, 2), ((1, -2),), (np.int64(5),)):
        found = own.item(*index)
        assert type(found) is float
        assert found == x.item(*index)
    assert own[0, 0].item(()) == own[:1, :1].item(0) == x[0, 0]
    for index, text in (
        ((12,), "item: index: got 12, expected -12 <= index < 12"),
        ((1, 2, 3), r"item: got 3 indices for shape \(3, 4\), expected 2"),
        ((1.0,), "item: index: got 1.0, expected an integer"),
        ((3, 0), "index 3 is out of bounds"),
    ):
        with pytest.raises((IndexError, ValueError, TypeError), match=text):
            own.item(*index)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "int64"])
def test_products_in_place(device, dtype):
    x, y = values(dtype, (3, 2)), values(dtype, (2, 2))
    own = seen = cuplug.asarray(x.copy(), device=device)
    own @= cuplug.asarray(y, device=device)
    assert own is seen
    same(seen, x @ y)
    if device == "cpu":
        own @= y
        same(seen, x @ y @ y)
    with pytest.raises(ValueError, match="out: got shape"):
        own @= cuplug.asarray(values(dtype, (2, 3)), device=device)
    with pytest.raises(TypeError, match="unsupported operand"):
        own @= 2
    real = cuplug.asarray(np.eye(2), device=device)
    with pytest.raises(TypeError, match="out: got float64, expected an array that holds complex"):
        real @= real.astype("complex128")
