# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t

from cuplug.base.core cimport cuplug_argument
from cuplug.arrays.kinds cimport array_kind


cdef enum:
    MAX_ARGUMENTS = 64
    MAX_STREAMS = 8
    N_STORED = 5120

# The arguments of one call while they are read: on the C stack, prepared by start_reading.
ctypedef struct reading:
    const array_kind *first_kind  # of the first array: outputs are made like it; NULL: no array
    PyObject *first  # borrowed
    const array_kind *device_kind  # of the first array on a GPU: gives the stream
    int n_scalar_arrays  # NumPy arrays without dimensions
    PyObject *kept  # owned: what must live until the call is over; NULL or a list
    uint32_t n_streams
    void *streams[MAX_STREAMS]  # to order the call with: of other libraries than the first
    void *given_stream  # by the caller, to run on; NULL: the first library's current one
    uint32_t n_stored
    PyObject *objects[MAX_ARGUMENTS]  # borrowed
    cuplug_argument args[MAX_ARGUMENTS]
    int64_t stored[N_STORED]  # shapes and strides in elements


cdef inline void start_reading(reading *r) noexcept:
    r.first_kind = NULL
    r.first = NULL
    r.device_kind = NULL
    r.n_scalar_arrays = 0
    r.kept = NULL
    r.n_streams = 0
    r.given_stream = NULL
    r.n_stored = 0


# An argument that is none of ours; `text` says in an error message what it is.
cdef int set_other(reading *r, cuplug_argument *a, object text) except -1
# One whose own code raised an exception when it was read.
cdef int set_unreadable(object obj, reading *r, cuplug_argument *a, object error) except -1
cdef int64_t *store(reading *r, Py_ssize_t n) except NULL
cdef int divide_strides(
    reading *r, cuplug_argument *a, const Py_ssize_t *strides, Py_ssize_t item_bytes
) except -1
cdef int keep(reading *r, object obj) except -1
# The kind of an array's type, to be used until the call is over; NULL for a type that is none.
cdef const array_kind *kind_of(reading *r, PyObject *obj) except? NULL
# Remembers a stream that the call is to be ordered with.
cdef int add_stream(reading *r, void *stream) except -1
