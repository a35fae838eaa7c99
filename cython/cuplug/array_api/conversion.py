# SPDX-License-Identifier: Apache-2.0
"""Conversion of other libraries' arrays, numbers, and lists of these to arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuplug._engine.arguments.to_array import to_array
from cuplug._engine.array.array import Array
from cuplug._engine.array.promotion import to_dtype
from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.base.public import public
from cuplug.array_api.concatenation import stack
from cuplug.array_api.dtypes import astype, flag
from cuplug.array_api.filled import copied

MAX_NDIM = 64  # of arrays


@public
def asarray(x: Any, /, dtype: Any = None, device: Any = None, *, copy: bool | None = None) -> Array:
    """Make an `Array` from an array of any library, numbers, or lists of them.

    Parameters
    ----------
    x : array_like
        On the host: anything that numpy.asarray accepts, also structures for kernels; elements of
        the other byte order are converted to the machine's. On a GPU: an array of any library,
        whose memory is shared and kept alive. Lists may also contain cuplug's arrays on GPUs.
    dtype : str or numpy.dtype, optional
        The dtype that elements are converted to.
    device : str, int or Device, optional
        "cpu", "cuda", "cuda:1". The default is the device of an `Array`, or of an array on a GPU;
        for others as for `empty`.
    copy : bool, optional
        True copies always. False copies never, and raises ValueError if a copy is required. By
        default, memory of the same device is shared, and the array is read-only if its memory is.

    Returns
    -------
    Array

    Raises
    ------
    TypeError, ValueError
        If no operator accepts the elements, the device is unknown, or an array of another library
        is on another GPU.
    MemoryError, CudaError
        As for `empty`.

    Examples
    --------
    >>> cuplug.asarray([[1, 2], [3, 4]], dtype="float32", device="cpu").shape
    (2, 2)
    """
    if dtype is None and device is None and isinstance(x, Array):
        if copy is None:
            return x
        if copy is True:
            return copied(x)
    if dtype is None and copy is None:
        return _read(x, None, device, None)
    copy = None if copy is None else flag("asarray: copy", copy)
    if isinstance(x, Array):
        result = x if device is None else to_array(x, None, device, copy)
    else:
        is_converted_here = _may_be_out_of_range(x, dtype)
        result = _read(x, None if is_converted_here else dtype, device, copy)
    wanted = result.dtype if dtype is None else to_dtype(dtype, "asarray")
    if wanted == result.dtype and not (copy and result is x):
        return result
    if wanted == result.dtype:
        return copied(result)
    if copy is False:
        raise ValueError(
            f"asarray: copy: got False, expected None or True ({result.dtype} becomes {wanted})"
        )
    return astype(result, wanted)


def _read(x: Any, dtype: Any, device: Any, copy: bool | None) -> Array:
    if type(x) is np.ndarray and x.dtype.metadata is not None and x.dtype.kind in "biufc":
        x = x.view(np.dtype(x.dtype.str))  # metadata, as in scikit-learn's arrays
    try:
        return to_array(x, dtype, device, copy)
    except TypeError:
        gpu = None if copy is False else gpu_in(x, MAX_NDIM)
        if gpu is None:
            raise
        return _stacked(x, gpu if device is None else device)


def gpu_in(x: Any, depth: int) -> Any:
    """Return the GPU of the first array on one, in nested lists of this depth; None if on none."""
    if isinstance(x, (list, tuple)):
        return next(filter(None, (gpu_in(part, depth - 1) for part in x if depth)), None)
    return x.device if isinstance(x, Array) and x.device.type == "cuda" else None


def _stacked(x: Any, device: Any) -> Array:
    """Return nested lists that contain GPU arrays as one array, which NumPy cannot do."""
    if not isinstance(x, (list, tuple)):
        return asarray(x, device=device)
    return stack([_stacked(part, device) for part in x])


def _may_be_out_of_range(x: Any, dtype: Any) -> bool:
    """Return whether floats are converted to integers, undefined in NumPy for large values."""
    if dtype is None or not isinstance(x, (np.ndarray, np.generic)):
        return False
    own, wanted = (DTYPES.get(y.name) for y in (x.dtype, to_dtype(dtype, "asarray")))
    return bool(own and wanted and own.kind == "float" and wanted.kind in ("int", "uint"))


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """Return an array of another library as an `Array` on its device, without a copy.

    Examples
    --------
    >>> print(xp.from_dlpack(numpy.arange(3)))
    [0 1 2]
    """
    where = device
    if where is None and hasattr(x, "__dlpack_device__"):
        where = "cpu" if x.__dlpack_device__()[0] in (1, 3) else None
    return asarray(x, device=where, copy=copy)
