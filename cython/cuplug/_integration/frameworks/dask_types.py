# SPDX-License-Identifier: Apache-2.0
"""What dask arrays need to know of cuplug's: how blocks are joined, counted, divided and weighed.

Imported with `cuplug.dask`, and by `Array.__array_priority__`, which dask reads before it joins
blocks or divides sums.
"""

from __future__ import annotations

from typing import Any

import numpy
from dask.array.dispatch import concatenate_lookup, divide_lookup, numel_lookup
from dask.sizeof import sizeof

__all__: list[str] = []


@concatenate_lookup.register_lazy("cuplug")
@divide_lookup.register_lazy("cuplug")
@numel_lookup.register_lazy("cuplug")
@sizeof.register_lazy("cuplug")
def _register() -> None:
    """Asked for when the first array of cuplug is there."""
    from cuplug._engine.array.array import Array

    concatenate_lookup.register(Array, _joined)
    divide_lookup.register(Array, _divided)
    numel_lookup.register(Array, _numbers)
    sizeof.register(Array, lambda x: x.nbytes)  # by which a scheduler weighs where a task runs


def _joined(arrays: Any, axis: int = 0) -> Any:
    """Return blocks as one array; some may be of NumPy, as zeros that dask puts before others."""
    from cuplug.array_api.concatenation import concat

    device = _device_of(arrays)
    return concat([_own(x, device) for x in arrays], axis=axis)


def _divided(a: Any, b: Any, dtype: Any = None) -> Any:
    device = _device_of((a, b))
    result = _own(a, device) / _own(b, device)
    return result if dtype is None else result.astype(dtype)


def _numbers(x: Any, **keywords: Any) -> Any:
    """Return how many elements a mean is of: as NumPy counts them, where the array is."""
    like = numpy.broadcast_to(numpy.empty((), x.dtype), x.shape)
    return _own(numel_lookup.dispatch(numpy.ndarray)(like, **keywords), x.device)


def _device_of(arrays: Any) -> Any:
    from cuplug._engine.array.array import Array

    return next(x.device for x in arrays if isinstance(x, Array))


def _own(x: Any, device: Any) -> Any:
    from cuplug._engine.array.array import Array
    from cuplug.array_api.conversion import asarray

    return x if isinstance(x, Array) else asarray(x, device=device)
