# SPDX-License-Identifier: Apache-2.0
from cpython.pythread cimport PyThread_type_lock


cdef class ThreadLock:
    cdef PyThread_type_lock lock


cdef void watch(int depth) noexcept nogil  # +1 before a call of a library, -1 after it
cdef bint has_pending() noexcept nogil  # whether a callback has raised since then
