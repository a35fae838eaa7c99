# SPDX-License-Identifier: Apache-2.0
"""The plugin `linalg` on the emulated driver, with replacements for cuBLAS and cuFFT."""

import os

import pytest
from builds import compile_library
from places import FIXTURES, ROOT

pytestmark = pytest.mark.slow  # the plugin has no host entries to compare with

LIBRARIES = {"fake_cublas": "libcublasLt.so.13", "fake_cufft": "libcufft.so.12"}
HEAD = """
build_plugin("linalg")


def there(x):
    return cuplug.asarray(x, device="cuda")


def numbers(shape, dtype):
    x = random.integers(-5, 6, shape)
    return (x + 1j * random.integers(-5, 6, shape) if dtype[0] == "c" else x).astype(dtype)


def adjoint(x):
    return x.conj().swapaxes(-1, -2)


def summed(x, like):
    "The sum of what was broadcast."
    x = x.sum(tuple(range(x.ndim - like.ndim)))
    axes = tuple(k for k, n in enumerate(like.shape) if n == 1 != x.shape[k])
    return x.sum(axes, keepdims=True).astype(like.dtype)


def near(got, wanted):
    got = got.numpy()
    assert got.shape == wanted.shape and got.dtype == wanted.dtype, (got.shape, wanted.shape)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-4)

"""


@pytest.fixture
def run_linalg(run_plugins, emulated_cuda):
    for source, name in LIBRARIES.items():
        if not (emulated_cuda / name).exists():
            made = emulated_cuda / f"{name}-{os.getpid()}"
            options = ["-std=gnu11", "-shared", "-fPIC", "-O1", f"-I{ROOT / 'include'}"]
            options += [f"-I{ROOT / 'plugins'}", str(FIXTURES / f"{source}.c"), "-lm"]
            compile_library(["cc", *options, "-o", str(made)])
            os.replace(made, emulated_cuda / name)
    return lambda text: run_plugins(HEAD + text)


def test_products(run_linalg):
    run_linalg("""
SHAPES = [((4, 3), (3, 5)), ((2, 4, 3), (3, 5)), ((4, 3), (2, 3, 5)), ((2, 4, 3), (2, 3, 5)),
          ((2, 1, 4, 3), (6, 3, 5)), ((1, 4, 3), (2, 3, 5)), ((2, 1, 3), (3, 1)), ((1, 1), (1, 1)),
          ((6, 1, 3), (6, 3, 1)), ((2, 6, 1, 3), (3, 5)), ((0, 3), (3, 5)), ((2, 0, 3), (3, 5)),
          ((0, 4, 3), (3, 5)), ((4, 3), (3, 0)), ((3, 1, 4, 2), (5, 2, 3)),
          ((2, 2, 4, 3), (2, 1, 3, 5)), ((2, 2, 4, 3), (1, 2, 3, 5)), ((2, 2, 4, 1), (2, 1, 1, 5))]
for dtype in ("float32", "float64", "complex64", "complex128"):
    for of_x, of_y in SHAPES:
        x, y = numbers(of_x, dtype), numbers(of_y, dtype)
        grad = numbers((x @ y).shape, dtype)
        by_x, by_y = numbers(of_x, dtype), numbers(of_y, dtype)
        for a in (there(x), there(x.swapaxes(-1, -2).copy()).mT):
            for b in (there(y), there(y.swapaxes(-1, -2).copy()).mT):
                near(ops.matmul(a, b), x @ y)
                found = ops.matmul_backward(there(grad), a, b)
                near(found.grad_x, summed(grad @ adjoint(y), x))
                near(found.grad_y, summed(adjoint(x) @ grad, y))
                found = ops.matmul_backward_backward(there(by_x), there(by_y), there(grad), a, b)
                near(found.grad_grad, (by_x @ y + x @ by_y).astype(dtype))
                near(found.grad_x, summed(grad @ adjoint(by_y), x))
                near(found.grad_y, summed(adjoint(by_x) @ grad, y))
""")


def test_transforms(run_linalg):
    run_linalg("""
def real(n, m):
    "The transforms of n real numbers as matrices of m rows."
    return np.fft.fft(np.eye(n))[:m]


for n in (1, 2, 5, 8):
    m = n // 2 + 1
    for numeric, dtype in (("float32", "complex64"), ("float64", "complex128")):
        for batch in ((), (3,), (2, 0), (2, 3)):
            x, z = numbers((*batch, n), numeric), numbers((*batch, m), dtype)
            whole = numbers((*batch, n), dtype)
            for inverse in (False, True):
                wanted = (np.fft.ifft(whole) * n if inverse else np.fft.fft(whole)).astype(dtype)
                near(ops.fft(there(whole), inverse), wanted)
                near(ops.fft_backward(there(whole), not inverse), wanted)
            near(ops.rfft(there(x)), np.fft.rfft(x).astype(dtype))
            near(ops.irfft(there(z), n), (np.fft.irfft(z, n) * n).astype(numeric))
            # Of a linear map J between real and complex numbers the gradient is the real part of
            # its adjoint: <z, J x> = <J^* z, x>.
            J = real(n, m)
            near(ops.rfft_backward(there(z), there(x)), (z @ J.conj()).real.astype(numeric))
            back = ops.irfft_backward(there(x), n)
            weights = np.where((np.arange(m) == 0) | (2 * np.arange(m) == n), 1, 2)
            near(back, (weights * (x @ J.T)).astype(dtype))
            z = there(z)
            wanted, given = z.numpy(), ops.irfft(z, n)
            assert np.array_equal(z.numpy(), wanted)  # the input is as it was
""")


def test_layouts_that_need_a_copy(run_linalg):
    """Gradients of other layouts are copied, also if they have a single row."""
    run_linalg("""
x, y = numbers((4, 3), "float32"), numbers((3, 5), "float32")
for grad in (np.broadcast_to(numbers((5,), "float32"), (4, 5)), numbers((5, 4), "float32").T,
             numbers((4, 10), "float32")[:, ::2]):
    of = there(grad.copy())
    if not grad.strides[0]:
        of = cuplug.array_api.broadcast_to(there(grad[0].copy()), (4, 5))
    elif grad.strides[0] < grad.strides[1]:
        of = there(grad.T.copy()).mT
    else:
        of = there(np.repeat(grad, 2, axis=1))[:, ::2]
    assert not of.c_contiguous if hasattr(of, "c_contiguous") else True
    found = ops.matmul_backward(of, there(x), there(y))
    near(found.grad_x, grad @ y.T)
    near(found.grad_y, x.T @ grad)
text = fails(ValueError, ops.matmul_backward, numbers((2, 4, 5), "float32"), x, y)
assert "matmul_backward: grad: got 3 dimensions, expected 2" in text, text
x = numbers((3, 4, 3), "float32")
text = fails(ValueError, ops.matmul_backward, numbers((2, 4, 5), "float32"), x, y)
assert "matmul_backward: grad: got size 2 in dimension 0, expected 3" in text, text
""")
