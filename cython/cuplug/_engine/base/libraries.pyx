# SPDX-License-Identifier: Apache-2.0
"""Loaded libraries that are not plugins: adopted ones, and compiled code."""

import os

from libc.stdint cimport uintptr_t
from libc.string cimport strncmp, strlen, strrchr

from cuplug._engine.base.core cimport cuplug_error
from cuplug._engine.base.core_call cimport cuplug_open_library


cdef extern from "<link.h>" nogil:
    struct dl_phdr_info:
        const char *dlpi_name
    int dl_iterate_phdr(int (*)(dl_phdr_info *, size_t, void *) noexcept, void *)


cdef struct search:
    const char *start
    const char *path  # libraries are never unloaded


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


def find_loaded(start: str) -> str:
    """Return the path of the first loaded library whose file name begins so; "" if there is none.

    Loads nothing.
    """
    cdef bytes text = start.encode()
    cdef search found = search(start=text, path=b"")
    dl_iterate_phdr(compare_name, &found)
    return os.fsdecode(<bytes>found.path)


cdef int compare_name(dl_phdr_info *info, size_t n_bytes, void *data) noexcept nogil:
    cdef search *wanted = <search *>data
    cdef const char *slash = strrchr(info.dlpi_name, b"/")
    if slash == NULL or strncmp(slash + 1, wanted.start, strlen(wanted.start)):
        return 0
    wanted.path = info.dlpi_name
    return 1
