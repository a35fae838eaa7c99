# SPDX-License-Identifier: Apache-2.0
"""The standard's extension for linear algebra.

Products, norms and the like compute where their arrays are. Decompositions and what is solved by
them are NumPy's, on the memory of the host.
"""

from __future__ import annotations

import builtins
from typing import Any, NamedTuple

import numpy as np

from cuplug._engine.array.array import Array
from cuplug.array_api.conversion import asarray
from cuplug.array_api.creation import eye
from cuplug.array_api.dtypes import astype, checked, integer, result_type
from cuplug.array_api.elementwise import unary
from cuplug.array_api.products import cross, matmul, on_host, outer, tensordot, vecdot, vector_norm
from cuplug.array_api.statistical import max, min, sum
from cuplug.array_api.views import (
    broadcast_to,
    diagonal,
    expand_dims,
    matrix_transpose,
    reshape,
)

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


class EighResult(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """What `qr` returns."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """What `svd` returns."""

    U: Array
    S: Array
    Vh: Array


# ---- By NumPy, on the host -----------------------------------------------------------------------


def _matrices(name: str, argument: str, x: Any, is_square: bool = False) -> Array:
    """Return an array of matrices that NumPy computes with."""
    checked(f"linalg.{name}", argument, x)
    if x.device.type != "cpu":
        raise TypeError(
            f"linalg.{name}: {argument}: got an array in GPU memory, expected one of the host; "
            'use x.to_device("cpu")'
        )
    if x.dtype.name not in ("float32", "float64", "complex64", "complex128"):
        raise TypeError(
            f"linalg.{name}: {argument}: got {x.dtype}, expected float32, float64, complex64 or "
            "complex128; use astype"
        )
    if x.ndim < 2 or (is_square and x.shape[-1] != x.shape[-2]):
        wanted = "square matrices" if is_square else "matrices"
        raise ValueError(f"linalg.{name}: {argument}: got shape {x.shape}, expected {wanted}")
    return x


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
    """
    lower = np.linalg.cholesky(_matrices("cholesky", "x", x, is_square=True).numpy())
    return on_host(np.swapaxes(lower.conj(), -1, -2) if upper else lower)


def det(x: Array, /) -> Array:
    """Return the determinants of square matrices."""
    return on_host(np.linalg.det(_matrices("det", "x", x, is_square=True).numpy()))


def eigh(x: Array, /) -> EighResult:
    """Return the eigenvalues, in ascending order, and eigenvectors of Hermitian matrices.

    Parameters
    ----------
    x : Array, shape (..., n, n)

    Returns
    -------
    EighResult
        `eigenvalues`, shape (..., n), real; `eigenvectors`, in columns.
    """
    values, vectors = np.linalg.eigh(_matrices("eigh", "x", x, is_square=True).numpy())
    return EighResult(on_host(values), on_host(vectors))


def eigvalsh(x: Array, /) -> Array:
    """Return the eigenvalues of Hermitian matrices, in ascending order."""
    return on_host(np.linalg.eigvalsh(_matrices("eigvalsh", "x", x, is_square=True).numpy()))


def inv(x: Array, /) -> Array:
    """Return the inverses of square matrices.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular.
    """
    return on_host(np.linalg.inv(_matrices("inv", "x", x, is_square=True).numpy()))


def matrix_rank(x: Array, /, *, rtol: Any = None) -> Array:
    """Return the ranks of matrices: how many singular values are above `rtol` times the largest.

    Parameters
    ----------
    x : Array, shape (..., m, n)
    rtol : float or Array, optional
        By default `max(m, n)` times the dtype's epsilon.

    Returns
    -------
    Array of int64
    """
    values = np.linalg.svd(_matrices("matrix_rank", "x", x).numpy(), compute_uv=False)
    bound = values.max(axis=-1, keepdims=True, initial=0) * _relative(x, rtol)
    return on_host(np.count_nonzero(values > bound, axis=-1))


def _relative(x: Array, rtol: Any) -> Any:
    if rtol is None:
        return builtins.max(x.shape[-2:]) * np.finfo(x.dtype).eps
    return rtol.numpy()[..., None] if isinstance(rtol, Array) else rtol


def pinv(x: Array, /, *, rtol: Any = None) -> Array:
    """Return the pseudo-inverses of matrices.

    Parameters
    ----------
    x : Array, shape (..., m, n)
    rtol : float or Array, optional
        Singular values up to `rtol` times the largest count as 0; by default `max(m, n)` times the
        dtype's epsilon.

    Returns
    -------
    Array, shape (..., n, m)
    """
    given = _matrices("pinv", "x", x).numpy()
    relative = rtol.numpy() if isinstance(rtol, Array) else _relative(x, rtol)
    return on_host(np.linalg.pinv(given, relative))


def qr(x: Array, /, *, mode: str = "reduced") -> QRResult:
    """Return the QR decompositions of matrices.

    Parameters
    ----------
    x : Array, shape (..., m, n)
    mode : "reduced" or "complete"

    Returns
    -------
    QRResult
    """
    if mode not in ("reduced", "complete"):
        raise ValueError(f'linalg.qr: mode: got {mode!r}, expected "reduced" or "complete"')
    given: Any = _matrices("qr", "x", x).numpy()
    q, r = np.linalg.qr(given, mode=mode)  # type: ignore[call-overload]
    return QRResult(on_host(q), on_host(r))


def slogdet(x: Array, /) -> SlogdetResult:
    """Return the signs of determinants, and the logarithms of their absolute values."""
    sign, value = np.linalg.slogdet(_matrices("slogdet", "x", x, is_square=True).numpy())
    return SlogdetResult(on_host(sign), on_host(value))


def solve(x1: Array, x2: Array, /) -> Array:
    """Return x with `x1 @ x == x2`.

    Parameters
    ----------
    x1 : Array, shape (..., n, n)
    x2 : Array, shape (n,) or (..., n, k)

    Returns
    -------
    Array
        Of the shape of `x2`, with the broadcast shape before the last two dimensions.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular.
    """
    dtype = result_type(checked("linalg.solve", "x1", x1), checked("linalg.solve", "x2", x2))
    left = _matrices("solve", "x1", astype(x1, dtype, copy=False), is_square=True)
    right = astype(x2, dtype, copy=False)
    is_vector = x2.ndim == 1
    right = _matrices("solve", "x2", expand_dims(right, axis=-1) if is_vector else right)
    found = on_host(np.linalg.solve(left.numpy(), right.numpy()))
    return reshape(found, found.shape[:-1]) if is_vector else found


def svd(x: Array, /, *, full_matrices: bool = True) -> SVDResult:
    """Return the singular value decompositions of matrices, `U @ diag(S) @ Vh`.

    Parameters
    ----------
    x : Array, shape (..., m, n)
    full_matrices : bool, default True
        False: `U` has shape (..., m, min(m, n)), and `Vh` has (..., min(m, n), n).

    Returns
    -------
    SVDResult
        `S` is in descending order.
    """
    u, s, vh = np.linalg.svd(_matrices("svd", "x", x).numpy(), full_matrices=full_matrices)
    return SVDResult(on_host(u), on_host(s), on_host(vh))


def svdvals(x: Array, /) -> Array:
    """Return the singular values of matrices, in descending order."""
    return on_host(np.linalg.svd(_matrices("svdvals", "x", x).numpy(), compute_uv=False))


# ---- On each device ------------------------------------------------------------------------------


def _shape_of_matrices(name: str, x: Any, is_square: bool = False) -> None:
    checked(f"linalg.{name}", "x", x)
    if x.ndim < 2 or (is_square and x.shape[-1] != x.shape[-2]):
        wanted = "square matrices" if is_square else "matrices"
        raise ValueError(f"linalg.{name}: x: got shape {x.shape}, expected {wanted}")


def trace(x: Array, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """Return the sums of diagonals of matrices.

    Parameters
    ----------
    x : Array, shape (..., m, n)
    offset : int, default 0
        As for `diagonal`.
    dtype : dtype, optional
        As for `sum`.

    Returns
    -------
    Array
    """
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def matrix_power(x: Array, n: int, /) -> Array:
    """Return square matrices multiplied by themselves; the inverse's power for n below 0.

    Parameters
    ----------
    x : Array, shape (..., m, m)
    n : int

    Returns
    -------
    Array, shape (..., m, m)
    """
    _shape_of_matrices("matrix_power", x, is_square=True)
    n = integer("linalg.matrix_power: n", n)
    if n < 0:
        x, n = inv(x), -n
    one = eye(x.shape[-1], dtype=x.dtype, device=x.device)
    result = broadcast_to(one, x.shape) if not n else None
    while n:
        if n & 1:
            result = x if result is None else matmul(result, x)
        n >>= 1
        x = matmul(x, x) if n else x
    return asarray(result, copy=True)


def matrix_norm(x: Array, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Return norms of matrices.

    Parameters
    ----------
    x : Array, shape (..., m, n)
    keepdims : bool, default False
    ord : {"fro", "nuc", 1, -1, 2, -2, inf, -inf}, default "fro"
        The root of the sum of squares; the sum of singular values, the largest (2) or least (-2)
        one; the largest or least sum of absolute values of a column (1, -1) or of a row (inf).

    Returns
    -------
    Array
        Real.
    """
    _shape_of_matrices("matrix_norm", x)
    if ord == "fro":
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord in ("nuc", 2, -2):
        values = svdvals(x)
        found = (
            sum(values, axis=-1) if ord == "nuc" else (max if ord == 2 else min)(values, axis=-1)
        )
    elif ord in (1, -1, np.inf, -np.inf):
        sums = sum(unary("abs", x), axis=-2 if abs(ord) == 1 else -1)
        found = (max if ord > 0 else min)(sums, axis=-1)
    else:
        raise ValueError(
            f'linalg.matrix_norm: ord: got {ord!r}, expected "fro", "nuc", 1, -1, 2, -2, inf '
            "or -inf"
        )
    return expand_dims(expand_dims(found, axis=-1), axis=-1) if keepdims else found
