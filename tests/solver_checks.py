# SPDX-License-Identifier: Apache-2.0
"""Factorizations of arrays in GPU memory compared with NumPy, for a real and an emulated GPU."""

import cuplug
import numpy as np
import pytest

xp = cuplug.array_api
linalg = xp.linalg
FLOATING = ("float32", "float64", "complex64", "complex128")
LOOPS = ((), (1,), (3,), (2, 3), (2, 0))
SIZES = (1, 2, 5, 33)
SHAPES = ((5, 3), (3, 5), (4, 4), (1, 6), (6, 1), (40, 7), (7, 40))
CHECKS = (
    *("square", "rectangular", "of_singular_values", "views", "failures", "no_elements"),
    "numpy_functions",
)
NO_ELEMENTS = ((0, 0), (3, 0, 0), (0, 3, 3))


def drawn(dtype, shape, seed=0):
    random = np.random.default_rng((seed, *shape))
    x = random.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * random.standard_normal(shape)
    return x.astype(dtype)


def adjoint(x):
    return x.conj().swapaxes(-1, -2)


def positive(dtype, loop, n):
    x = drawn(dtype, (*loop, n, n))
    return x @ adjoint(x) + np.eye(n, dtype=dtype)


def there(x):
    return xp.asarray(x, device="cuda")


def close(found, wanted, dtype, factor=400):
    """Compare the values, the shape and the dtype of an array in GPU memory with NumPy's."""
    assert type(found) is cuplug.Array
    assert found.device.type == "cuda"
    wanted = np.asarray(wanted)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    near(found.numpy(), wanted, dtype, factor)


def near(found, wanted, dtype, factor=400):
    bound = factor * np.finfo(dtype).eps
    scale = np.abs(wanted).max(initial=1)
    np.testing.assert_allclose(found, wanted, rtol=bound, atol=bound * scale)


def fails(text, function, *args):
    with pytest.raises(np.linalg.LinAlgError, match=text):
        function(*args)


def check_square(dtype, loops=LOOPS, sizes=SIZES):
    for loop in loops:
        for n in sizes:
            x = drawn(dtype, (*loop, n, n)) + 2 * np.eye(n, dtype=dtype)
            a = there(x)
            close(linalg.det(a), np.linalg.det(x), dtype, 4000)
            for found, wanted in zip(linalg.slogdet(a), np.linalg.slogdet(x), strict=True):
                close(found, wanted, dtype, 4000)
            inverse = linalg.inv(a)
            assert inverse.shape == x.shape
            near(x @ inverse.numpy(), np.broadcast_to(np.eye(n), x.shape), dtype, 40_000)
            check_solve(x, dtype)
            check_general(x, dtype)
            hermitian = positive(dtype, loop, n)
            check_hermitian(hermitian, dtype)
            # Only the lower triangles are read.
            check_hermitian(np.tril(hermitian) + 9 * np.triu(drawn(dtype, (n, n)), 1), dtype)


def check_solve(x, dtype):
    n = x.shape[-1]
    for shape in ((n,), (n, 1), (n, 3), (4, 1, 1, n, 2), (*x.shape[:-2], n, 2), (n, 0)):
        b = drawn(dtype, shape, 1)
        found = linalg.solve(there(x), there(b))
        column = b[:, None] if b.ndim == 1 else b
        wanted = np.linalg.solve(x, column)
        wanted = wanted[..., 0] if b.ndim == 1 else wanted
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        if found.size:
            product = x @ (found.numpy()[..., None] if b.ndim == 1 else found.numpy())
            near(product, np.broadcast_to(column, product.shape), dtype, 40_000)


def check_general(x, dtype):
    values, vectors = linalg.eig(there(x))
    wanted = np.linalg.eigvals(x)
    assert values.dtype == vectors.dtype == np.result_type(dtype, "complex64")
    assert (values.shape, vectors.shape) == (wanted.shape, x.shape)
    w, v = values.numpy(), vectors.numpy()
    near(x @ v, v * w[..., None, :], dtype, 4000)
    near(np.linalg.norm(v, axis=-2), np.ones(wanted.shape), dtype)
    for found in (values, linalg.eigvals(there(x))):  # in no order
        apart = np.abs(found.numpy()[..., None] - wanted[..., None, :])
        assert apart.min(axis=-1).max(initial=0) <= 4000 * np.finfo(dtype).eps * np.abs(x).sum()


def check_hermitian(x, dtype):
    n = x.shape[-1]
    a = there(x)
    lower = np.linalg.cholesky(x)
    close(linalg.cholesky(a), lower, dtype, 4000)
    close(linalg.cholesky(a, upper=True), adjoint(lower), dtype, 4000)
    values, vectors = linalg.eigh(a)
    wanted, _ = np.linalg.eigh(x)
    close(values, wanted, dtype)
    close(linalg.eigvalsh(a), wanted, dtype)
    assert vectors.dtype == x.dtype
    v = vectors.numpy()
    whole = np.tril(x) + adjoint(np.tril(x, -1))
    near(whole @ v, v * values.numpy()[..., None, :], dtype, 4000)
    near(adjoint(v) @ v, np.broadcast_to(np.eye(n), x.shape), dtype)


def check_rectangular(dtype, loops=LOOPS, shapes=SHAPES):
    for loop in loops:
        for m, n in shapes:
            x = drawn(dtype, (*loop, m, n))
            check_qr(x, there(x), dtype)
            check_svd(x, there(x), dtype)


def check_qr(x, a, dtype):
    for mode in ("reduced", "complete"):
        q, r = (y.numpy() for y in linalg.qr(a, mode=mode))
        wanted_q, wanted_r = np.linalg.qr(x, mode=mode)
        assert (q.shape, q.dtype) == (wanted_q.shape, wanted_q.dtype)
        assert (r.shape, r.dtype) == (wanted_r.shape, wanted_r.dtype)
        assert not np.tril(r, -1).any()
        near(q @ r, x, dtype)
        near(
            adjoint(q) @ q,
            np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], *q.shape[-1:] * 2)),
            dtype,
        )


def check_svd(x, a, dtype):
    wanted = np.linalg.svd(x, compute_uv=False)
    close(linalg.svdvals(a), wanted, dtype)
    k = min(x.shape[-2:])
    for full in (True, False):
        found = linalg.svd(a, full_matrices=full)
        assert [y.shape for y in found] == [y.shape for y in np.linalg.svd(x, full_matrices=full)]
        close(found.S, wanted, dtype)
        u, s, vh = (y.numpy() for y in found)
        near((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x, dtype)
        for each in (adjoint(u) @ u, vh @ adjoint(vh)):
            near(each, np.broadcast_to(np.eye(each.shape[-1]), each.shape), dtype)


def check_of_singular_values(dtype):
    for shape in ((5, 3), (2, 3, 5), (3, 4, 4)):
        x = drawn(dtype, shape)
        x[..., 1] = x[..., 0]
        a = there(x)
        close(linalg.pinv(a), np.linalg.pinv(x), dtype, 40_000)
        assert linalg.matrix_rank(a).numpy().tolist() == np.linalg.matrix_rank(x).tolist()
        rtol = np.full(shape[:-2], 0.5, np.finfo(dtype).dtype)
        found = linalg.matrix_rank(a, rtol=there(rtol)).numpy()
        assert found.tolist() == np.linalg.matrix_rank(x, rtol=rtol).tolist()
        for ord_ in ("nuc", 2):
            wanted = [np.linalg.norm(y, ord_) for y in x.reshape(-1, *shape[-2:])]
            found = linalg.matrix_norm(a, ord=ord_).numpy().reshape(-1)
            near(found, np.array(wanted), dtype)
    for shape in ((0, 4), (4, 0), (2, 0, 3)):
        x = np.empty(shape, dtype)
        close(linalg.pinv(there(x)), np.linalg.pinv(x), dtype)
    square = drawn(dtype, (2, 3, 3)) + 3 * np.eye(3, dtype=dtype)
    close(linalg.matrix_power(there(square), -2), np.linalg.matrix_power(square, -2), dtype, 4000)


def check_views(dtype):
    """Check transposed, sliced, reversed and broadcast arrays."""
    base = drawn(dtype, (6, 8, 8)) + 4 * np.eye(8, dtype=dtype)
    a = there(base)
    for x, y in (
        (base.swapaxes(-1, -2), a.mT),
        (base[::2, ::-1, ::-1], a[::2, ::-1, ::-1]),
        (base[1, 1:6, 2:7], a[1, 1:6, 2:7]),
        (np.broadcast_to(base[0], (3, 8, 8)), xp.broadcast_to(a[0], (3, 8, 8))),
    ):
        close(linalg.inv(y), np.linalg.inv(x), dtype, 40_000)
        check_qr(x, y, dtype)
        check_svd(x, y, dtype)
        wide = x[..., :3], y[..., :3]
        check_qr(*wide, dtype)
        check_svd(*wide, dtype)
        close(linalg.det(y), np.linalg.det(x), dtype, 4000)
        close(
            linalg.solve(y, y[..., ::-1, :2]), np.linalg.solve(x, x[..., ::-1, :2]), dtype, 40_000
        )


def check_failures(dtype):
    """Check that errors equal NumPy's, for one matrix or one of several; determinants are 0."""
    good = np.eye(3, dtype=dtype)
    singular = good.copy()
    singular[2] = singular[1]
    for x in (singular, np.stack([good, singular, good])):
        a = there(x)
        fails("^Singular matrix$", linalg.inv, a)
        fails("^Singular matrix$", linalg.solve, a, a)
        fails("^Singular matrix$", linalg.matrix_power, a, -1)
        fails("^Matrix is not positive definite$", linalg.cholesky, there(-x))
        assert np.array_equal(linalg.det(a).numpy(), np.linalg.det(x))
        for found, wanted in zip(linalg.slogdet(a), np.linalg.slogdet(x), strict=True):
            assert np.array_equal(found.numpy(), wanted)
    assert np.array_equal(linalg.inv(there(good)).numpy(), good)  # works again


def check_no_elements(dtype):
    for shape in NO_ELEMENTS:
        x = np.empty(shape, dtype)
        a = there(x)
        for name in ("cholesky", "det", "inv", "eigvalsh"):
            close(getattr(linalg, name)(a), getattr(np.linalg, name)(x), dtype)
        for name in ("eigh", "slogdet"):
            for found, wanted in zip(
                getattr(linalg, name)(a), getattr(np.linalg, name)(x), strict=True
            ):
                close(found, wanted, dtype)
        close(linalg.solve(a, a), np.linalg.solve(x, x), dtype)
        assert linalg.matrix_rank(a).numpy().tolist() == np.zeros(shape[:-2], int).tolist()
    for shape in ((0, 4), (4, 0), (2, 0, 3), (0, 3, 2)):
        x = np.empty(shape, dtype)
        check_qr(x, there(x), dtype)
        check_svd(x, there(x), dtype)


def check_numpy_functions(dtype):
    """Check that NumPy's functions use these, on the device of the arrays."""
    x = positive(dtype, (2,), 4)
    a = there(x)
    for name in ("cholesky", "det", "inv", "eigvalsh", "pinv", "matrix_rank", "svdvals"):
        if hasattr(np.linalg, name):
            close(getattr(np.linalg, name)(a), getattr(np.linalg, name)(x), dtype, 40_000)
    close(np.linalg.solve(a, a[..., :2]), np.linalg.solve(x, x[..., :2]), dtype, 40_000)
    for name in ("qr", "svd", "eigh", "slogdet"):
        for found, wanted in zip(
            getattr(np.linalg, name)(a), getattr(np.linalg, name)(x), strict=True
        ):
            assert (found.device.type, found.shape) == ("cuda", wanted.shape)
    for refused in ("float16", "int32"):
        for function in (linalg.inv, linalg.svd, linalg.cholesky, linalg.qr):
            with pytest.raises(TypeError, match=f"got {refused}, expected float32, .*; use astype"):
                function(xp.ones((3, 3), dtype=refused, device="cuda"))
