# SPDX-License-Identifier: Apache-2.0
from cuplug._engine.base.core cimport cuplug_error


# Raises the exception for a filled error record: if the record is from `raise_later`, the exception
# that a callback has raised on this thread. Takes the GIL. Always returns -1.
cdef int raise_error(const cuplug_error *error) except -1 with gil
# Stores an exception that a callback of the core has raised for raise_error, on the same thread.
# Fills the record with its text, for callers other than Python, and returns its status.
cdef int raise_later(object exception, cuplug_error *error) noexcept
# Raises the exception that `raise_later` has stored on this thread. Always returns -1.
cdef int raise_pending() except -1
# True if `raise_later` has stored an exception on this thread; for callers other than Python, which
# drop it.
cdef bint has_raised() noexcept nogil
cdef void drop_raised() noexcept with gil
