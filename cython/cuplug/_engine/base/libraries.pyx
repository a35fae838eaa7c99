# SPDX-License-Identifier: Apache-2.0
"""Loaded libraries that are not plugins: adopted ones, and compiled code."""

import os

from libc.stdint cimport uintptr_t

from cuplug._engine.base.core cimport cuplug_error
from cuplug._engine.base.core_call cimport cuplug_open_library


def open_library(path: str) -> int:
    """Load a library; return its handle, like the handle of ctypes.CDLL.

    The thread's rounding mode is restored after the library's constructors.
    """
    cdef cuplug_error error
    encoded = os.fsencode(path)
    cdef const char *text = encoded
    cdef void *handle
    with nogil:  # constructors run
        handle = cuplug_open_library(text, &error)
    if not handle:
        raise OSError(error.message.decode(errors="replace"))
    return <uintptr_t>handle
