# SPDX-License-Identifier: Apache-2.0
"""Machine code in the driver."""

cimport cython
from libc.stdint cimport int32_t, uint64_t

from cuplug.base.core cimport cuplug_error
from cuplug.base.core_jit cimport cuplug_find_global, cuplug_image, cuplug_load_image
from cuplug.cuda.placement cimport note_use
from cuplug.base.status cimport raise_error


@cython.final
cdef class Image:
    """Machine code, loaded into the driver when it is first needed, and kept for ever."""

    def __init__(self, code, name):
        self.code = code
        self.name = name.encode()

    cdef cuplug_image *load(self) except NULL:
        with self.lock:
            if self.image == NULL:
                load_image(self.code, self.name, &self.image)
        return self.image

    def find_global(self, symbol, name, int32_t device):
        """Return the address and the bytes of a variable on a GPU."""
        cdef cuplug_error error
        cdef void *pointer = NULL
        cdef uint64_t n_bytes = 0
        cdef bytes symbol_bytes = symbol.encode(), name_bytes = name.encode()
        cdef const char *symbol_text = symbol_bytes
        cdef const char *name_text = name_bytes
        cdef cuplug_image *image = self.load()
        cdef int status
        with nogil:
            status = cuplug_find_global(
                image, symbol_text, name_text, device, &pointer, &n_bytes, &error
            )
        if status:
            raise_error(&error)
        note_use(device)
        return <size_t>pointer, n_bytes


cdef int load_image(bytes code, bytes name, cuplug_image **image) except -1:
    cdef cuplug_error error
    cdef const char *start = code
    cdef const char *text = name
    cdef uint64_t n_bytes = len(code)
    cdef int status
    with nogil:
        status = cuplug_load_image(start, n_bytes, text, image, &error)
    return raise_error(&error) if status else 0
