# SPDX-License-Identifier: Apache-2.0
"""Functions of `numpy.linalg` that the standard lacks or defines with other parameters."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug.array_api import decompositions, linalg
from cuplug.array_api.beyond.outputs import into_out
from cuplug.array_api.creation import eye
from cuplug.array_api.dtypes import astype, checked, result_type
from cuplug.array_api.elementwise import CALLED, binary, unary
from cuplug.array_api.filled import zeros
from cuplug.array_api.manipulation import moveaxis
from cuplug.array_api.sorting import where
from cuplug.array_api.statistical import any as is_any
from cuplug.array_api.statistical import count_nonzero, sum
from cuplug.array_api.views import expand_dims, matrix_transpose, permute_dims, reshape

__all__ = [
    *("cond", "eig", "eigh", "eigvals", "eigvalsh", "lstsq", "matrix_rank", "multi_dot", "norm"),
    *("pinv", "qr", "svd", "tensorinv", "tensorsolve"),
]


def norm(x: Array, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """Return norms of vectors or of matrices."""
    if axis is None and ord is not None and x.ndim == 2:
        axis = (0, 1)
    if np.ndim(axis) == 1 and len(axis) == 2 and ord is not None:
        found: Array = linalg.matrix_norm(moveaxis(x, axis, (-2, -1)), ord=ord, keepdims=False)
        for k in sorted(a % x.ndim for a in axis) if keepdims else ():
            found = expand_dims(found, axis=k)
        return found
    return linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=2 if ord is None else ord)


def svd(a: Array, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """Return singular value decompositions, or without `compute_uv` the values."""
    return linalg.svd(a, full_matrices=full_matrices) if compute_uv else linalg.svdvals(a)


def qr(a: Array, mode: str = "reduced") -> Any:
    """Return QR decompositions, or with mode "r" the triangular factors."""
    return linalg.qr(a, mode="reduced").R if mode == "r" else linalg.qr(a, mode=mode)


def _lower(name: str, a: Array, triangle: str) -> Array:
    """Return Hermitian matrices from their lower triangles."""
    if triangle not in ("L", "U", "l", "u"):
        raise ValueError(f'numpy.linalg.{name}: UPLO: got {triangle!r}, expected "L" or "U"')
    if triangle in "Ll":
        return a
    return matrix_transpose(CALLED["conj"](linalg.matrices(name, "a", a)))


def eig(a: Array) -> Any:
    """Return eigenvalues and eigenvectors, which are real if all of them are."""
    found = decompositions.eig(a)
    return (
        decompositions.EigResult(*(unary("real", each) for each in found))
        if _is_real(a, found[0])
        else found
    )


def eigvals(a: Array) -> Array:
    """Return eigenvalues, which are real if all of them are."""
    found = decompositions.eigvals(a)
    return unary("real", found) if _is_real(a, found) else found


def _is_real(a: Array, values: Array) -> bool:
    """Return whether eigenvalues of real matrices are real. Waits for a GPU."""
    return a.dtype.kind != "c" and not is_any(unary("imag", values))


def multi_dot(arrays: Any, *, out: Array | None = None) -> Array:
    """Return the product of several matrices, in the order that takes the fewest operations."""
    given = [*arrays]
    if len(given) < 2:
        raise ValueError(f"numpy.linalg.multi_dot: arrays: got {len(given)}, expected at least 2")
    is_row, is_column = given[0].ndim == 1, given[-1].ndim == 1
    given[0] = given[0][None, :] if is_row else given[0]
    given[-1] = given[-1][:, None] if is_column else given[-1]
    if any(x.ndim != 2 for x in given):
        seen = ", ".join(f"{x.ndim}-D" for x in given)
        message = f"numpy.linalg.multi_dot: arrays: got {seen}, expected matrices"
        raise np.linalg.LinAlgError(message)
    sizes = [given[0].shape[0], *(x.shape[1] for x in given)]

    @cache
    def best(i: int, j: int) -> tuple[int, int]:
        """Return the cost of the product of matrices i to j, and the index at which it is split."""
        if i == j:
            return 0, i
        cut = ((best(i, k)[0] + best(k + 1, j)[0], k) for k in range(i, j))
        return min((cost + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for cost, k in cut)

    def product(i: int, j: int) -> Array:
        k = best(i, j)[1]
        return given[i] if i == j else linalg.matmul(product(i, k), product(k + 1, j))

    found = product(0, len(given) - 1)[0 if is_row else slice(None)]
    found = found[..., 0] if is_column else found
    return into_out(found, out)


def tensorinv(a: Array, ind: int = 2) -> Array:
    """Return the inverse of `tensordot` with an array, whose first `ind` dimensions are rows."""
    if ind <= 0:
        raise ValueError(f"numpy.linalg.tensorinv: ind: got {ind}, expected at least 1")
    rows, columns = a.shape[:ind], a.shape[ind:]
    return reshape(linalg.inv(reshape(a, (math.prod(columns), -1))), (*columns, *rows))


def tensorsolve(a: Array, b: Array, axes: Any = None) -> Array:
    """Return x with `tensordot(a, x, x.ndim) == b`, after moving `axes` of a to its end."""
    if axes is not None:
        rest = [k for k in range(a.ndim) if k not in axes]
        a = permute_dims(a, (*rest, *axes))
    shape = a.shape[b.ndim :]
    n = math.prod(shape)
    if a.size != n**2:
        raise np.linalg.LinAlgError(
            f"numpy.linalg.tensorsolve: a: got shape {a.shape}, expected {n} elements in each half"
        )
    return reshape(linalg.solve(reshape(a, (n, n)), reshape(b, (-1,))), shape)


def eigh(a: Array, UPLO: str = "L") -> Any:
    """Return eigenvalues and eigenvectors of Hermitian matrices, from one triangle."""
    return linalg.eigh(_lower("eigh", a, UPLO))


def eigvalsh(a: Array, UPLO: str = "L") -> Array:
    """Return eigenvalues of Hermitian matrices, from one triangle."""
    return linalg.eigvalsh(_lower("eigvalsh", a, UPLO))


def pinv(a: Array, rcond: Any = None, *, rtol: Any = np._NoValue) -> Array:
    """Return pseudo-inverses, by default with NumPy's bound of 1e-15 for singular values."""
    if rcond is None:
        rcond = 1e-15 if rtol is np._NoValue else rtol
    return linalg.pinv(a, rtol=rcond)


def matrix_rank(A: Array, tol: Any = None, *, rtol: Any = None) -> Any:
    """Return ranks: the number of singular values above `tol`, or `rtol` times the largest one."""
    if A.ndim < 2:
        return int(is_any(binary("not_equal", A, 0)))
    if tol is None:
        return linalg.matrix_rank(A, rtol=rtol)
    bound = expand_dims(tol, axis=-1) if isinstance(tol, Array) and tol.ndim else tol
    return count_nonzero(binary("greater", linalg.svdvals(A), bound), axis=-1)


def cond(x: Array, p: Any = None) -> Array:
    """Return condition numbers: a norm of the matrix times the norm of its inverse."""
    linalg.matrices("cond", "x", x)
    if not x.shape[-1] or not x.shape[-2]:
        raise np.linalg.LinAlgError(f"linalg.cond: x: got shape {x.shape}, expected elements")
    if p in (None, 2, -2):
        values = linalg.svdvals(x)
        first, last = values[..., 0], values[..., -1]
        found = binary("divide", last, first) if p == -2 else binary("divide", first, last)
    else:
        is_singular: Any = False
        try:
            inverse = linalg.inv(x)
        except np.linalg.LinAlgError:  # from one or more of them
            is_singular = binary("equal", linalg.det(x), 0)
            one = eye(x.shape[-1], dtype=x.dtype, device=x.device)
            inverse = linalg.inv(where(is_singular[..., None, None], one, x))
        found = binary("multiply", *(linalg.matrix_norm(y, ord=p) for y in (x, inverse)))
        found = found if is_singular is False else where(is_singular, np.inf, found)
    has_nan = is_any(binary("not_equal", x, x), axis=(-2, -1))
    return where(binary("not_equal", found, found) & ~has_nan, np.inf, found)


def lstsq(a: Array, b: Array, rcond: Any = None) -> tuple[Array, Array, Any, Array]:
    """Return the x of minimum `norm(a @ x - b)`, its squares, and the rank and spectrum of a."""
    dtype = result_type(checked("lstsq", "a", a), checked("lstsq", "b", b))
    a, b = (astype(each, dtype, copy=False) for each in (a, b))
    if a.ndim != 2 or b.ndim not in (1, 2) or a.shape[0] != b.shape[0]:
        raise ValueError(
            f"numpy.linalg.lstsq: got shapes {a.shape} and {b.shape}, expected a matrix and a "
            "vector or matrix of as many rows"
        )
    u, s, vh = linalg.svd(a, full_matrices=False)
    m, n = a.shape
    if rcond is None or rcond == -1:
        rcond = np.finfo(dtype).eps * (max(m, n) if rcond is None else 1)
    is_large = binary("greater", s, s[:1] * float(rcond))
    inverse = where(is_large, binary("divide", 1, where(is_large, s, 1)), 0)
    columns = expand_dims(b, axis=-1) if b.ndim == 1 else b
    inner = CALLED["conj"](matrix_transpose(u)) @ columns
    x = CALLED["conj"](matrix_transpose(vh)) @ binary("multiply", inverse[:, None], inner)
    rank = astype(count_nonzero(is_large), "int32")
    squares = zeros((0,), dtype=s.dtype, device=a.device)
    if int(rank) == n < m:
        squares = sum(CALLED["abs"](columns - a @ x) ** 2, axis=0)
    return x[:, 0] if b.ndim == 1 else x, squares, rank, s
