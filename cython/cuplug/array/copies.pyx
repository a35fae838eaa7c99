# SPDX-License-Identifier: Apache-2.0
"""Copies between arrays and NumPy's."""

from cuplug.array.buffer cimport Buffer, interface_of, is_on_gpu
from cuplug.base.numpy_api cimport PyArray_DATA, PyArrayObject
from cuplug.cuda.streams cimport memory_stream, parse_stream, refuse_capture, work_stream
from cuplug.host.blocks cimport empty_array, is_large
from cuplug.host.progress cimport copy_watched

import numpy


class Memory:
    """Memory of the host as bytes, which keeps its owner."""

    def __init__(self, owner):
        self.owner = owner
        self.__array_interface__ = interface_of(owner)
        if owner.dtype.isbuiltin != 1:  # NumPy's interface knows no dtypes of others
            self.__array_interface__["typestr"] = f"|V{owner.dtype.itemsize}"


cdef object host_values(str name, object x, object descr):
    """What NumPy makes of numbers, or of an array of the host."""
    is_array = isinstance(x, (numpy.ndarray, numpy.generic))
    if is_array and descr is not None and x.dtype.kind == "c" and descr.kind in "biuf":
        raise TypeError(f"{name}: seen {x.dtype}, wanted real numbers for {descr}")
    try:
        return numpy.asarray(x, dtype=None if x is None else descr)  # which it takes for NaN
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        wanted = "numbers" if descr is None else f"numbers for {descr}"
        seen = type(x).__name__
        raise kind(f"{name}: seen {seen}, wanted {wanted}, in equal rows: {error}") from error


cdef object seen_by_numpy(Buffer x):
    return numpy.asarray(Memory(x)).view(x.dtype)


cdef object to_numpy(Buffer x, object out, object stream):
    check_out(x, out)
    if not is_on_gpu(&x.tensor):
        if out is None:
            return numpy.array(seen_by_numpy(x))
        out[...] = seen_by_numpy(x)
        return out
    cdef void *after = parse_stream("numpy", stream)
    if stream is None:
        after = work_stream(x.tensor.device.id)
    if after != NULL:
        refuse_capture("numpy", after, "wanted a stream whose work is done")
    is_direct = out is not None and out.flags.c_contiguous
    result = out if is_direct else empty_array(&x.tensor, is_large(&x.tensor)).view(x.dtype)
    cdef void *to = PyArray_DATA(<PyArrayObject *>result)
    copy_watched("numpy", x.tensor.device.id, True, to, x.tensor.data, x.nbytes, after)
    if out is None or is_direct:
        return result
    out[...] = result
    return out


cdef int check_out(Buffer x, object out) except -1:
    if out is None:
        return 0
    if not isinstance(out, numpy.ndarray):
        raise TypeError(f"numpy: out: seen {type(out).__name__}, wanted a NumPy array")
    if (out.shape, out.dtype) != (x.shape, x.dtype):
        seen, wanted = f"{out.dtype} of shape {out.shape}", f"{x.dtype} of shape {x.shape}"
        raise ValueError(f"numpy: out: seen {seen}, wanted {wanted}")
    if not out.flags.writeable:
        raise ValueError("numpy: out: seen a read-only array, wanted a writable one")
    return 0


cdef int take_numpy(Buffer x, object values, object stream) except -1:
    cdef void *after = parse_stream("set", stream)
    if not is_on_gpu(&x.tensor):
        seen_by_numpy(x)[...] = values
        return 0
    if stream is None:
        after = memory_stream(x.tensor.device.id)
    if after != NULL:
        refuse_capture("set", after, "wanted a stream whose work is done")
    host = numpy.ascontiguousarray(values)
    cdef void *source = PyArray_DATA(<PyArrayObject *>host)
    return copy_watched("set", x.tensor.device.id, False, x.tensor.data, source, x.nbytes, after)
