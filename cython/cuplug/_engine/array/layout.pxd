# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from cuplug._engine.base.core cimport cuplug_tensor


# The strides of C order, in elements.
cdef void contiguous_strides(int ndim, const int64_t *shape, int64_t *strides) noexcept
cdef bint same_shape(const cuplug_tensor *x, const cuplug_tensor *y) noexcept
# True if the spans of two arrays overlap, each from its first byte to its last one.
cdef bint may_overlap(const cuplug_tensor *x, const cuplug_tensor *y) noexcept
# True if elements share memory, as in arrays that are broadcast.
cdef bint repeats_elements(const cuplug_tensor *x) noexcept
# The selection of a key of integers, slices, None and ...: fills shape and strides, which have room
# for 64 numbers each, and points `to` to them. False for other keys.
cdef bint select(
    object key, const cuplug_tensor *x, int64_t *shape, int64_t *strides, cuplug_tensor *to
) except -1
