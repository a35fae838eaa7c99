# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int32_t


cdef class Stream:
    cdef void *stream
    cdef bint is_own  # to be freed
    cdef object owner  # of another library's
    cdef readonly int32_t device
    cdef object __weakref__


cdef class Event:
    cdef void *event
    cdef bint has_time
    cdef bint is_recorded
    cdef readonly int32_t device
    cdef object __weakref__
