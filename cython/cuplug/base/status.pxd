# SPDX-License-Identifier: Apache-2.0
from cuplug.base.core cimport cuplug_error


# Raises the exception for a filled error record: that which a callback has raised on this thread,
# if one has. Takes the GIL. Always returns -1.
cdef int raise_error(const cuplug_error *error) except -1 with gil
# Keeps an exception that a callback of the core has raised for raise_error, on the same thread;
# fills the record and returns its status.
cdef int raise_later(object exception, cuplug_error *error) noexcept
