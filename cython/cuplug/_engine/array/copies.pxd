# SPDX-License-Identifier: Apache-2.0
from cuplug._engine.array.buffer cimport Buffer
from cuplug._engine.base.core cimport cuplug_tensor


# True if elements are adjacent in memory, in any order of its dimensions.
cdef bint has_no_gaps(const cuplug_tensor *x) noexcept
# The elements of such an array in a NumPy array, new or `out`, after the work on `stream`.
cdef object to_numpy(Buffer x, object out, object stream)
# Copies a NumPy array of the same shape and dtype into a C-contiguous one, after that work.
cdef int take_numpy(Buffer x, object values, object stream) except -1
# A NumPy array that shares the memory of one on the host.
cdef object as_numpy_view(Buffer x)
# The result of NumPy for numbers or for an array of the host, for a named argument.
cdef object host_values(str name, object x, object descr)
# Copies a small array of the host, of the same shape and dtype, at once if one is contiguous.
# False: nothing was done.
cdef bint copy_small(const cuplug_tensor *to, const cuplug_tensor *source) noexcept
# True if an array is small, on the host, and not of structures.
cdef bint runs_with_gil(const cuplug_tensor *x) noexcept
