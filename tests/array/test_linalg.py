# SPDX-License-Identifier: Apache-2.0
"""Products of matrices and the extensions linalg and fft, compared with NumPy."""

import cuplug
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

xp = cuplug.array_api
linalg, fft = xp.linalg, xp.fft
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
FLOATING = ["float32", "float64", "complex64", "complex128"]
SHAPES = [
    ((3, 4), (4, 5)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((4,), (4,)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (6, 4, 5)),
    ((2, 3, 1, 4), (2, 3, 4, 1)),
    ((3, 0), (0, 5)),
    ((0, 4), (4, 5)),
    ((2, 0, 3, 4), (4, 5)),
    ((4,), (3, 4, 5)),
]


def on_cpu(x):
    return xp.asarray(x, device="cpu")


def sample(shape, dtype, seed=0):
    random = np.random.default_rng(seed)
    x = random.integers(-4, 5, shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * random.integers(-4, 5, shape)
    return x.astype(dtype)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [*FLOATING, "float16", "int8", "int64", "uint8", "bool"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_matmul(device, dtype, shapes):
    x, y = (sample(shape, dtype, seed) for seed, shape in enumerate(shapes))
    found = xp.asarray(x, device=device) @ xp.asarray(y, device=device)
    wanted = x @ y
    assert (found.shape, found.dtype, found.device.type) == (wanted.shape, wanted.dtype, device)
    assert np.array_equal(found.numpy(), wanted)


@pytest.mark.parametrize("device", DEVICES)
@given(data=st.data())
def test_matmul_of_views(device, data):
    """Transposed, sliced, reversed and broadcast views."""
    loop = data.draw(st.sampled_from([(), (3,), (2, 3)]))
    m, k, n = (data.draw(st.integers(1, 5)) for _ in range(3))

    def draw(rows, columns, seed):
        is_turned = data.draw(st.booleans())
        shape = (*loop, columns, rows) if is_turned else (*loop, rows, columns)
        wide = sample((*shape[:-1], 2 * shape[-1] + 3), "float32", seed)
        step = data.draw(st.sampled_from([1, 2, -1]))
        view = (slice(None),) * (len(shape) - 1)
        view += (
            slice(shape[-1] * step - 1 + step % 2, None, -1) if step < 0 else slice(1, None, step),
        )
        x, y = wide[view], xp.asarray(wide, device=device)[view]
        x, y = x[..., : shape[-1]], y[..., : shape[-1]]
        if is_turned:
            x, y = x.swapaxes(-1, -2), y.mT
        if loop and data.draw(st.booleans()):
            x, y = x[:1], y[:1]
        return x, y

    (x, on_x), (y, on_y) = draw(m, k, 0), draw(k, n, 1)
    assert np.array_equal((on_x @ on_y).numpy(), x @ y)


@pytest.mark.parametrize("device", DEVICES)
def test_dtypes_of_products(device):
    x, y = sample((3, 4), "float32"), sample((4, 5), "float64")
    assert (xp.asarray(x, device=device) @ xp.asarray(y, device=device)).dtype == np.float64
    bfloat16 = ml_dtypes.bfloat16
    a, b = (xp.astype(xp.asarray(each, device=device), bfloat16) for each in (x, y))
    assert (a @ b).dtype == bfloat16
    assert np.array_equal(xp.astype(a @ b, "float32").numpy(), x @ y.astype(np.float32))


def test_refused_products():
    x, v = on_cpu(np.ones((3, 4))), on_cpu(np.ones(3))
    for call, text in (
        (lambda: x @ v, r"^matmul: x2: got an array of shape \(3,\), expected 4 rows, as x1 has"),
        (lambda: x @ x, r"^matmul: x2: got an array of shape \(3, 4\), expected 4 rows"),
        (lambda: x @ v[0], "^matmul: x2: got no dimensions, expected at least one$"),
        (lambda: xp.vecdot(x, v), r"^vecdot: x2: got an array of shape \(3,\), expected 4 along"),
        (lambda: xp.vecdot(x, x, axis=-3), "^vecdot: axis: got -3, expected -2 <= axis < 0"),
        (lambda: xp.tensordot(x, x), None),
        (lambda: xp.tensordot(x, x, axes=3), "^tensordot: axes: got 3, expected 0 to 2$"),
        (lambda: xp.tensordot(x, x, axes=1), r"^tensordot: x2: got an array of shape \(3, 4\)"),
        (lambda: xp.tensordot(x, x, axes=([0], [])), "^tensordot: axes: got 0 of x2, expected 1"),
    ):
        if text is None:
            assert float(call()) == 12
            continue
        with pytest.raises(ValueError, match=text):
            call()
    with pytest.raises(TypeError, match="unsupported operand"):
        x @ 2
    assert type(x @ np.ones((4, 2))) is np.ndarray
    assert type(np.matmul(x, x.mT)) is cuplug.Array


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [*FLOATING, "int32", "bool"])
def test_dots(device, dtype):
    x, y = sample((3, 4, 5), dtype), sample((4, 5), dtype, 1)
    a, b = xp.asarray(x, device=device), xp.asarray(y, device=device)
    wanted = (np.conj(x) * y).any(-1) if dtype == "bool" else (np.conj(x) * y).sum(-1, dtype=dtype)
    assert np.array_equal(xp.vecdot(a, b).numpy(), wanted)
    if dtype != "bool":
        assert np.array_equal(
            xp.vecdot(a, b, axis=-2).numpy(), (np.conj(x) * y).sum(-2, dtype=dtype)
        )
    for axes in (0, 1, 2, ([1, 2], [0, 1]), ([2], [-1])):
        if axes != 1:
            found = xp.tensordot(a, b, axes=axes).numpy()
            assert np.array_equal(found, np.tensordot(x, y, axes)), axes
    assert np.array_equal(xp.linalg.outer(a[0, 0], b[0]).numpy(), np.outer(x[0, 0], y[0]))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATING)
def test_on_each_device(device, dtype):
    x = sample((2, 3, 4), dtype)
    a = xp.asarray(x, device=device)
    for offset in range(-4, 6):
        found = linalg.diagonal(a, offset=offset)
        assert np.array_equal(found.numpy(), np.diagonal(x, offset, -2, -1)), offset
        assert np.array_equal(linalg.trace(a, offset=offset).numpy(), x.trace(offset, -2, -1))
    y = sample((2, 3, 4), dtype, 1)
    crossed = linalg.cross(a, xp.asarray(y, device=device), axis=1).numpy()
    assert np.array_equal(crossed, np.cross(x, y, axis=1))
    for ord_ in (0, 1, 2, 3, 0.5, np.inf, -np.inf):
        for axis in (None, 1, (0, 2)):
            norm = linalg.vector_norm(a, axis=axis, ord=ord_, keepdims=True)
            line = x.reshape(-1) if axis is None else x
            if isinstance(axis, tuple):
                line = x.transpose(1, 0, 2).reshape(3, -1)
            wanted = np.linalg.norm(line, ord_, axis if axis == 1 else -1)
            assert norm.ndim == 3
            np.testing.assert_allclose(norm.numpy().reshape(wanted.shape), wanted, rtol=1e-5)
    for ord_ in ("fro", 1, -1, np.inf, -np.inf):
        found = linalg.matrix_norm(a, ord=ord_).numpy()
        np.testing.assert_allclose(found, [np.linalg.norm(each, ord_) for each in x], rtol=1e-6)
    square = a[..., :3]
    for n in range(4):
        wanted = np.linalg.matrix_power(x[..., :3], n)
        assert np.array_equal(linalg.matrix_power(square, n).numpy(), wanted)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATING)
def test_decompositions(device, dtype):
    x = sample((2, 4, 3), dtype) + np.eye(4, 3, dtype=dtype) * 9
    square = x.swapaxes(-1, -2).conj() @ x
    a, s = (xp.asarray(each, device=device) for each in (x, square))
    eps = {"rtol": 200 * np.finfo(dtype).eps, "atol": 2000 * np.finfo(dtype).eps}

    def close(found, wanted):
        assert found.dtype == dtype or found.dtype == np.finfo(dtype).dtype
        np.testing.assert_allclose(found.numpy(), wanted, **eps)

    lower = linalg.cholesky(s)
    close(lower @ xp.conj(lower.mT), square)
    upper = linalg.cholesky(s, upper=True)
    close(xp.conj(upper.mT) @ upper, square)
    values, vectors = linalg.eigh(s)
    close(s @ vectors, vectors.numpy() * values.numpy()[:, None])
    close(linalg.eigvalsh(s), values.numpy())
    close(linalg.inv(s) @ s, np.broadcast_to(np.eye(3), (2, 3, 3)))
    close(linalg.matrix_power(s, -1), linalg.inv(s).numpy())
    close(linalg.pinv(a) @ a, np.broadcast_to(np.eye(3), (2, 3, 3)))
    close(linalg.det(s), np.linalg.det(square))
    sign, logarithm = linalg.slogdet(s)
    close(sign * xp.astype(xp.exp(logarithm), dtype), np.linalg.det(square))
    for mode, n in (("reduced", 3), ("complete", 4)):
        q, r = linalg.qr(a, mode=mode)
        assert q.shape == (2, 4, n)
        close(q @ r, x)
    u, values, vh = linalg.svd(a, full_matrices=False)
    close(u @ (xp.astype(values, dtype)[..., None] * vh), x)
    assert linalg.svd(a).U.shape == (2, 4, 4)
    close(linalg.svdvals(a), values.numpy())
    for ord_ in ("nuc", 2, -2):
        close(linalg.matrix_norm(a, ord=ord_), [np.linalg.norm(each, ord_) for each in x])
    close(s @ linalg.solve(s, a.mT), x.swapaxes(-1, -2))
    vector = xp.asarray(sample(3, dtype), device=device)
    close(
        s @ linalg.solve(s, vector)[..., None], np.broadcast_to(vector.numpy()[:, None], (2, 3, 1))
    )


@pytest.mark.parametrize("device", DEVICES)
def test_ranks(device):
    x = np.stack([np.eye(3), np.diag([1.0, 0, 0]), np.zeros((3, 3))])
    assert linalg.matrix_rank(xp.asarray(x, device=device)).numpy().tolist() == [3, 1, 0]
    y = xp.asarray(np.stack([np.diag([1, 0.1, 0.01])] * 2), device=device)
    assert linalg.matrix_rank(y, rtol=0.05).numpy().tolist() == [2, 2]
    bounds = xp.asarray([0.5, 0.05], device=device)
    assert linalg.matrix_rank(y, rtol=bounds).numpy().tolist() == [1, 2]
    assert linalg.matrix_rank(y[0], rtol=bounds[0]).numpy() == 1
    kept = linalg.pinv(y, rtol=bounds).numpy()
    assert np.allclose(kept, [np.diag([1, 0, 0]), np.diag([1, 10, 0])])
    assert linalg.matrix_rank(y[:, :0]).numpy().tolist() == [0, 0]
    assert linalg.pinv(y[:, :0]).shape == (2, 3, 0)


def test_refused_decompositions():
    with pytest.raises(np.linalg.LinAlgError):
        linalg.inv(xp.zeros((3, 3), device="cpu"))
    for call, error, text in (
        (
            lambda: linalg.inv(xp.ones((2, 3), device="cpu")),
            ValueError,
            r"^linalg.inv: x: got shape \(2, 3\)",
        ),
        (
            lambda: linalg.svd(xp.ones(3, device="cpu")),
            ValueError,
            r"^linalg.svd: x: got shape \(3,\), expected",
        ),
        (
            lambda: linalg.det(xp.ones((3, 3), dtype="int64", device="cpu")),
            TypeError,
            "^linalg.det: x: got int64",
        ),
        (
            lambda: linalg.qr(xp.ones((3, 3), device="cpu"), mode="r"),
            ValueError,
            "^linalg.qr: mode: got 'r'",
        ),
        (
            lambda: linalg.outer(xp.ones((3, 3), device="cpu"), xp.ones(3, device="cpu")),
            ValueError,
            "^linalg.outer: x1: got",
        ),
        (
            lambda: linalg.cross(xp.ones(2, device="cpu"), xp.ones(2, device="cpu")),
            ValueError,
            "^linalg.cross: got shapes",
        ),
        (
            lambda: linalg.matrix_norm(xp.ones((2, 2), device="cpu"), ord=3),
            ValueError,
            "matrix_norm: ord: got 3",
        ),
        (
            lambda: linalg.vector_norm(xp.ones(3, dtype="int8", device="cpu")),
            TypeError,
            "vector_norm: x: got int8",
        ),
        (
            lambda: fft.fft(xp.ones(3, dtype="int64", device="cpu")),
            TypeError,
            "^fft.fft: x: got int64",
        ),
        (
            lambda: fft.fft(xp.ones(3, device="cpu"), norm="none"),
            ValueError,
            "^fft.fft: norm: got 'none'",
        ),
    ):
        with pytest.raises(error, match=text):
            call()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_fourier_transforms(device, dtype, norm):
    x = sample((3, 4, 6), dtype)
    is_real = np.dtype(dtype).kind == "f"
    single = dtype in ("float32", "complex64")

    def check(name, **keywords):
        found = getattr(fft, name)(xp.asarray(x, device=device), norm=norm, **keywords)
        assert found.device.type == device
        wanted = getattr(np.fft, name)(x, norm=norm, **keywords)
        assert (found.dtype.itemsize == (8 if found.dtype.kind == "c" else 4)) == single
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-4)

    for name in ("fft", "ifft", *(["rfft", "ihfft"] if is_real else ["irfft", "hfft"])):
        check(name)
        for n in (3, 5, 8):
            check(name, n=n, axis=1)
    for name in ("fftn", "ifftn", "rfftn" if is_real else "irfftn"):
        check(name)
        check(name, axes=(0, 1))
        check(name, s=(5, 3), axes=(-1, -2))


@pytest.mark.parametrize("device", DEVICES)
def test_frequencies(device):
    for n in (1, 4, 5):
        for name in ("fftfreq", "rfftfreq"):
            found = getattr(fft, name)(n, d=0.5, device=device)
            assert found.device.type == device
            assert np.array_equal(found.numpy(), getattr(np.fft, name)(n, 0.5))
    x = sample((3, 4), "float64")
    for name in ("fftshift", "ifftshift"):
        for axes in (None, 0, (0, 1)):
            found = getattr(fft, name)(xp.asarray(x, device=device), axes=axes)
            assert np.array_equal(found.numpy(), getattr(np.fft, name)(x, axes))
