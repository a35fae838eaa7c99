# SPDX-License-Identifier: Apache-2.0
"""NumPy arrays between guard zones, where writes outside of an array are detected and harmless."""

from cpython.pycapsule cimport PyCapsule_New
from libc.stdlib cimport free as free_memory, malloc
from libc.string cimport memcpy, memset, strcpy

from cuplug._engine.base.numpy_api cimport *

_import_array()

cdef enum:
    ZONE_BYTES = 4096  # on either side; preserves the alignment of malloc
    FILL = 0xA5

# The size of each live block without the zones, by its address.
cdef dict sizes = {}

# NumPy's structures for allocators, with which arrays free memory as they allocated it (NEP 49).
cdef PyDataMem_Handler memory_handler
strcpy(memory_handler.name, b"cuplug_zones")
memory_handler.version = 1
memory_handler.allocator.malloc = allocate
memory_handler.allocator.calloc = allocate_cleared
memory_handler.allocator.realloc = reallocate
memory_handler.allocator.free = free
cdef object memory_capsule = PyCapsule_New(&memory_handler, "mem_handler", NULL)


cdef void *allocate(void *context, size_t n_bytes) noexcept nogil:
    cdef char *room = NULL
    if n_bytes <= <size_t>-1 - 2 * ZONE_BYTES:
        room = <char *>malloc(n_bytes + 2 * ZONE_BYTES)
    if room == NULL:
        return NULL
    memset(room, FILL, ZONE_BYTES)
    memset(room + ZONE_BYTES + n_bytes, FILL, ZONE_BYTES)
    with gil:
        sizes[<size_t>room + ZONE_BYTES] = n_bytes
    return room + ZONE_BYTES


cdef void *allocate_cleared(void *context, size_t n, size_t item_bytes) noexcept nogil:
    cdef void *memory = NULL
    if not item_bytes or n <= <size_t>-1 // item_bytes:
        memory = allocate(context, n * item_bytes)
    if memory != NULL:
        memset(memory, 0, n * item_bytes)
    return memory


cdef void *reallocate(void *context, void *memory, size_t n_bytes) noexcept nogil:
    cdef void *moved = allocate(context, n_bytes)
    cdef size_t kept = n_bytes
    if moved != NULL and memory != NULL:
        with gil:
            kept = min(n_bytes, <size_t>sizes[<size_t>memory])
        memcpy(moved, memory, kept)
        free(context, memory, kept)
    return moved


cdef void free(void *context, void *memory, size_t n_bytes) noexcept nogil:
    if memory == NULL:
        return
    with gil:
        sizes.pop(<size_t>memory, None)
    free_memory(<char *>memory - ZONE_BYTES)


cdef bint is_whole(const unsigned char *zone) noexcept nogil:
    cdef int k
    for k in range(ZONE_BYTES):
        if zone[k] != FILL:
            return False
    return True


class zones:
    """Put the NumPy arrays that this thread makes inside of a `with` block between guard zones.

    Outputs of operators of 16 MiB or more are excluded.
    """

    def __enter__(self):
        self.previous = PyDataMem_SetHandler(memory_capsule)
        return self

    def __exit__(self, *exception):
        PyDataMem_SetHandler(self.previous)


def damage(x: np.ndarray[Any, Any]) -> str:
    """Return where an array's memory was overrun: "before", "after", or "" for neither."""
    cdef size_t address = x.ctypes.data
    if address not in sizes:
        return ""
    if not is_whole(<const unsigned char *>(address - ZONE_BYTES)):
        return "before"
    return "" if is_whole(<const unsigned char *>(address + <size_t>sizes[address])) else "after"
