# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t, uintptr_t

from cuplug.base.core cimport cuplug_tensor


# The strides of C order, in elements.
cdef void contiguous_strides(int ndim, const int64_t *shape, int64_t *strides) noexcept
# The addresses from the first byte of an array to behind its last one; equal ones for an empty one.
cdef void find_span(const cuplug_tensor *x, uintptr_t *low, uintptr_t *high) noexcept
# Whether elements share memory, as those of arrays that are broadcast do.
cdef bint repeats_elements(const cuplug_tensor *x) noexcept
# What a key of integers, slices, None and ... selects: fills shape and strides, which have room for
# 64 numbers each, and points `to` to them. False for a key of something else.
cdef bint select(
    object key, const cuplug_tensor *x, int64_t *shape, int64_t *strides, cuplug_tensor *to
) except -1
