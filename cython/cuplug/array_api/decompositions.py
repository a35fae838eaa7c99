# SPDX-License-Identifier: Apache-2.0
"""Factorizations of matrices, and linear equations: by NumPy on the host, by cuSOLVER on a GPU.

For arrays in GPU memory, functions that can fail wait for the GPU, to raise NumPy's error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cuplug._engine.array.array import Array
from cuplug._source.compilers.libraries import load_cuda_library
from cuplug.array_api.conversion import asarray
from cuplug.array_api.creation import arange, tril, triu
from cuplug.array_api.dtypes import astype, checked
from cuplug.array_api.elementwise import CALLED, binary, unary
from cuplug.array_api.functions import stock
from cuplug.array_api.products import on_host
from cuplug.array_api.sorting import where
from cuplug.array_api.statistical import any as is_any
from cuplug.array_api.statistical import prod, sum
from cuplug.array_api.views import diagonal, matrix_transpose

__all__ = [
    "cholesky",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "qr",
    "slogdet",
    "svd",
    "svdvals",
]

_LIBRARIES = ("nvJitLink", "cublasLt", "cublas", "cusparse")  # cuSOLVER is linked with it


class EigResult(NamedTuple):
    """The result of `eig`."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """The result of `eigh`."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """The result of `qr`."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """The result of `slogdet`."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """The result of `svd`."""

    U: Array
    S: Array
    Vh: Array


def matrices(name: str, argument: str, x: Any, is_square: bool = False) -> Array:
    """Return an array of matrices in a dtype of both libraries."""
    checked(f"linalg.{name}", argument, x)
    if x.dtype.name not in ("float32", "float64", "complex64", "complex128"):
        raise TypeError(
            f"linalg.{name}: {argument}: got {x.dtype}, expected float32, float64, complex64 or "
            "complex128; use astype"
        )
    if x.ndim < 2 or (is_square and x.shape[-1] != x.shape[-2]):
        wanted = "square matrices" if is_square else "matrices"
        raise np.linalg.LinAlgError(  # a ValueError
            f"linalg.{name}: {argument}: got shape {x.shape}, expected {wanted}"
        )
    found: Array = x
    return found


def by_numpy(x: Array, function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """Return NumPy's result on x's device, for host arrays and for arrays without elements."""
    found = function(x.numpy(), *args, **keywords)
    many = found if isinstance(found, tuple) else (found,)
    if x.device.type == "cpu":
        moved = [on_host(each) for each in many]
    else:
        moved = [asarray(each, device=x.device) for each in many]
    return moved if isinstance(found, tuple) else moved[0]


def is_for_numpy(x: Array) -> bool:
    return x.device.type == "cpu" or not x.size


def by_cusolver(name: str, *args: Any, failure: str = "") -> Any:
    """Return the outputs of a stock operator; with `failure`, check the last one and drop it."""
    for library in _LIBRARIES:
        load_cuda_library(library, ("13", "12"))
    load_cuda_library("cusolver", ("12", "11"))
    found = stock(f"linalg.{name}")(*args)
    if not failure:
        return found
    *found, info = found
    if bool(is_any(info)):
        raise np.linalg.LinAlgError(failure)
    return found[0] if len(found) == 1 else found


def _adjoint(x: Array) -> Array:
    return matrix_transpose(CALLED["conj"](x) if x.dtype.kind == "c" else x)


def cholesky(x: Array, /, *, upper: bool = False) -> Array:
    """Return L with `L @ L^H == x`, or U with `U^H @ U == x`, of Hermitian matrices.

    Parameters
    ----------
    x : Array, shape (..., n, n)
    upper : bool, default False

    Returns
    -------
    Array, shape (..., n, n)
        Triangular.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is not positive definite.

    Examples
    --------
    >>> print(xp.linalg.cholesky(xp.asarray([[4.0, 2.0], [2.0, 2.0]])))
    [[2. 0.]
     [1. 1.]]
    """
    x = matrices("cholesky", "x", x, is_square=True)
    if is_for_numpy(x):
        lower = by_numpy(x, np.linalg.cholesky)
    else:
        lower = tril(by_cusolver("cholesky", x, failure="Matrix is not positive definite"))
    return _adjoint(lower) if upper else lower


def det(x: Array, /) -> Array:
    """Return the determinants of square matrices.

    Examples
    --------
    >>> print(xp.linalg.det(xp.asarray([[2.0, 0.0], [1.0, 3.0]])))
    6.0
    """
    x = matrices("det", "x", x, is_square=True)
    if is_for_numpy(x):
        found: Array = by_numpy(x, np.linalg.det)
        return found
    sign, value = slogdet(x)
    return binary("multiply", sign, astype(unary("exp", value), x.dtype, copy=False))


def eig(x: Array, /) -> EigResult:
    """Return the eigenvalues, unordered, and eigenvectors of square matrices.

    Parameters
    ----------
    x : Array, shape (..., n, n)
        On a GPU, matrices are processed consecutively, by cuSOLVER of CUDA 12.6 or later.

    Returns
    -------
    EigResult
        `eigenvalues`, shape (..., n); `eigenvectors`, in columns. Both are complex.

    Raises
    ------
    numpy.linalg.LinAlgError
        If eigenvalues of a matrix are not found.

    Examples
    --------
    >>> values, vectors = xp.linalg.eig(xp.asarray([[2.0, 0.0], [0.0, 3.0]]))
    >>> print(values)
    [2.+0.j 3.+0.j]
    """
    x = matrices("eig", "x", x, is_square=True)
    if is_for_numpy(x):
        return EigResult(*(astype(each, complex_of(each)) for each in by_numpy(x, np.linalg.eig)))
    return _general(x, True)


def eigvals(x: Array, /) -> Array:
    """Return the eigenvalues of square matrices: complex, unordered.

    Examples
    --------
    >>> print(xp.linalg.eigvals(xp.asarray([[2.0, 0.0], [0.0, 3.0]])))
    [2.+0.j 3.+0.j]
    """
    x = matrices("eigvals", "x", x, is_square=True)
    if is_for_numpy(x):
        return astype(by_numpy(x, np.linalg.eigvals), complex_of(x))
    return _general(x, False).eigenvalues


def _general(x: Array, has_vectors: bool) -> EigResult:
    """Return eigenvalues of matrices in GPU memory.

    The operator computes them for the transposed matrices.
    """
    given, failure = matrix_transpose(astype(x, complex_of(x))), "Eigenvalues did not converge"
    values, vectors = by_cusolver("eig", given, has_vectors, failure=failure)
    return EigResult(values, matrix_transpose(vectors))


def complex_of(x: Array) -> Any:
    """Return the complex dtype with the precision of an array."""
    return np.result_type(x.dtype, np.complex64)


def eigh(x: Array, /) -> EighResult:
    """Return the eigenvalues, in ascending order, and eigenvectors of Hermitian matrices.

    Parameters
    ----------
    x : Array, shape (..., n, n)

    Returns
    -------
    EighResult
        `eigenvalues`, shape (..., n), real; `eigenvectors`, in columns.

    Raises
    ------
    numpy.linalg.LinAlgError
        If eigenvalues of a matrix are not found.

    Examples
    --------
    >>> values, vectors = xp.linalg.eigh(xp.asarray([[3.0, 0.0], [0.0, 2.0]]))
    >>> print(values)
    [2. 3.]
    """
    x = matrices("eigh", "x", x, is_square=True)
    if is_for_numpy(x):
        return EighResult(*by_numpy(x, np.linalg.eigh))
    values, vectors = by_cusolver("eigh", x, failure="Eigenvalues did not converge")
    return EighResult(values, _adjoint(vectors))


def eigvalsh(x: Array, /) -> Array:
    """Return the eigenvalues of Hermitian matrices, in ascending order.

    Examples
    --------
    >>> print(xp.linalg.eigvalsh(xp.asarray([[3.0, 0.0], [0.0, 2.0]])))
    [2. 3.]
    """
    x = matrices("eigvalsh", "x", x, is_square=True)
    found: Array
    if is_for_numpy(x):
        found = by_numpy(x, np.linalg.eigvalsh)
    else:
        found, _ = by_cusolver("eigh", x, False, failure="Eigenvalues did not converge")
    return found


def qr(x: Array, /, *, mode: str = "reduced") -> QRResult:
    """Return the QR decompositions of matrices.

    Parameters
    ----------
    x : Array, shape (..., m, n)
    mode : "reduced" or "complete"

    Returns
    -------
    QRResult

    Examples
    --------
    >>> q, r = xp.linalg.qr(xp.asarray([[3.0, 1.0], [4.0, 2.0]]))
    >>> xp.allclose(q @ r, [[3.0, 1.0], [4.0, 2.0]])
    True
    """
    if mode not in ("reduced", "complete"):
        raise ValueError(f'linalg.qr: mode: got {mode!r}, expected "reduced" or "complete"')
    x = matrices("qr", "x", x)
    if is_for_numpy(x):
        return QRResult(*by_numpy(x, np.linalg.qr, mode=mode))
    n = x.shape[-2] if mode == "complete" else min(x.shape[-2:])
    factors, vectors = by_cusolver("qr", matrix_transpose(x), n)
    return QRResult(matrix_transpose(vectors), triu(matrix_transpose(factors)[..., :n, :]))


def slogdet(x: Array, /) -> SlogdetResult:
    """Return the signs of determinants, and the logarithms of their absolute values.

    Examples
    --------
    >>> sign, logarithm = xp.linalg.slogdet(xp.asarray([[0.0, 1.0], [1.0, 0.0]]))
    >>> print(sign, logarithm)
    -1.0 0.0
    """
    x = matrices("slogdet", "x", x, is_square=True)
    if is_for_numpy(x):
        return SlogdetResult(*by_numpy(x, np.linalg.slogdet))
    factors, pivots, info = by_cusolver("lu", x)
    numbers = diagonal(factors)
    moduli = unary("abs", numbers)
    rows = arange(1, x.shape[-1] + 1, dtype="int64", device=x.device)
    is_odd = sum(astype(pivots != rows, "int64"), axis=-1) % 2 != 0
    sign = prod(binary("divide", numbers, moduli), axis=-1, dtype=x.dtype)
    sign = where(info != 0, 0, where(is_odd, -sign, sign))
    value = sum(unary("log", moduli), axis=-1, dtype=moduli.dtype)
    return SlogdetResult(sign, where(info != 0, -np.inf, value))


def svd(x: Array, /, *, full_matrices: bool = True) -> SVDResult:
    """Return the singular value decompositions of matrices, `U @ diag(S) @ Vh`.

    Parameters
    ----------
    x : Array, shape (..., m, n)
    full_matrices : bool, default True
        If False, `U` has shape (..., m, min(m, n)), and `Vh` has (..., min(m, n), n).

    Returns
    -------
    SVDResult
        `S` is in descending order.

    Raises
    ------
    numpy.linalg.LinAlgError
        If singular values of a matrix are not found.

    Examples
    --------
    >>> u, s, vh = xp.linalg.svd(xp.asarray([[0.0, 2.0], [3.0, 0.0]]))
    >>> print(s)
    [3. 2.]
    """
    x = matrices("svd", "x", x)
    if is_for_numpy(x):
        return SVDResult(*by_numpy(x, np.linalg.svd, full_matrices=full_matrices))
    m, n = x.shape[-2:]
    wide = matrix_transpose(x) if m > n else x
    k = max(m, n) if full_matrices else min(m, n)
    u, s, vh = by_cusolver("svd", wide, k, failure="SVD did not converge")
    if m > n:
        return SVDResult(matrix_transpose(vh), s, matrix_transpose(u))
    return SVDResult(u, s, vh)


def svdvals(x: Array, /) -> Array:
    """Return the singular values of matrices, in descending order.

    Examples
    --------
    >>> print(xp.linalg.svdvals(xp.asarray([[0.0, 2.0], [3.0, 0.0]])))
    [3. 2.]
    """
    x = matrices("svdvals", "x", x)
    found: Array
    if is_for_numpy(x):
        found = by_numpy(x, np.linalg.svd, compute_uv=False)
    else:
        wide = matrix_transpose(x) if x.shape[-2] > x.shape[-1] else x
        _, found, _ = by_cusolver("svd", wide, 0, failure="SVD did not converge")
    return found
