# SPDX-License-Identifier: Apache-2.0
# What the typed-memoryview functions, which cuplug bind writes, share. No Python object is touched.
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from cuplug._engine.base.dlpack cimport DLPACK_COMPLEX
from cuplug._engine.base.core cimport (
    CUPLUG_ARGUMENT_ARRAY,
    CUPLUG_ARGUMENT_BOOL,
    CUPLUG_ARGUMENT_COMPLEX,
    CUPLUG_ARGUMENT_FLOAT,
    CUPLUG_ARGUMENT_HANDLE,
    CUPLUG_ARGUMENT_INT,
    CUPLUG_ARGUMENT_NONE,
    CUPLUG_ARGUMENT_STRING,
    CUPLUG_ARGUMENT_UINT,
    CUPLUG_CPU,
    CUPLUG_MISALIGNED,
    CUPLUG_NEW_HANDLE,
    CUPLUG_READ_ONLY,
    cuplug_argument,
    cuplug_error,
    cuplug_free_handle,
    cuplug_handle,
    cuplug_operator,
)


cdef extern from "cuplug/plugin.h":
    enum:
        CUPLUG_INT8
        CUPLUG_INT16
        CUPLUG_INT32
        CUPLUG_INT64
        CUPLUG_UINT8
        CUPLUG_UINT16
        CUPLUG_UINT32
        CUPLUG_UINT64
        CUPLUG_FLOAT32
        CUPLUG_FLOAT64
        CUPLUG_COMPLEX64
        CUPLUG_COMPLEX128


cdef extern from *:
    """
    /* A new one for each place where it is written. */
    #define CUPLUG_NEW_SLOT (__extension__({ static cuplug_operator *slot; &slot; }))
    """
    cuplug_operator **NEW_SLOT "CUPLUG_NEW_SLOT"


# Runs an operator, found at the first call and kept in *slot. `name` is "plugin.operator", or
# "plugin." and the text of the signature, which the operator must have. The arguments are
# n_parameters parameters, then n_outputs outputs.
cdef int call(
    cuplug_operator **slot, const char *name, const cuplug_argument *arguments,
    uint32_t n_parameters, uint32_t n_outputs,
) except -1 nogil


# A C-contiguous host array; None is passed on as None.
cdef inline void set_array(
    cuplug_argument *argument, bint is_none, const void *data, const Py_ssize_t *shape, int ndim,
    uint32_t dtype,
) noexcept nogil:
    cdef size_t bits = dtype >> 16 & 0xff
    cdef size_t alignment = bits >> (4 if dtype >> 24 == DLPACK_COMPLEX else 3)
    argument.kind = CUPLUG_ARGUMENT_NONE if is_none else CUPLUG_ARGUMENT_ARRAY
    argument.flags = CUPLUG_MISALIGNED if <size_t>data & (alignment - 1) else 0
    argument.tensor.data = <void *>data
    argument.tensor.device.type = CUPLUG_CPU
    argument.tensor.device.id = 0
    argument.tensor.ndim = ndim
    argument.tensor.dtype.code = dtype >> 24
    argument.tensor.dtype.bits = bits
    argument.tensor.dtype.lanes = 1
    argument.tensor.shape = <int64_t *>shape
    argument.tensor.strides = NULL
    argument.tensor.byte_offset = 0


# The same for a const view: operators that write to it are refused.
cdef inline void set_const_array(
    cuplug_argument *argument, bint is_none, const void *data, const Py_ssize_t *shape, int ndim,
    uint32_t dtype,
) noexcept nogil:
    set_array(argument, is_none, data, shape, ndim, dtype)
    argument.flags |= CUPLUG_READ_ONLY


cdef inline void set_bool(cuplug_argument *argument, bint value) noexcept nogil:
    argument.kind = CUPLUG_ARGUMENT_BOOL
    argument.flags = 0
    argument.scalar.i = value


cdef inline void set_int(cuplug_argument *argument, int64_t value) noexcept nogil:
    argument.kind = CUPLUG_ARGUMENT_INT
    argument.flags = 0
    argument.scalar.i = value


cdef inline void set_uint(cuplug_argument *argument, uint64_t value) noexcept nogil:
    argument.kind = CUPLUG_ARGUMENT_UINT if value >> 63 else CUPLUG_ARGUMENT_INT
    argument.flags = 0
    argument.scalar.u = value


cdef inline void set_float(cuplug_argument *argument, double value) noexcept nogil:
    argument.kind = CUPLUG_ARGUMENT_FLOAT
    argument.flags = 0
    argument.scalar.f = value


cdef inline void set_complex(cuplug_argument *argument, double complex value) noexcept nogil:
    argument.kind = CUPLUG_ARGUMENT_COMPLEX
    argument.flags = 0
    argument.scalar.c[0] = value.real
    argument.scalar.c[1] = value.imag


cdef inline void set_string(cuplug_argument *argument, const char *value) noexcept nogil:
    argument.kind = CUPLUG_ARGUMENT_NONE if value == NULL else CUPLUG_ARGUMENT_STRING
    argument.flags = 0
    argument.scalar.s = value


# A handle that a typed function has made, in a parameter of another.
cdef inline void set_handle(cuplug_argument *argument, cuplug_handle *handle) noexcept nogil:
    argument.kind = CUPLUG_ARGUMENT_NONE if handle == NULL else CUPLUG_ARGUMENT_HANDLE
    argument.flags = 0
    argument.scalar.handle = handle


cdef inline void set_new_handle(cuplug_argument *argument, cuplug_handle **place) noexcept nogil:
    argument.kind = CUPLUG_ARGUMENT_HANDLE
    argument.flags = CUPLUG_NEW_HANDLE
    argument.scalar.handle = place


# Closes and frees a handle that a typed function has made.
cdef int close_handle(cuplug_handle *handle) except -1 nogil
