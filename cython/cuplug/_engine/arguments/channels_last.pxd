# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint32_t

from cuplug._engine.base.core cimport cuplug_operator, cuplug_tensor
from cuplug._engine.interop.reading cimport reading


# Whether a tensor is in PyTorch's memory format channels_last or channels_last_3d, and not in C
# order.
cdef bint is_channels_last(const cuplug_tensor *x) noexcept nogil
# Whether an operator treats all elements of its arrays alike, in any order.
cdef bint is_element_wise(const cuplug_operator *op) noexcept
# If all arrays of a call of such an operator have that layout, makes them one-dimensional, so that
# nothing is copied, and remembers the layout for the outputs.
cdef int flatten(reading *r, const cuplug_operator *op, uint32_t n) except -1
# Gives the arrays their dimensions back. Always returns True.
cdef bint restore(reading *r, uint32_t n) noexcept
