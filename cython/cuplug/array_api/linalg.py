# SPDX-License-Identifier: Apache-2.0
"""The standard's extension for linear algebra: all of it computes where the arrays are."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug.array_api.conversion import asarray
from cuplug.array_api.creation import eye
from cuplug.array_api.decompositions import (
    cholesky,
    det,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    inv,
    matrices,
    qr,
    slogdet,
    solve,
    svd,
    svdvals,
)
from cuplug.array_api.dtypes import checked, integer
from cuplug.array_api.elementwise import CALLED, binary, unary
from cuplug.array_api.products import cross, matmul, outer, tensordot, vecdot, vector_norm
from cuplug.array_api.sorting import where
from cuplug.array_api.statistical import count_nonzero, max, min, sum
from cuplug.array_api.views import (
    broadcast_to,
    diagonal,
    expand_dims,
    matrix_transpose,
)

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
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
    values = svdvals(matrices("matrix_rank", "x", x))
    return count_nonzero(_is_large(values, x, rtol), axis=-1)


def _is_large(values: Array, x: Array, rtol: Any) -> Array:
    """Return which singular values of x are above `rtol` times the largest."""
    if not values.shape[-1]:
        return values > 0
    if rtol is None:
        rtol = builtins.max(x.shape[-2:]) * float(np.finfo(x.dtype).eps)
    if isinstance(rtol, Array) and rtol.ndim:
        rtol = expand_dims(rtol, axis=-1)
    return binary("greater", values, binary("multiply", max(values, axis=-1, keepdims=True), rtol))


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
    u, s, vh = svd(CALLED["conj"](matrices("pinv", "x", x)), full_matrices=False)
    is_large = _is_large(s, x, rtol)
    inverse = where(is_large, binary("divide", 1, where(is_large, s, 1)), 0)
    scaled = binary("multiply", expand_dims(inverse, axis=-1), matrix_transpose(u))
    return matmul(matrix_transpose(vh), scaled)


def _shape_of_matrices(name: str, x: Any, is_square: bool = False) -> None:
    checked(f"linalg.{name}", "x", x)
    if x.ndim < 2 or (is_square and x.shape[-1] != x.shape[-2]):
        wanted = "square matrices" if is_square else "matrices"
        raise np.linalg.LinAlgError(f"linalg.{name}: x: got shape {x.shape}, expected {wanted}")


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
    """Return powers of square matrices; of the inverse for n below 0.

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
        The root of the sum of squares; the sum of singular values, the largest (2) or smallest (-2)
        one; the largest or smallest sum of absolute values of a column (1, -1) or of a row (inf).

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
