# SPDX-License-Identifier: Apache-2.0
"""Arrays without DLPack's C API: CuPy's attributes, `__cuda_array_interface__`, buffers."""

from cpython.buffer cimport Py_buffer
from cpython.memoryview cimport PyMemoryView_FromObject, PyMemoryView_GET_BUFFER
from cpython.object cimport PyObject
from cpython.ref cimport Py_TYPE
from libc.stdint cimport int32_t, int64_t

from cuplug._engine.base.core cimport (
    CUPLUG_ARGUMENT_ARRAY,
    CUPLUG_BYTE_SWAPPED,
    CUPLUG_CPU,
    CUPLUG_CUDA,
    CUPLUG_READ_ONLY,
    cuplug_argument,
    cuplug_element_bytes,
    cuplug_n_devices,
    cuplug_query_pointer,
)
from cuplug._engine.base.numpy_dtypes cimport dtype_of_descr
from cuplug._engine.interop.kinds cimport (
    CUPY_DEVICE,
    CUPY_DTYPE,
    CUPY_IS_CONTIGUOUS,
    CUPY_POINTER,
    CUPY_SHAPE,
    CUPY_STRIDES,
    call_getter,
    cupy_getters,
)
from cuplug._engine.interop.reading cimport add_stream, divide_strides, keep, reading
from cuplug._engine.interop.reading cimport set_other, set_unsupported, store

import numpy

from cuplug._engine.interop.unsupported import advice_on

cdef enum:
    MAX_NDIM = 64


cdef int set_array(
    cuplug_argument *a, int device_type, int device, size_t data
) except -1:
    a.kind = CUPLUG_ARGUMENT_ARRAY
    a.flags = 0
    a.tensor.data = <void *>data
    a.tensor.device.type = device_type
    a.tensor.device.id = device
    a.tensor.byte_offset = 0
    a.tensor.strides = NULL
    return 0


cdef int set_shape(reading *r, cuplug_argument *a, tuple shape) except -1:
    cdef int k
    a.tensor.ndim = <int>len(shape)
    a.tensor.shape = store(r, a.tensor.ndim)
    for k in range(a.tensor.ndim):
        a.tensor.shape[k] = shape[k]
    return 0


cdef int set_strides(
    reading *r, cuplug_argument *a, tuple strides, Py_ssize_t item_bytes
) except -1:
    cdef Py_ssize_t in_bytes[MAX_NDIM]
    cdef int k
    if len(strides) != a.tensor.ndim or a.tensor.ndim > MAX_NDIM:
        raise ValueError(f"got {len(strides)} strides, expected {a.tensor.ndim}, one per dimension")
    for k in range(a.tensor.ndim):
        in_bytes[k] = strides[k]
    return divide_strides(r, a, in_bytes, item_bytes)


cdef int read_cupy(
    PyObject *x, reading *r, cuplug_argument *a, const cupy_getters *getters
) except -1:
    """Read attributes, through their getters if these are known, which is faster than by name."""
    strides = None
    memory = (<object>x).data
    if <PyObject *>Py_TYPE(memory) == getters.memory_type:
        descr = call_getter(getters.of[CUPY_DTYPE], x)
        device = call_getter(getters.of[CUPY_DEVICE], <PyObject *>memory)
        pointer = call_getter(getters.of[CUPY_POINTER], <PyObject *>memory)
        shape = call_getter(getters.of[CUPY_SHAPE], x)
        if call_getter(getters.of[CUPY_IS_CONTIGUOUS], x) is not True:
            strides = call_getter(getters.of[CUPY_STRIDES], x)
    else:
        array = <object>x
        descr, shape, strides = array.dtype, array.shape, array.strides
        device, pointer = memory.device_id, memory.ptr
    a.tensor.dtype = dtype_of_descr(descr)
    if not a.tensor.dtype.bits:
        return set_other(r, a, f"array of dtype {descr}")
    set_array(a, CUPLUG_CUDA, device, pointer)
    set_shape(r, a, shape)
    if strides is None:
        return 0
    return set_strides(r, a, strides, cuplug_element_bytes(&a.tensor))


cdef int read_cuda_interface(object x, reading *r, cuplug_argument *a) except -1:
    try:
        interface = x.__cuda_array_interface__
        return read_interface(x, interface, r, a)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        found = advice_on(x)
        if found is not None:
            return set_unsupported(r, a, found)
        kind = f"{type(x).__name__} whose __cuda_array_interface__ is ill-formed"
        return set_other(r, a, f"{kind}: {error!r}")


cdef int read_interface(object x, dict interface, reading *r, cuplug_argument *a) except -1:
    if interface.get("mask") is not None:
        return set_other(r, a, f"{type(x).__name__} with a mask, which would be lost")
    descr = numpy.dtype(interface["typestr"])
    a.tensor.dtype = dtype_of_descr(descr)
    if not a.tensor.dtype.bits:
        return set_other(r, a, f"array of dtype {descr}")
    pointer, read_only = interface["data"]
    set_array(a, CUPLUG_CUDA, device_number(x, pointer or 0), pointer or 0)
    set_shape(r, a, tuple(interface["shape"]))
    if read_only:
        a.flags |= CUPLUG_READ_ONLY
    if not descr.isnative:
        a.flags |= CUPLUG_BYTE_SWAPPED
    if interface.get("strides") is not None:
        set_strides(r, a, tuple(interface["strides"]), descr.itemsize)
    stream = interface.get("stream")
    return 0 if stream is None else add_stream(r, <void *><size_t>stream)


cdef int device_number(object x, size_t pointer) except -1:
    """Find the device of the memory: from the library if it has it, else from the driver."""
    cdef int32_t n_devices = 0, found = 0
    device = getattr(x, "device", None)
    for name in ("id", "index"):
        number = getattr(device, name, None)
        if isinstance(number, int):
            return number
    if not pointer or cuplug_n_devices(&n_devices, NULL, NULL) or n_devices == 1:
        return 0
    return 0 if cuplug_query_pointer(<void *>pointer, &found, NULL) else found


cdef int read_buffer(object x, reading *r, cuplug_argument *a) except -1:
    try:
        view = PyMemoryView_FromObject(x)
    except (BufferError, ValueError, TypeError) as error:
        return set_other(r, a, f"{type(x).__name__} that cannot be read: {error}")
    cdef const Py_buffer *buffer = PyMemoryView_GET_BUFFER(view)
    text = buffer.format.decode("latin-1") if buffer.format != NULL else "B"
    descr = descr_of_format(text)
    if descr is not None:
        a.tensor.dtype = dtype_of_descr(descr)
    if descr is None or not a.tensor.dtype.bits or descr.itemsize != buffer.itemsize:
        return set_other(r, a, f"{type(x).__name__} of format {text!r}")
    if buffer.suboffsets != NULL and buffer.ndim:
        return set_other(r, a, f"{type(x).__name__} of pointers (with suboffsets)")
    keep(r, view)
    set_array(a, CUPLUG_CPU, 0, <size_t>buffer.buf)
    a.tensor.ndim = buffer.ndim
    a.tensor.shape = <int64_t *>buffer.shape
    if buffer.readonly:
        a.flags |= CUPLUG_READ_ONLY
    if not descr.isnative:
        a.flags |= CUPLUG_BYTE_SWAPPED
    if buffer.strides != NULL:
        divide_strides(r, a, buffer.strides, buffer.itemsize)
    return 0


# Formats of one element, in the notation of the module struct; "Z" is complex.
NATIVE_FORMATS = frozenset("?bBhHiIlLqQnNefd")
STANDARD_FORMATS = {
    "?": "?", "b": "i1", "B": "u1", "h": "i2", "H": "u2", "i": "i4", "I": "u4", "l": "i4",
    "L": "u4", "q": "i8", "Q": "u8", "e": "f2", "f": "f4", "d": "f8", "Zf": "c8", "Zd": "c16",
}


cdef object descr_of_format(str text):
    """Return the NumPy dtype of a buffer's format; None if it is not a single number."""
    code = text.lstrip("@=<>!")
    order = text[: len(text) - len(code)] or "@"
    if order == "@" and code in NATIVE_FORMATS:
        return numpy.dtype({"n": "intp", "N": "uintp"}.get(code, code))
    if code not in STANDARD_FORMATS or len(order) != 1:
        return None
    return numpy.dtype({"@": "=", "!": ">"}.get(order, order) + STANDARD_FORMATS[code])
