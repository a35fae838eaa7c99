# SPDX-License-Identifier: Apache-2.0
"""Conversion of Python objects to the values of kernels' parameters."""

from cpython.buffer cimport (
    PyBUF_SIMPLE,
    Py_buffer,
    PyBuffer_Release,
    PyObject_CheckBuffer,
    PyObject_GetBuffer,
)
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.object cimport PyObject
from libc.math cimport INFINITY, isfinite
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from cuplug._engine.arguments.inputs cimport read_argument
from cuplug._engine.arguments.scalars cimport read_exact_scalar
from cuplug._engine.array.array cimport Array
from cuplug._engine.base.core cimport (
    CUPLUG_ARGUMENT_ARRAY,
    CUPLUG_ARGUMENT_BOOL,
    CUPLUG_ARGUMENT_FLOAT,
    CUPLUG_ARGUMENT_HUGE_INT,
    CUPLUG_ARGUMENT_INT,
    CUPLUG_ARGUMENT_NONE,
    CUPLUG_ARGUMENT_OTHER,
    CUPLUG_ARGUMENT_UINT,
    CUPLUG_BYTE_SWAPPED,
    CUPLUG_CUDA,
    CUPLUG_CUDA_MANAGED,
    CUPLUG_UNALIGNED_STRIDES,
    CUPLUG_READ_ONLY,
    cuplug_argument,
    cuplug_dtype,
    cuplug_element_bytes,
    cuplug_n_elements,
    cuplug_tensor,
)
from cuplug._engine.interop.kinds cimport array_kind
from cuplug._engine.interop.reading cimport keep, kind_of
from cuplug._engine.interop.torch_writes cimport count_in_python, count_write

import numpy

from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.base.numpy_dtypes import numpy_dtype
from cuplug._source.compilers import kernel_types

cdef extern from "Python.h":
    int PyFloat_Pack2(double x, char *p, int le) except -1

cdef int kinds_of_codes[32]  # by DLPack's type codes; -1: no kind
for code in range(32):
    kinds_of_codes[code] = kernel_types.KINDS.get(code, -1)
for x in DTYPES.values():
    if x.kind == "storage" and x.n_packed == 1:
        kinds_of_codes[x.code] = UINT


cdef inline int kind_of_code(uint64_t code) noexcept:
    return code & 15


cdef inline int64_t size_of_code(uint64_t code) noexcept:
    return code >> 16 & 0xFFFFFF


cdef str place(launch_state *state, Py_ssize_t k):
    return f"{<object>state.name}: argument {k + 1}"


cdef int refuse(launch_state *state, Py_ssize_t k, uint64_t code, object obj) except -1:
    raise TypeError(f"{place(state, k)}: got {describe(obj)}, expected {describe_expected(code)}")


cdef str describe_expected(uint64_t code):
    if kind_of_code(code) == UNKNOWN:
        return (
            f"an array on a GPU or a NumPy scalar of {size_of_code(code) or 'its'} bytes: the "
            "parameter's type is not known; declare it with kernel.prepare"
        )
    wanted = kernel_types.describe(code)
    if kind_of_code(code) == POINTER:
        return f"{wanted}: an array on a GPU, a cuplug.In, Out or InOut, an address or None"
    if kind_of_code(code) == OPAQUE:
        return f"{wanted}: a NumPy scalar or array of that size, such as one of a structured dtype"
    return wanted


def describe(obj):
    """Describe an object in a message."""
    if isinstance(obj, numpy.void):
        return describe_struct(obj.dtype)
    if isinstance(obj, (bool, int, float, complex, numpy.generic)):
        return f"{type(obj).__name__} {obj}"
    dtype, shape = getattr(obj, "dtype", None), getattr(obj, "shape", None)
    if dtype is None or shape is None:
        return f"{type(obj).__name__} {obj!r}" if isinstance(obj, str) else type(obj).__name__
    where = "a NumPy array in host memory" if isinstance(obj, numpy.ndarray) else type(obj).__name__
    if getattr(dtype, "fields", None):
        return f"{where}, {describe_struct(dtype)}, shape {tuple(shape)}"
    return f"{where}, {dtype}, shape {tuple(shape)}"


def describe_struct(dtype):
    """Describe NumPy's layout of a structured dtype."""
    if not dtype.fields:
        return f"{dtype.itemsize} bytes"
    fields = [f"{name} at {dtype.fields[name][1]}" for name in dtype.names]
    aligned = "" if dtype.isalignedstruct else "; numpy.dtype(..., align=True) lays out as C does"
    return f"a structure of {dtype.itemsize} bytes ({', '.join(fields)}{aligned})"


cdef int convert(
    launch_state *state, Py_ssize_t k, uint64_t code, PyObject *obj, parameter_value *value,
    void **at
) except -1:
    cdef int kind = kind_of_code(code)
    at[0] = value
    if kind == POINTER:
        return convert_pointer(state, k, code, obj, value)
    if kind == OPAQUE:
        return convert_bytes(state, k, code, obj, at)
    if kind == UNKNOWN:
        if type(<object>obj) is int:
            return convert_int(state, k, size_of_code(code), <object>obj, value)
        is_number = isinstance(<object>obj, (numpy.generic, int, float))
        if size_of_code(code) in (0, 8) and not is_number:
            return convert_pointer(state, k, code, obj, value)
        return convert_bytes(state, k, code, obj, at)
    return convert_scalar(state, k, code, obj, value)


cdef int convert_int(
    launch_state *state, Py_ssize_t k, int64_t n_bytes, object obj, parameter_value *value
) except -1:
    """Read an int when only the parameter's size is known: an address, or a number of any sign."""
    bits = 8 * n_bytes  # Python integers, which may exceed 64 bits
    if n_bytes not in (1, 2, 4, 8):
        return refuse(state, k, UNKNOWN | <uint64_t>n_bytes << 16, obj)
    if not -(1 << (bits - 1)) <= obj < 1 << bits:
        raise ValueError(
            f"{place(state, k)}: got {obj}, expected an int that {n_bytes} bytes hold"
        )
    value.u = <uint64_t>(obj & 0xFFFFFFFFFFFFFFFF)
    return 0


cdef int convert_pointer(
    launch_state *state, Py_ssize_t k, uint64_t code, PyObject *obj, parameter_value *value
) except -1:
    cdef cuplug_argument a
    read_argument(obj, &state.r, &a)
    if a.kind == CUPLUG_ARGUMENT_ARRAY:
        return convert_array(state, k, code, <object>obj, &a, value)
    if a.kind == CUPLUG_ARGUMENT_NONE:
        value.p = NULL
        return 0
    if a.kind == CUPLUG_ARGUMENT_INT and a.scalar.i >= 0 or a.kind == CUPLUG_ARGUMENT_UINT:
        value.u = a.scalar.u
        return 0
    for name in ("gpudata", "ptr"):  # arrays of PyCUDA, memory of CuPy
        address = getattr(<object>obj, name, None)
        if address is not None:
            value.p = address_of(state, k, address)
            return 0
    if a.kind == CUPLUG_ARGUMENT_OTHER:
        seen = (<const char *>a.scalar.s).decode()
        raise TypeError(f"{place(state, k)}: got {seen}, expected {describe_expected(code)}")
    return refuse(state, k, code, <object>obj)


cdef int count_writes(launch_state *state, PyObject *const *args) except -1:
    cdef uint32_t i
    cdef PyObject *obj
    cdef const array_kind *kind
    for i in range(state.n_written):
        obj = args[state.written[i]]
        kind = kind_of(&state.r, obj)
        if kind != NULL and kind.is_torch and not count_write(obj, kind):
            count_in_python(<object>obj, kind, place(state, state.written[i]))
    return 0


cdef void *address_of(launch_state *state, Py_ssize_t k, object address) except? NULL:
    number = int(address)
    if not 0 <= number < 1 << 64:
        raise ValueError(f"{place(state, k)}: got the address {number}, expected 64 bits")
    return <void *><size_t>number


cdef int convert_array(
    launch_state *state, Py_ssize_t k, uint64_t code, object obj, cuplug_argument *a,
    parameter_value *value
) except -1:
    cdef cuplug_tensor *x = &a.tensor
    cdef size_t alignment = <size_t>1 << (code >> 9 & 15)
    if x.device.type != CUPLUG_CUDA and x.device.type != CUPLUG_CUDA_MANAGED:
        return refuse(state, k, code, obj)
    if kind_of_code(code) == POINTER:
        check_pointee(state, k, code, obj, x.dtype, cuplug_n_elements(x) * cuplug_element_bytes(x))
    if a.flags & CUPLUG_BYTE_SWAPPED:
        raise TypeError(f"{place(state, k)}: got a byte-swapped array, expected native byte order")
    if not is_contiguous(x) or a.flags & CUPLUG_UNALIGNED_STRIDES and cuplug_n_elements(x) > 1:
        raise ValueError(
            f"{place(state, k)}: got a strided array, expected a C-contiguous one: the kernel gets "
            "the address of its first element; pass that as an int if it knows the strides"
        )
    if (<size_t>x.data + x.byte_offset) & (alignment - 1) and cuplug_n_elements(x):
        raise ValueError(
            f"{place(state, k)}: got a misaligned array, expected an address that is a multiple of "
            f"{alignment}"
        )
    if a.flags & CUPLUG_READ_ONLY and not code >> 8 & 1:
        raise ValueError(
            f"{place(state, k)}: got a read-only array, expected a writeable one, or a kernel with "
            "a pointer to const"
        )
    if not code >> 8 & 1:  # parameters of unknown types may also be written
        state.written[state.n_written] = <uint8_t>k
        state.n_written += 1
    if state.device < 0:
        state.device = x.device.id
    elif state.device != x.device.id:
        raise ValueError(
            f"{place(state, k)}: got an array on cuda:{x.device.id}, expected one on "
            f"cuda:{state.device}, where those before it are"
        )
    value.p = <char *>x.data + x.byte_offset
    return 0


cdef bint is_contiguous(const cuplug_tensor *x) noexcept:
    cdef int64_t stride = 1
    cdef int d
    if x.strides == NULL:
        return True
    for d in range(x.ndim):
        if not x.shape[d]:
            return True
    for d in range(x.ndim - 1, -1, -1):
        if x.shape[d] != 1 and x.strides[d] != stride:
            return False
        stride *= x.shape[d]
    return True


cdef int check_pointee(
    launch_state *state, Py_ssize_t k, uint64_t code, object obj, cuplug_dtype dtype,
    int64_t n_bytes
) except -1:
    cdef int wanted = code >> 4 & 15
    cdef int64_t size = code >> 40
    cdef int kind = kinds_of_codes[dtype.code] if dtype.code < 32 else -1
    if dtype.bits < 8:  # a packed pair
        kind = UINT
    if wanted == VOID or wanted == OPAQUE and (not size or n_bytes % size == 0):
        return 0
    if wanted == POINTER and dtype.bits == 64 and (kind == INT or kind == UINT):
        return 0
    if wanted == kind and wanted != OPAQUE and size * 8 == dtype.bits * dtype.lanes:
        return 0
    return refuse(state, k, code, obj)


cdef int convert_bytes(
    launch_state *state, Py_ssize_t k, uint64_t code, PyObject *obj, void **at
) except -1:
    """Copy the bytes of an object of the same size: structured scalars, arrays, ctypes structures.
    """
    cdef Py_buffer buffer
    cdef object x = <object>obj
    if isinstance(x, (numpy.generic, numpy.ndarray, Array)):
        x = numpy.ascontiguousarray(x)  # strided arrays, and scalars whose types have no buffers
    if not PyObject_CheckBuffer(x) or isinstance(x, numpy.ndarray) and not is_plain(x.dtype):
        return refuse(state, k, code, <object>obj)
    if isinstance(x, numpy.ndarray):
        x = x.reshape(-1).view(numpy.uint8)
    PyObject_GetBuffer(x, &buffer, PyBUF_SIMPLE)
    cdef bint fits = buffer.len == size_of_code(code) or not size_of_code(code)
    # A copy, since another thread may resize the object.
    held = PyBytes_FromStringAndSize(<const char *>buffer.buf, buffer.len if fits else 0)
    PyBuffer_Release(&buffer)
    if not fits:
        return refuse(state, k, code, <object>obj)
    at[0] = <char *>held
    return keep(&state.r, held)


cdef bint is_plain(dtype):
    return dtype.isnative and not dtype.hasobject


cdef int convert_scalar(
    launch_state *state, Py_ssize_t k, uint64_t code, PyObject *obj, parameter_value *value
) except -1:
    cdef cuplug_argument a
    cdef int kind = kind_of_code(code)
    if PyFloat_CheckExact(<object>obj) and kind == FLOAT:
        return set_float(state, k, code, <object>obj, PyFloat_AS_DOUBLE(<object>obj), value)
    scalar = <object>obj
    if not read_exact_scalar(obj, &state.r, &a):
        if isinstance(scalar, numpy.ndarray) and not scalar.ndim:
            scalar = scalar[()]
        read_argument(<PyObject *>scalar, &state.r, &a)
    if kind == BOOL and a.kind == CUPLUG_ARGUMENT_BOOL:
        value.u = a.scalar.i != 0
        return 0
    if kind == BOOL or a.kind == CUPLUG_ARGUMENT_BOOL:
        return refuse(state, k, code, scalar)
    if kind == INT or kind == UINT:
        return set_integer(state, k, code, scalar, &a, value)
    if a.kind == CUPLUG_ARGUMENT_FLOAT:
        return set_float(state, k, code, scalar, a.scalar.f, value)
    if a.kind in (CUPLUG_ARGUMENT_INT, CUPLUG_ARGUMENT_UINT, CUPLUG_ARGUMENT_HUGE_INT):
        return set_float(state, k, code, scalar, as_float(state, k, code, scalar), value)
    return refuse(state, k, code, scalar)


cdef double as_float(launch_state *state, Py_ssize_t k, uint64_t code, object x) except? -1:
    try:
        return float(int(x))
    except OverflowError:
        return INFINITY if raise_range(state, k, code, x) else 0


cdef int raise_range(launch_state *state, Py_ssize_t k, uint64_t code, object x) except -1:
    size = size_of_code(code)
    wanted = kernel_types.describe(code)
    if kind_of_code(code) == INT:
        wanted += f": {-(1 << 8 * size - 1)} to {(1 << 8 * size - 1) - 1}"
    if kind_of_code(code) == UINT:
        wanted += f": 0 to {(1 << 8 * size) - 1}"
    raise ValueError(f"{place(state, k)}: got {x}, which is out of range, expected {wanted}")


cdef int set_integer(
    launch_state *state, Py_ssize_t k, uint64_t code, object x, cuplug_argument *a,
    parameter_value *value
) except -1:
    cdef int64_t size = size_of_code(code)
    cdef bint fits = False
    cdef int64_t i = a.scalar.i
    if a.kind not in (CUPLUG_ARGUMENT_INT, CUPLUG_ARGUMENT_UINT, CUPLUG_ARGUMENT_HUGE_INT):
        return refuse(state, k, code, x)
    if kind_of_code(code) == INT and a.kind == CUPLUG_ARGUMENT_INT:
        fits = size == 8 or -(<int64_t>1 << (8 * size - 1)) <= i < <int64_t>1 << (8 * size - 1)
    elif kind_of_code(code) == UINT and a.kind == CUPLUG_ARGUMENT_INT:
        fits = i >= 0 and (size == 8 or i >> (8 * size) == 0)
    elif a.kind == CUPLUG_ARGUMENT_UINT:
        fits = kind_of_code(code) == UINT and size == 8
    if not fits:
        return raise_range(state, k, code, x)
    value.u = a.scalar.u  # little-endian: the low bytes are the narrower type's value
    return 0


cdef int set_float(
    launch_state *state, Py_ssize_t k, uint64_t code, object x, double number,
    parameter_value *value
) except -1:
    cdef int kind = kind_of_code(code)
    if kind == FLOAT and size_of_code(code) == 8:
        value.d = number
        return 0
    if kind == FLOAT and size_of_code(code) == 4:
        value.f = <float>number
        if isfinite(number) and not isfinite(value.f):
            return raise_range(state, k, code, x)
        return 0
    if kind == FLOAT:
        try:
            return PyFloat_Pack2(number, value.bytes, 1)
        except OverflowError:
            return raise_range(state, k, code, x)
    return set_narrow_float(state, k, code, x, number, value)


cdef int set_narrow_float(
    launch_state *state, Py_ssize_t k, uint64_t code, object x, double number,
    parameter_value *value
) except -1:
    kind = kind_of_code(code)
    (name,) = [x.name for x in DTYPES.values() if kernel_types.KINDS.get(x.code) == kind]
    narrow = numpy_dtype(name).type(number)
    if isfinite(number) and not isfinite(float(narrow)):
        return raise_range(state, k, code, x)
    encoded = numpy.array(narrow).tobytes()
    memcpy(value.bytes, <const char *>encoded, len(encoded))
    return 0
