# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from cuplug._engine.base.core cimport cuplug_dtype
from cuplug._engine.interop.reading cimport reading


# A kernel's parameter, by the numbers of kernel_types.py.
cdef enum:
    OPAQUE
    BOOL
    INT
    UINT
    FLOAT
    BFLOAT
    POINTER
    VOID
    FLOAT8_E4M3
    FLOAT8_E5M2
    UNKNOWN = 15  # number of parameters with unknown types

ctypedef union parameter_value:
    void *p
    double d
    float f
    int64_t i
    uint64_t u
    char bytes[8]

# The parameters of one launch in preparation.
ctypedef struct launch_state:
    PyObject *name  # borrowed from the kernel, as its UTF-8 is
    const char *name_text
    int32_t device  # device of the arrays; -1: none yet
    uint32_t n_written
    uint8_t written[256]  # numbers of the parameters whose arrays the kernel may write
    reading r


# Reads the value of parameter k, from 0. Its bytes are at at[0], in `value` or in memory that `r`
# retains.
cdef int convert(
    launch_state *state, Py_ssize_t k, uint64_t code, PyObject *obj, parameter_value *value,
    void **at
) except -1
# Raises unless a pointer may point to elements of a dtype with n_bytes in total.
cdef int check_pointee(
    launch_state *state, Py_ssize_t k, uint64_t code, object obj, cuplug_dtype dtype,
    int64_t n_bytes
) except -1
# Counts a kernel's writes to PyTorch tensors.
cdef int count_writes(launch_state *state, PyObject *const *args) except -1
# Returns the beginning of a message: "scale: argument 2".
cdef str place(launch_state *state, Py_ssize_t k)
cdef int refuse(launch_state *state, Py_ssize_t k, uint64_t code, object obj) except -1
