# SPDX-License-Identifier: Apache-2.0
"""Functions of numpy.linalg with NumPy's own parameters, called with cuplug's arrays."""

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
    """Compare what NumPy's function gives for our arrays with what it gives for its own."""
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
