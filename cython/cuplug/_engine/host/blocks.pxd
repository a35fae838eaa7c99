# SPDX-License-Identifier: Apache-2.0
from cuplug._engine.base.core cimport cuplug_element_bytes, cuplug_n_elements, cuplug_tensor
from cuplug._engine.base.numpy_api cimport PyDataMemAllocator

cdef enum:
    LARGE_BYTES = 32 << 10  # the C library itself caches the memory of smaller ones

# A new C-ordered NumPy array of a tensor's shape and dtype, not cleared.
cdef object empty_array(const cuplug_tensor *x, bint large)
# The allocator of small NumPy arrays, or the allocator of large ones.
cdef const PyDataMemAllocator *allocator_for(bint large) noexcept


cdef inline bint is_large(const cuplug_tensor *x) noexcept:
    return cuplug_n_elements(x) * cuplug_element_bytes(x) >= LARGE_BYTES
