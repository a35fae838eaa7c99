# SPDX-License-Identifier: Apache-2.0
"""Functions of numpy.linalg with NumPy's parameters, called with cuplug arrays."""

import cuplug
import numpy as np
import pytest

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
DTYPES = ["float32", "float64", "complex64", "complex128"]


def sample(dtype, *shape):
    random = np.random.default_rng(shape)
    x = random.standard_normal(shape)
    return (x + 1j * random.standard_normal(shape) if dtype[0] == "c" else x).astype(dtype)


def check(device, function, *args, **keywords):
    """Compare the results of a NumPy function for cuplug arrays and for NumPy arrays."""
    ours = (cuplug.asarray(x, device=device) if isinstance(x, np.ndarray) else x for x in args)
    found, wanted = function(*ours, **keywords), function(*args, **keywords)
    many = isinstance(wanted, tuple)
    pairs = zip(found, wanted, strict=True) if many else [(found, wanted)]
    for own, other in pairs:
        if type(other) is int or np.isscalar(other):
            assert float(own) == pytest.approx(float(other), rel=1e-3)
            continue
        assert type(own) is cuplug.Array
        assert own.device.type == device
        assert (own.shape, own.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(own.numpy(), other, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_parameters_of_numpy(device, dtype):
    x, square = sample(dtype, 2, 4, 3), sample(dtype, 2, 3, 3)
    check(device, np.linalg.svd, x, compute_uv=False)
    check(device, np.linalg.svd, x, True, False)
    check(device, np.linalg.pinv, x, 1e-3)
    check(device, np.linalg.pinv, x, rcond=0.5)
    check(device, np.linalg.pinv, x, rtol=0.5)
    check(device, np.linalg.pinv, x)
    for triangle in ("L", "U"):  # of which the other one is not read
        check(device, np.linalg.eigvalsh, square, UPLO=triangle)
        ours = cuplug.asarray(square, device=device)
        values, vectors = np.linalg.eigh(ours, triangle)
        part = np.tril(square) if triangle == "L" else np.triu(square).swapaxes(-1, -2).conj()
        whole = np.tril(part, -1) + np.tril(part, -1).swapaxes(-1, -2).conj()
        whole = whole + np.eye(3) * part.real
        product = vectors.numpy() * values.numpy()[:, None]
        np.testing.assert_allclose(whole @ vectors.numpy(), product, atol=1e-4)
    for ord_ in (None, 2, -2, 1, np.inf, "fro"):
        check(device, np.linalg.cond, square, ord_)
    r = np.linalg.qr(cuplug.asarray(x, device=device), "r").numpy()
    wanted = np.linalg.qr(x, "r")
    np.testing.assert_allclose(abs(r), abs(wanted), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_ranks(device):
    x = np.stack([np.diag([1, 0.1, 0.01]), np.diag([5.0, 1, 0])])
    check(device, np.linalg.matrix_rank, x)
    check(device, np.linalg.matrix_rank, x, 0.05)
    check(device, np.linalg.matrix_rank, x, rtol=0.3)
    check(device, np.linalg.matrix_rank, x[0, 0])
    check(device, np.linalg.matrix_rank, np.zeros(3))
    bounds = cuplug.asarray([0.05, 2.0], device=device)
    found = np.linalg.matrix_rank(cuplug.asarray(x, device=device), tol=bounds)
    assert found.numpy().tolist() == [2, 1]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_least_squares(device, dtype):
    for m, n in ((6, 3), (3, 3), (3, 5), (6, 1)):
        a = sample(dtype, m, n)
        check(device, np.linalg.lstsq, a, sample(dtype, m), rcond=None)
        check(device, np.linalg.lstsq, a, sample(dtype, m, 2), rcond=1e-3)
    a = sample(dtype, 6, 3)
    a[:, 1] = a[:, 0]
    check(device, np.linalg.lstsq, a, sample(dtype, 6, 2), rcond=1e-3)


def test_refusals():
    x = cuplug.asarray(np.eye(3), device="cpu")
    with pytest.raises(ValueError, match=r"^numpy.linalg.eigh: UPLO: got 'X', expected \"L\" or"):
        np.linalg.eigh(x, UPLO="X")
    with pytest.raises(ValueError, match=r"^numpy.linalg.lstsq: got shapes \(3, 3\) and \(2,\)"):
        np.linalg.lstsq(x, x[:2, 0])
    with pytest.raises(ValueError, match="^linalg.qr: mode: got 'raw'"):
        np.linalg.qr(x, mode="raw")
    with pytest.raises(ValueError, match="^linalg.matrix_norm: ord: got 3"):
        np.linalg.cond(x, 3)


@pytest.mark.parametrize("device", DEVICES)
def test_integers_are_floats(device):
    x = np.array([[4, 1], [1, 3]])
    for function in (np.linalg.norm, np.linalg.inv, np.linalg.svd, np.linalg.det, np.linalg.cond):
        check(device, function, x)
    for order in (np.inf, 1, 2, "fro"):
        check(device, np.linalg.norm, x, order)
    check(device, np.linalg.solve, x, x[0])
    check(device, np.linalg.matrix_power, x, 2)
    ours = cuplug.asarray(x, device=device)
    for own in (np.einsum("ij,jk->ik", ours, ours, dtype="float64"), np.einsum("ij->j", ours)):
        out = cuplug.array_api.zeros_like(own)
        assert own.dtype == ("float64" if own.ndim == 2 else "int64")
        if own.ndim == 2:
            assert np.dot(ours, ours.astype("float64"), out=out) is out
            np.testing.assert_array_equal(out.numpy(), own.numpy())


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvalues_of_any_matrices(dtype):
    x = sample(dtype, 2, 3, 3)
    for square in (x, x @ np.conj(x.mT), x - x.mT):
        check("cpu", np.linalg.eigvals, square)
        check("cpu", np.linalg.eig, square)
    y = cuplug.asarray(x, device="cpu")
    values, vectors = cuplug.array_api.linalg.eig(y)
    assert values.dtype.kind == vectors.dtype.kind == "c"
    np.testing.assert_allclose(
        (y.astype(values.dtype) @ vectors).numpy(), (vectors * values[:, None]).numpy(), atol=1e-4
    )
    np.testing.assert_allclose(cuplug.array_api.linalg.eigvals(y).numpy(), values.numpy(), 1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_products_and_solutions_of_tensors(device):
    given = [sample("float64", *shape) for shape in ((3, 8), (8, 2), (2, 9), (9, 4))]
    ours = [cuplug.asarray(x, device=device) for x in given]
    for a, b in ((0, 4), (0, 2), (1, 4)):
        wanted = np.linalg.multi_dot(given[a:b])
        np.testing.assert_allclose(np.linalg.multi_dot(ours[a:b]).numpy(), wanted)
    for ends in ((given[0][0], *given[1:]), (*given[:3], given[3][:, 0])):
        mine = [cuplug.asarray(x, device=device) for x in ends]
        np.testing.assert_allclose(np.linalg.multi_dot(mine).numpy(), np.linalg.multi_dot(ends))
    with pytest.raises(ValueError, match="at least 2"):
        np.linalg.multi_dot(ours[:1])
    check(device, np.linalg.tensorinv, sample("float64", 4, 6, 8, 3))
    check(device, np.linalg.tensorsolve, sample("float64", 2, 3, 6), np.ones((2, 3)))
    check(device, np.linalg.tensorsolve, sample("float64", 2, 6, 3), np.ones((2, 3)), (1,))
