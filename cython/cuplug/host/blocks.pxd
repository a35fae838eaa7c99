# SPDX-License-Identifier: Apache-2.0
from cuplug.base.core cimport cuplug_element_bytes, cuplug_n_elements, cuplug_tensor

cdef enum:
    LARGE_BYTES = 16 << 20  # the C library keeps the memory of smaller ones by itself

# A new C-ordered NumPy array of a tensor's shape and dtype, not cleared.
cdef object empty_array(const cuplug_tensor *x, bint large)


cdef inline bint is_large(const cuplug_tensor *x) noexcept:
    return cuplug_n_elements(x) * cuplug_element_bytes(x) >= LARGE_BYTES
