# SPDX-License-Identifier: Apache-2.0
"""einops, opt_einsum and pandas on arrays, on the device of the arrays, with NumPy's values."""

import cuplug
import numpy as np
import pytest

GPU = [pytest.mark.gpu, pytest.mark.sanitizer]
DEVICES = ["cpu", pytest.param("cuda", marks=GPU)]
CUBE = np.arange(24.0).reshape(2, 3, 4) - 5


def same(found, wanted):
    assert isinstance(found, cuplug.Array)
    np.testing.assert_allclose(found.numpy(), wanted)


@pytest.mark.parametrize("device", DEVICES)
def test_einops(device):
    einops = pytest.importorskip("einops")
    given, x = pytest.importorskip("einops.array_api"), cuplug.asarray(CUBE, device=device)
    for pattern in ("a b c -> b a c", "a b c -> a (b c)", "a b (c d) -> d c (a b)"):
        sizes = {"d": 2} if "d" in pattern else {}
        same(given.rearrange(x, pattern, **sizes), einops.rearrange(CUBE, pattern, **sizes))
    for name in ("sum", "mean", "max", "min", "prod"):
        pattern = "a b c -> b"
        same(given.reduce(x, pattern, name), einops.reduce(CUBE, pattern, name))
    same(given.repeat(x, "a b c -> a d b c", d=2), np.repeat(CUBE[:, None], 2, axis=1))
    packed, shapes = given.pack([x, x[0]], "* b c")
    same(packed, np.concatenate([CUBE, CUBE[:1]]))
    for part, wanted in zip(given.unpack(packed, shapes, "* b c"), (CUBE, CUBE[0]), strict=True):
        same(part, wanted)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("subscripts", "n"),
    [
        ("bij,bkj->bik", 2),
        ("bij,bkj,bkl->il", 3),
        ("abc->ca", 1),
        ("abc,abc->", 2),
        ("abc,d->dab", 2),
    ],
)
def test_opt_einsum(device, subscripts, n):
    contract = pytest.importorskip("opt_einsum").contract
    arrays = [CUBE, CUBE, CUBE][:n]
    if subscripts.endswith("d->dab"):
        arrays[1] = CUBE[0, 0]
    found = contract(subscripts, *(cuplug.asarray(x, device=device) for x in arrays))
    same(found, np.einsum(subscripts, *arrays))


def test_pandas():
    pandas = pytest.importorskip("pandas")
    rows = np.array([[1.0, 2, 3], [4, 5, 6]])
    x = cuplug.asarray(rows, device="cpu")
    frame = pandas.DataFrame({"a": x[0]}).assign(b=x[1])
    np.testing.assert_array_equal(frame.to_numpy(), rows.T)
    np.testing.assert_array_equal(pandas.DataFrame(x).to_numpy(), rows)
    series = pandas.Series(x[0])
    assert series.dtype == "float64"
    for found in (series + x[1], x[1] + series):
        assert isinstance(found, pandas.Series)
        np.testing.assert_array_equal(found, rows.sum(axis=0))
    np.testing.assert_array_equal(series < x[1], [True] * 3)
    np.testing.assert_array_equal(series.where(x[0] > 1, 0.0), [0, 2, 3])
    np.testing.assert_array_equal(pandas.isna(x[0]), [False] * 3)
    for values in (x[0], cuplug.asarray(np.array([3, 1]), device="cpu"), x[1]):
        np.testing.assert_array_equal(series.isin(values), series.isin(values.numpy()))
    for values in (series, frame):
        same(cuplug.asarray(values, device="cpu"), values.to_numpy())


def test_pyarrow():
    pyarrow = pytest.importorskip("pyarrow")
    for dtype in ("int64", "float32", "uint8", "bool"):
        x = np.array([1, 0, 3]).astype(dtype)
        found = pyarrow.array(cuplug.asarray(x, device="cpu"))
        assert found.equals(pyarrow.array(x))
    line = cuplug.asarray(CUBE[0, 0], device="cpu")
    assert pyarrow.table({"a": line})["a"].to_pylist() == line.tolist()
    assert pyarrow.array(line, type=pyarrow.float32()).type == "float"
    with pytest.raises(pyarrow.ArrowInvalid, match="1-dimensional"):
        pyarrow.array(cuplug.asarray(CUBE, device="cpu"))


def test_pillow():
    image = pytest.importorskip("PIL.Image")
    x = np.arange(24, dtype="uint8").reshape(2, 4, 3)
    for part in (x, x[..., 0], x[::-1], x.transpose(1, 0, 2)):
        found = image.fromarray(cuplug.asarray(part, device="cpu"))
        np.testing.assert_array_equal(np.asarray(found), part)
