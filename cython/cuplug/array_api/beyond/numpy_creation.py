# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions that create arrays, called with a cuplug array as `like=`.

The results are on the device of `near`. The other parameters are as in NumPy's functions;
`order` is ignored, and arrays are in C order.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from cuplug._engine.array.array import Array
from cuplug.array_api import conversion

standard = import_module("cuplug.array_api")

__all__ = [
    *("arange", "array", "asanyarray", "asarray", "ascontiguousarray", "empty", "eye", "full"),
    *("identity", "ones", "tri", "zeros"),
]


def array(
    near: Any,
    object: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
) -> Array:
    """Return a new array of the elements of an object, with at least `ndmin` dimensions."""
    x = conversion.asarray(object, dtype, near, copy=copy)
    more = (1,) * (ndmin - x.ndim)
    found: Array = standard.reshape(x, more + x.shape) if more else x
    return found


def asarray(
    near: Any,
    a: Any,
    dtype: Any = None,
    order: Any = "K",
    *,
    device: Any = None,
    copy: Any = None,
) -> Array:
    """Return an object's elements as an array; an array is returned unchanged."""
    return conversion.asarray(a, dtype, near if device is None else device, copy=copy)


asanyarray = asarray


def ascontiguousarray(near: Any, a: Any, dtype: Any = None) -> Array:
    """Return elements in C order, with at least one dimension."""
    x = array(near, a, dtype, copy=None, ndmin=1)
    return x if x.flags.c_contiguous else x.copy()


def arange(
    near: Any,
    start: Any = 0,
    stop: Any = None,
    step: Any = 1,
    dtype: Any = None,
    *,
    device: Any = None,
) -> Array:
    """Return numbers of equal distance."""
    where = near if device is None else device
    made = standard.arange(start, stop, step, dtype=dtype, device=where)
    return made  # type: ignore[no-any-return]


def empty(
    near: Any, shape: Any, dtype: Any = float, order: Any = "C", *, device: Any = None
) -> Array:
    """Return an array without values."""
    made = standard.empty(shape, dtype=dtype, device=near if device is None else device)
    return made  # type: ignore[no-any-return]


def zeros(
    near: Any, shape: Any, dtype: Any = float, order: Any = "C", *, device: Any = None
) -> Array:
    """Return an array of zeros."""
    return full(near, shape, 0, dtype, device=device)


def ones(
    near: Any, shape: Any, dtype: Any = float, order: Any = "C", *, device: Any = None
) -> Array:
    """Return an array of ones."""
    return full(near, shape, 1, dtype, device=device)


def full(
    near: Any,
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "C",
    *,
    device: Any = None,
) -> Array:
    """Return an array of one value."""
    where = near if device is None else device
    made = standard.full(shape, fill_value, dtype=dtype, device=where)
    return made  # type: ignore[no-any-return]


def eye(
    near: Any,
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: Any = float,
    order: Any = "C",
    *,
    device: Any = None,
) -> Array:
    """Return a matrix of zeros with ones on a diagonal."""
    made = standard.eye(N, M, k=k, dtype=dtype, device=near if device is None else device)
    return made  # type: ignore[no-any-return]


def identity(near: Any, n: int, dtype: Any = None) -> Array:
    """Return a square matrix of zeros with ones on the diagonal."""
    return eye(near, n, dtype=float if dtype is None else dtype)


def tri(near: Any, N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Array:
    """Return a matrix of ones on and below a diagonal."""
    made = standard.tril(ones(near, (N, N if M is None else M), dtype), k=k)
    return made  # type: ignore[no-any-return]
