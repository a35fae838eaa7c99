# SPDX-License-Identifier: Apache-2.0
"""The standard's extension for linear algebra, computed on the arrays' device."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug.array_api.conversion import asarray
from cuplug.array_api.creation import eye
from cuplug.array_api.decompositions import (
    by_cusolver,
    by_numpy,
    cholesky,
    det,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    is_for_numpy,
    matrices,
    qr,
    slogdet,
    svd,
    svdvals,
)
from cuplug.array_api.dtypes import astype, checked, integer, result_type
from cuplug.array_api.elementwise import CALLED, binary, unary
from cuplug.array_api.filled import zeros
from cuplug.array_api.manipulation import broadcast_shapes
from cuplug.array_api.products import (
    cross,
    matmul,
    on_host,
    outer,
    tensordot,
    vecdot,
    vector_norm,
)
from cuplug.array_api.sorting import where
from cuplug.array_api.statistical import count_nonzero, max, min, sum
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


def inv(x: Array, /) -> Array:
    """Return the inverses of square matrices.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular.

    Examples
    --------
    >>> print(xp.linalg.inv(xp.asarray([[2.0, 0.0], [0.0, 4.0]])))
    [[0.5  0.  ]
     [0.   0.25]]
    """
    x = matrices("inv", "x", x, is_square=True)
    found: Array
    if is_for_numpy(x):
        found = by_numpy(x, np.linalg.inv)
    else:
        one = eye(x.shape[-1], dtype=x.dtype, device=x.device)
        found = by_cusolver("solve", x, one, failure="Singular matrix")
    return found


def solve(x1: Array, x2: Array, /) -> Array:
    """Return x with `x1 @ x == x2`.

    Parameters
    ----------
    x1 : Array, shape (..., n, n)
    x2 : Array, shape (n,) or (..., n, k)

    Returns
    -------
    Array
        In the shape of `x2`, with the broadcast shape before the last two dimensions.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular.

    Examples
    --------
    >>> print(xp.linalg.solve(xp.asarray([[2.0, 0.0], [0.0, 4.0]]), xp.asarray([2.0, 8.0])))
    [1. 2.]
    """
    dtype = result_type(checked("linalg.solve", "x1", x1), checked("linalg.solve", "x2", x2))
    left = matrices("solve", "x1", astype(x1, dtype, copy=False), is_square=True)
    right = astype(x2, dtype, copy=False)
    is_vector = x2.ndim == 1
    right = matrices("solve", "x2", expand_dims(right, axis=-1) if is_vector else right)
    if left.device.type == right.device.type == "cpu":
        found = on_host(np.linalg.solve(left.numpy(), right.numpy()))
    else:
        found = _solve_on_gpu(left, right)
    return reshape(found, found.shape[:-1]) if is_vector else found


def _solve_on_gpu(left: Array, right: Array) -> Array:
    if left.shape[-1] != right.shape[-2]:
        raise ValueError(
            f"linalg.solve: x2: got shape {right.shape}, expected {left.shape[-1]} rows, as x1"
        )
    if not left.size or not right.size:
        loop = broadcast_shapes(left.shape[:-2], right.shape[:-2])
        return zeros((*loop, *right.shape[-2:]), dtype=left.dtype, device=left.device)
    lines = matrix_transpose(right)
    return matrix_transpose(by_cusolver("solve", left, lines, True, failure="Singular matrix"))


def matrix_rank(x: Array, /, *, rtol: Any = None) -> Array:
    """Return the ranks of matrices: the number of singular values above `rtol` times the largest.

    Parameters
    ----------
    x : Array, shape (..., m, n)
    rtol : float or Array, optional
        By default `max(m, n)` times the dtype's epsilon.

    Returns
    -------
    Array of int64

    Examples
    --------
    >>> print(xp.linalg.matrix_rank(xp.asarray([[1.0, 2.0], [2.0, 4.0]])))
    1
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
        Singular values up to `rtol` times the largest count as 0. The default is `max(m, n)` times
        the dtype's epsilon.

    Returns
    -------
    Array, shape (..., n, m)

    Examples
    --------
    >>> print(xp.linalg.pinv(xp.asarray([[2.0, 0.0], [0.0, 0.0]])))
    [[0.5 0. ]
     [0.  0. ]]
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

    Examples
    --------
    >>> print(xp.linalg.trace(xp.asarray([[1, 2], [3, 4]])))
    5
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

    Examples
    --------
    >>> print(xp.linalg.matrix_power(xp.asarray([[1.0, 1.0], [0.0, 1.0]]), 3))
    [[1. 3.]
     [0. 1.]]
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
        "fro" is the root of the sum of squares, "nuc" the sum of singular values, and 2 and -2 the
        largest and smallest of these. The largest and smallest sum of absolute values are 1 and -1
        for columns, and inf and -inf for rows.

    Returns
    -------
    Array
        Real.

    Examples
    --------
    >>> print(xp.linalg.matrix_norm(xp.asarray([[3.0, 0.0], [0.0, 4.0]])))
    5.0
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
