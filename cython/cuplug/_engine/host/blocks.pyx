# SPDX-License-Identifier: Apache-2.0
"""New NumPy arrays; large ones are in host memory of the core, whose pages are reused."""

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.string cimport memset, strcpy

from cuplug._engine.base.numpy_dtypes cimport OPAQUE, descr_of_dtype, type_number
from cuplug._engine.base.core cimport (
    cuplug_allocate_host,
    cuplug_free_host,
    cuplug_reallocate_host,
    cuplug_tensor,
)
from cuplug._engine.base.numpy_api cimport *

import numpy

_import_array()

# NumPy's structures for allocators, with which arrays free memory as they allocated it (NEP 49).
cdef PyDataMem_Handler memory_handler
strcpy(memory_handler.name, b"cuplug")
memory_handler.version = 1
memory_handler.allocator.malloc = allocate
memory_handler.allocator.calloc = allocate_cleared
memory_handler.allocator.realloc = reallocate
memory_handler.allocator.free = free
cdef object memory_capsule = PyCapsule_New(&memory_handler, "mem_handler", NULL)
cdef PyDataMem_Handler *default_handler = <PyDataMem_Handler *>PyCapsule_GetPointer(
    <object>PyDataMem_DefaultHandler, "mem_handler"
)


cdef const PyDataMemAllocator *allocator_for(bint large) noexcept:
    return &memory_handler.allocator if large else &default_handler.allocator


cdef void *allocate(void *context, size_t n_bytes) noexcept nogil:
    return cuplug_allocate_host(n_bytes)


cdef void *allocate_cleared(void *context, size_t n, size_t item_bytes) noexcept nogil:
    cdef void *memory = NULL
    if not item_bytes or n <= <size_t>-1 // item_bytes:
        memory = cuplug_allocate_host(n * item_bytes)
    if memory != NULL:
        memset(memory, 0, n * item_bytes)
    return memory


cdef void *reallocate(void *context, void *memory, size_t n_bytes) noexcept nogil:
    return cuplug_reallocate_host(memory, n_bytes)


cdef void free(void *context, void *memory, size_t n_bytes) noexcept nogil:
    cuplug_free_host(memory)


cdef object empty_array(const cuplug_tensor *x, bint large):
    if x.dtype.code == OPAQUE or x.dtype.lanes > 1:
        return numpy.empty([x.shape[k] for k in range(x.ndim)], descr_of_dtype(x.dtype))
    cdef int number = type_number(x.dtype)
    if not large:
        return PyArray_EMPTY(x.ndim, <npy_intp *>x.shape, number, 0)
    previous = PyDataMem_SetHandler(memory_capsule)
    try:
        return PyArray_EMPTY(x.ndim, <npy_intp *>x.shape, number, 0)
    finally:
        PyDataMem_SetHandler(previous)
