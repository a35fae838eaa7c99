# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from cuplug._engine.base.core cimport cuplug_dtype
from cuplug._engine.interop.reading cimport reading


# What a kernel's parameter is: the numbers of kernel_types.py.
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
    UNKNOWN = 15  # of a kernel whose types nobody told

ctypedef union parameter_value:
    void *p
    double d
    float f
    int64_t i
    uint64_t u
    char bytes[8]

# The parameters of one launch while they are made.
ctypedef struct launch_state:
    PyObject *name  # of the kernel, borrowed, like its UTF-8
    const char *name_text
    int32_t device  # of the arrays; -1: none so far
    uint32_t n_written
    uint8_t written[256]  # numbers of the parameters that have arrays the kernel may write
    reading r


# The value of parameter k, from 0: its bytes are at[0], in `value` or in what `r` keeps.
cdef int convert(
    launch_state *state, Py_ssize_t k, uint64_t code, PyObject *obj, parameter_value *value,
    void **at
) except -1
# Raises unless elements of a dtype, of n_bytes in all, may be behind a pointer.
cdef int check_pointee(
    launch_state *state, Py_ssize_t k, uint64_t code, object obj, cuplug_dtype dtype,
    int64_t n_bytes
) except -1
# Counts the writes of a kernel to tensors of PyTorch.
cdef int count_writes(launch_state *state, PyObject *const *args) except -1
# The beginning of a message: "scale: argument 2".
cdef str place(launch_state *state, Py_ssize_t k)
cdef int refuse(launch_state *state, Py_ssize_t k, uint64_t code, object obj) except -1
