# SPDX-License-Identifier: Apache-2.0
"""Products of matrices, by NumPy or by cuBLAS on a GPU; products and norms of vectors."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug._engine.array.promotion import kind_of, name_of
from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.base.numpy_dtypes import numpy_dtype
from cuplug._engine.call.operator import Operator
from cuplug._source.compilers.libraries import load_cuda_library
from cuplug._source.expressions.functions import kept_in
from cuplug._source.expressions.reductions import reduction
from cuplug.array_api import statistical
from cuplug.array_api.concatenation import stack
from cuplug.array_api.conversion import asarray
from cuplug.array_api.dtypes import astype, checked, integer, result_type, sequence
from cuplug.array_api.elementwise import CALLED, binary, unary
from cuplug.array_api.filled import copied, zeros
from cuplug.array_api.functions import stock
from cuplug.array_api.manipulation import broadcast_arrays, broadcast_shapes, moveaxis
from cuplug.array_api.views import (
    axes_of,
    broadcast_to,
    expand_dims,
    permute_dims,
    reshape,
)

__all__ = ["cross", "matmul", "outer", "tensordot", "vecdot", "vector_norm"]

CUBLAS = ("13", "12")  # versions of its binary interface
_NAMES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
_BY_CUBLAS = frozenset(map(numpy_dtype, _NAMES))


def matmul(x1: Array, x2: Array, /) -> Array:
    """Return the product of matrices, `x1 @ x2`.

    Parameters
    ----------
    x1 : Array, shape (..., m, k) or (k,)
    x2 : Array, shape (..., k, n) or (k,)
        Dimensions before the last two broadcast. A vector is a matrix of one row on the left, and
        of one column on the right; that dimension is dropped from the result. Transposed views are
        used as they are.

    Returns
    -------
    Array, shape (..., m, n)
        float16 and bfloat16 are summed in float32.

    Raises
    ------
    ValueError
        If the sizes do not match.
    TypeError
        If the dtypes have no common one.
    PluginError
        If the arrays are in GPU memory, and cuBLAS is missing.

    Examples
    --------
    >>> x = cuplug.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> (x @ x).numpy().tolist()
    [[7.0, 10.0], [15.0, 22.0]]
    """
    if _are_plain(x1, x2):
        load_cuda_library("cublasLt", CUBLAS)
        try:
            found: Array = _product()(x1, x2)
        except ValueError:  # another layout, or sizes that are rejected below
            pass
        else:
            return found
    checked("matmul", "x1", x1)
    checked("matmul", "x2", x2)
    if not x1.ndim or not x2.ndim:
        which = "x1" if not x1.ndim else "x2"
        raise ValueError(f"matmul: {which}: got no dimensions, expected at least one")
    k, other = x1.shape[-1], x2.shape[-2 if x2.ndim > 1 else -1]
    if k != other:
        raise ValueError(f"matmul: x2: got {_shown(x2)}, expected {k} rows, as x1 has columns")
    dtype = result_type(x1, x2)
    x1, x2 = (astype(x, dtype, copy=False) for x in (x1, x2))
    if x1.device == x2.device and x1.device.type == "cpu":
        return _on_host(np.matmul, x1, x2)
    x = expand_dims(x1, axis=0) if x1.ndim == 1 else x1
    y = expand_dims(x2, axis=-1) if x2.ndim == 1 else x2
    found = _of_matrices(x, y)
    if x1.ndim == 1:
        found = reshape(found, (*found.shape[:-2], found.shape[-1]))
    return reshape(found, found.shape[:-1]) if x2.ndim == 1 else found


def _are_plain(x: Any, y: Any) -> bool:
    """Return whether cuBLAS probably accepts two arrays unchanged, as in most calls."""
    if type(x) is not Array or type(y) is not Array or x.dtype is not y.dtype:
        return False
    return x.ndim > 1 < y.ndim and x.dtype in _BY_CUBLAS and bool(x.device.type == "cuda")


def _shown(x: Array) -> str:
    return f"an array of shape {x.shape}"


def _on_host(function: Any, *arrays: Array) -> Array:
    """Return the result of a NumPy function, in the same memory. Narrow floats are float32."""
    dtype = arrays[0].dtype
    if not DTYPES[name_of(dtype)].is_narrow:
        return on_host(function(*[x.numpy() for x in arrays]))
    wide = function(*[x.numpy().astype(np.float32) for x in arrays])
    return on_host(wide.astype(dtype))


def on_host(found: Any) -> Array:
    """Return NumPy's result as a host array that shares its memory, even if a GPU exists."""
    return asarray(found, device="cpu")


def _of_matrices(x: Array, y: Array) -> Array:
    """Return the product of matrices in the memory of a GPU."""
    if not x.shape[-1] or kind_of(x.dtype) not in ("float", "complex"):
        return _sum_of_products(x, y)
    if x.dtype not in _BY_CUBLAS:  # float8
        return astype(_of_matrices(astype(x, "float32"), astype(y, "float32")), x.dtype)
    load_cuda_library("cublasLt", CUBLAS)
    found: Array = _product()(_with_lines(x), _with_lines(y))
    return found


@cache
def _product() -> Operator:
    return stock("linalg.matmul")


def _with_lines(x: Array) -> Array:
    """Return an array whose matrices have contiguous rows or columns, copied if necessary."""
    (rows, columns), (row, column) = x.shape[-2:], [n // x.itemsize for n in x.strides[-2:]]
    has_rows = (columns == 1 or column == 1) and (rows == 1 or row >= max(columns, 1))
    has_columns = (rows == 1 or row == 1) and (columns == 1 or column >= max(rows, 1))
    return x if has_rows or has_columns else copied(x)


def _sum_of_products(x: Array, y: Array) -> Array:
    """Return a product that no library computes: of integers, bools, or no elements."""
    loop = broadcast_shapes(x.shape[:-2], y.shape[:-2])
    m, k, n = x.shape[-2], x.shape[-1], y.shape[-1]
    if not k:
        return zeros((*loop, m, n), dtype=x.dtype, device=x.device)
    left = expand_dims(x, axis=-2)
    right = expand_dims(permute_dims(y, (*range(y.ndim - 2), y.ndim - 1, y.ndim - 2)), axis=-3)
    return vecdot(broadcast_to(left, (*loop, m, n, k)), broadcast_to(right, (*loop, m, n, k)))


@cache
def _dot(dtype: str) -> Operator:
    mapped, reduce = "x * y", "a + b"
    if dtype == "bool":
        mapped, reduce = "x && y", "a || b"
    if DTYPES[dtype].kind == "complex":
        mapped = "conj(x) * y"
    text = f"vecdot(x: {dtype}, y: {dtype}) -> {dtype}"
    kept = kept_in("sum", dtype)
    return reduction(text, map=mapped, reduce=reduce, identity="0", accumulate=kept)


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Return the dot products of vectors; `x1` is conjugated.

    Parameters
    ----------
    x1, x2 : Array
        Their other dimensions broadcast.
    axis : int, default -1
        The dimension of the vectors, from -1 down.

    Returns
    -------
    Array
        Without that dimension; of the arrays' common dtype.

    Raises
    ------
    ValueError
        If the sizes do not match.

    Examples
    --------
    >>> x = cuplug.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> cuplug.array_api.vecdot(x, x).numpy().tolist()
    [5.0, 25.0]
    """
    checked("vecdot", "x1", x1)
    checked("vecdot", "x2", x2)
    least = min(x1.ndim, x2.ndim)
    axis = integer("vecdot: axis", axis)
    if not least or not (-least <= axis < 0 or (x1.ndim == x2.ndim and 0 <= axis < least)):
        raise ValueError(f"vecdot: axis: got {axis}, expected -{least} <= axis < 0")
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(
            f"vecdot: x2: got {_shown(x2)}, expected {x1.shape[axis]} along axis {axis}, as x1"
        )
    dtype = result_type(x1, x2)
    shape = broadcast_shapes(x1.shape, x2.shape)
    x, y = (broadcast_to(astype(x, dtype, copy=False), shape) for x in (x1, x2))
    found: Array = _dot(name_of(dtype))(x, y, axis=axis)
    return found


def tensordot(x1: Array, x2: Array, /, *, axes: Any = 2) -> Array:
    """Return the sum of products over several dimensions.

    Parameters
    ----------
    x1, x2 : Array
    axes : int or tuple of two sequences of int, default 2
        The number of last dimensions of `x1` and first ones of `x2` to sum over; or the dimensions.

    Returns
    -------
    Array
        The other dimensions of `x1`, then of `x2`.

    Raises
    ------
    ValueError
        If the sizes do not match.

    Examples
    --------
    >>> x = cuplug.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> float(cuplug.array_api.tensordot(x, x))
    30.0
    """
    checked("tensordot", "x1", x1)
    checked("tensordot", "x2", x2)
    first, second = _axes(axes, x1.ndim, x2.ndim)
    if [x1.shape[k] for k in first] != [x2.shape[k] for k in second]:
        raise ValueError(
            f"tensordot: x2: got {_shown(x2)}, expected sizes of x1, {x1.shape}, along {axes}"
        )
    rest1 = [k for k in range(x1.ndim) if k not in first]
    rest2 = [k for k in range(x2.ndim) if k not in second]
    n = math.prod(x1.shape[k] for k in first)
    left = reshape(permute_dims(x1, (*rest1, *first)), (math.prod(x1.shape[k] for k in rest1), n))
    right = reshape(permute_dims(x2, (*second, *rest2)), (n, math.prod(x2.shape[k] for k in rest2)))
    shape = (*(x1.shape[k] for k in rest1), *(x2.shape[k] for k in rest2))
    return reshape(matmul(left, right), shape)


def _axes(axes: Any, ndim1: int, ndim2: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if isinstance(axes, (tuple, list)):
        pair = sequence("tensordot: axes", axes, "two sequences of integers")
        if len(pair) != 2:
            raise ValueError(f"tensordot: axes: got {len(pair)} parts, expected two")
        first, second = axes_of("tensordot", pair[0], ndim1), axes_of("tensordot", pair[1], ndim2)
        if len(first) != len(second):
            raise ValueError(
                f"tensordot: axes: got {len(second)} of x2, expected {len(first)}, as of x1"
            )
        return first, second
    n = integer("tensordot: axes", axes)
    if not 0 <= n <= min(ndim1, ndim2):
        raise ValueError(f"tensordot: axes: got {n}, expected 0 to {min(ndim1, ndim2)}")
    return tuple(range(ndim1 - n, ndim1)), tuple(range(n))


def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Return the cross products of vectors of 3 elements.

    Parameters
    ----------
    x1, x2 : Array
        Their other dimensions broadcast.
    axis : int, default -1
        The dimension of the vectors.

    Returns
    -------
    Array

    Examples
    --------
    >>> print(xp.linalg.cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0])))
    [0 0 1]
    """
    checked("linalg.cross", "x1", x1)
    checked("linalg.cross", "x2", x2)
    x, y = broadcast_arrays(x1, x2)
    (axis,) = axes_of("linalg.cross", axis, x.ndim)
    if (x1.shape or (0,))[axis - x.ndim] != 3 or (x2.shape or (0,))[axis - x.ndim] != 3:
        raise ValueError(
            f"linalg.cross: got shapes {x1.shape} and {x2.shape}, expected 3 elements along axis"
        )
    a, b = (moveaxis(each, axis, 0) for each in (x, y))
    parts = [
        binary("subtract", binary("multiply", a[i], b[j]), binary("multiply", a[j], b[i]))
        for i, j in ((1, 2), (2, 0), (0, 1))
    ]
    return stack(parts, axis=axis)


def outer(x1: Array, x2: Array, /) -> Array:
    """Return the products of each element of a vector with each one of another.

    Examples
    --------
    >>> print(xp.linalg.outer(xp.asarray([1, 2]), xp.asarray([1, 10])))
    [[ 1 10]
     [ 2 20]]
    """
    for name, x in (("x1", x1), ("x2", x2)):
        if checked("linalg.outer", name, x).ndim != 1:
            raise ValueError(f"linalg.outer: {name}: got shape {x.shape}, expected one dimension")
    product: Array = binary("multiply", expand_dims(x1, axis=1), expand_dims(x2, axis=0))
    return product


def vector_norm(x: Array, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Array:
    """Return norms of vectors.

    Parameters
    ----------
    x : Array
    axis : int or tuple of int, optional
        The dimensions of the vectors; the default is all.
    keepdims : bool, default False
    ord : float, default 2
        The root of the sum of absolute values to that power. 0 is the number of elements that are
        not 0, and inf and -inf are the largest and the smallest absolute value.

    Returns
    -------
    Array
        Real.

    Examples
    --------
    >>> print(xp.linalg.vector_norm(xp.asarray([3.0, 4.0])))
    5.0
    """
    kind = kind_of(checked("linalg.vector_norm", "x", x).dtype)
    if kind not in ("float", "complex"):
        raise TypeError(
            f"linalg.vector_norm: x: got {x.dtype}, expected a floating dtype; use astype"
        )
    size = unary("abs", x)
    if ord == 0:
        return astype(statistical.count_nonzero(x, axis=axis, keepdims=keepdims), size.dtype)
    if ord in (np.inf, -np.inf):
        return (statistical.max if ord > 0 else statistical.min)(size, axis=axis, keepdims=keepdims)
    if ord == 1:
        return statistical.sum(size, axis=axis, keepdims=keepdims)
    if ord == 2:
        return unary(
            "sqrt", statistical.sum(binary("multiply", size, size), axis=axis, keepdims=keepdims)
        )
    total = statistical.sum(CALLED["pow"](size, float(ord)), axis=axis, keepdims=keepdims)
    found: Array = CALLED["pow"](total, 1 / ord)
    return found
