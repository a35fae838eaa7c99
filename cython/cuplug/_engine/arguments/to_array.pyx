# SPDX-License-Identifier: Apache-2.0
"""Arrays of any library, numbers and lists of them, as cuplug's own."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from libc.stdint cimport int32_t

from cuplug._engine.arguments.inputs cimport read_argument
from cuplug._engine.array.array cimport Array, empty_like_tensor, share_memory
from cuplug._engine.array.buffer cimport is_on_gpu, origin_of
from cuplug._engine.array.copies cimport host_values
from cuplug._engine.array.make cimport from_numpy, place_for
from cuplug._engine.interop.kinds cimport BUFFER, DLPACK, EXCHANGE, NUMPY, OWN, TORCH, array_kind
from cuplug._engine.interop.reading cimport kind_of, reading, start_reading
from cuplug._engine.interop.stream_order cimport add_current_stream, wait_for_streams
from cuplug._engine.base.core cimport (
    CUPLUG_ARGUMENT_ARRAY,
    CUPLUG_ARGUMENT_OTHER,
    CUPLUG_BYTE_SWAPPED,
    CUPLUG_CPU,
    CUPLUG_CUDA,
    CUPLUG_READ_ONLY,
    cuplug_argument,
    cuplug_device,
    cuplug_dtype,
    cuplug_error,
    cuplug_tensor,
)
from cuplug._engine.base.numpy_api cimport *
from cuplug._engine.base.numpy_dtypes cimport descr_of_dtype, dtype_in_memory, to_descr
from cuplug._engine.base.status cimport raise_error
from cuplug._engine.cuda.streams cimport work_stream

import numpy

from cuplug._engine.base.dtypes import BY_ID, DTYPES
from cuplug._engine.interop.unsupported import advice_on

_import_array()


def to_array(x, dtype, device, copy: bool | None) -> Array:
    """Make an Array, like `asarray`; arrays on a GPU are also converted to `dtype`.
    """
    cdef reading r
    cdef const array_kind *kind
    cdef bint is_copied
    descr = None if dtype is None else to_descr("asarray", dtype)
    start_reading(&r)
    try:
        kind = kind_of(&r, <PyObject *>x)
        if kind != NULL and kind.protocol != NUMPY and kind.protocol != BUFFER:
            found = read_own_or_gpu(&r, x, kind, device)
            if isinstance(found, Array):
                return found
            if found is not None:
                x = found
    finally:
        Py_XDECREF(r.kept)
    cdef cuplug_device place = place_for("asarray", device)
    if isinstance(x, Array) and copy is not False and both_on_gpus(x, place):
        return to_other_gpu((<Array>x).in_order(), place)
    if isinstance(x, Array):
        x = x.numpy()
    host = x
    if type(x) is not numpy.ndarray or descr is not None:
        try:
            host = host_values("asarray: x", x, descr)
        except (TypeError, ValueError):
            found = advice_on(x)
            if found is None:
                raise
            raise TypeError(f"asarray: x: got {found[1]}, expected an array") from None
    if not host.dtype.isnative:
        host = host.astype(host.dtype.newbyteorder("="))
    if not dtype_in_memory(host.dtype).bits:
        seen = f"{type(x).__name__}, of elements of dtype {host.dtype}"
        raise TypeError(f"asarray: x: got {seen}, expected numbers that an operator takes")
    is_shared = host is x or host.base is not None
    is_copied = is_shared and (copy is True or is_odd(<PyArrayObject *>host))
    if copy is False and (is_copied or not is_shared or place.type != CUPLUG_CPU):
        raise ValueError(
            f"asarray: copy: got False, expected None or True ({type(x).__name__} must be copied)"
        )
    return from_numpy(host, place, is_copied)


cdef object seen_as_numpy(
    reading *r, object x, const array_kind *kind, const cuplug_argument *a
):
    """Return a host array that only DLPack describes, such as PyTorch's bfloat16; else None."""
    if not has_dlpack(kind.protocol):
        return None
    if not is_known(&a.tensor.dtype):
        seen = f"{type(x).__name__} of {getattr(x, 'dtype', 'an unknown dtype')}"
        raise TypeError(f"asarray: x: got {seen}, expected a dtype of {', '.join(DTYPES)}")
    if descr_of_dtype(a.tensor.dtype).isbuiltin == 1:
        return None
    return numpy.asarray(shared(r, x, a))


cdef Array shared(reading *r, object x, const cuplug_argument *a):
    cdef Array result
    result = share_memory(&a.tensor, (x, <object>r.kept if r.kept != NULL else None))
    result.is_read_only = a.flags & CUPLUG_READ_ONLY
    return result


cdef bint is_known(const cuplug_dtype *dtype):
    return (dtype.code << 24 | dtype.bits << 16 | dtype.lanes) in BY_ID


cdef bint has_dlpack(int protocol) noexcept:
    return protocol == EXCHANGE or protocol == TORCH or protocol == DLPACK


cdef bint both_on_gpus(Array x, cuplug_device place) except -1:
    return is_on_gpu(&x.tensor) and place.type == CUPLUG_CUDA


cdef Array to_other_gpu(Array x, cuplug_device place):
    """Copy between GPUs, without the host if the GPUs can access each other."""
    from cuplug._engine.cuda.peer import copy_between  # loads the runtime

    cdef cuplug_tensor wanted = x.tensor
    cdef Array result
    wanted.device = place
    wanted.strides = NULL
    result = empty_like_tensor(&wanted)
    result.dtype = x.dtype
    copy_between(
        place.id, <size_t>result.tensor.data, x.tensor.device.id, <size_t>x.tensor.data, x.nbytes
    )
    origin_of(result)[0] = origin_of(x)[0]
    return result


cdef bint is_odd(PyArrayObject *host) noexcept:
    """Return whether no view of a NumPy array can be an Array."""
    cdef int k
    cdef Py_ssize_t item_bytes = PyArray_ITEMSIZE(host)
    for k in range(PyArray_NDIM(host) if item_bytes else 0):
        if PyArray_STRIDES(host)[k] % item_bytes:
            return True
    return not PyArray_FLAGS(host) & NPY_ARRAY_ALIGNED


cdef object read_own_or_gpu(reading *r, object x, const array_kind *kind, object device):
    """Return an array of cuplug or a GPU on the requested device; None if NumPy reads the object.

    For dtypes that NumPy lacks, return a NumPy array of the memory.
    """
    cdef cuplug_argument a
    cdef cuplug_device place
    read_argument(<PyObject *>x, r, &a)
    if a.kind == CUPLUG_ARGUMENT_OTHER:
        raise TypeError(f"asarray: x: got {(<const char *>a.scalar.s).decode()}, expected an array")
    if a.kind != CUPLUG_ARGUMENT_ARRAY:
        return None
    on_gpu = is_on_gpu(&a.tensor)
    if device is None:
        place = a.tensor.device
    else:
        place = place_for("asarray", device)
    is_there = on_gpu == (place.type == CUPLUG_CUDA) and (
        not on_gpu or place.id == a.tensor.device.id
    )
    if kind.protocol == OWN:
        return x if is_there else None
    if not on_gpu:
        return seen_as_numpy(r, x, kind, &a)
    if not is_there:
        where = "the host" if place.type != CUPLUG_CUDA else f"cuda:{place.id}"
        raise ValueError(
            f"asarray: x: got an array on cuda:{a.tensor.device.id}, expected one on {where}: move "
            "it with its own library"
        )
    if a.flags & CUPLUG_BYTE_SWAPPED:
        raise TypeError("asarray: x: got a byte-swapped array, expected native byte order")
    add_current_stream(r, kind, a.tensor.device.id)
    wait_for_streams(r, a.tensor.device.id, work_stream(a.tensor.device.id))
    return shared(r, x, &a)
