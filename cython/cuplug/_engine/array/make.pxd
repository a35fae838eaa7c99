# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from cuplug._engine.array.array cimport Array
from cuplug._engine.base.core cimport cuplug_device, cuplug_tensor


# The sizes that a caller requests, none negative.
cdef tuple parse_shape(str function, object shape)
# A device that a caller names, or the default device of new arrays.
cdef cuplug_device place_for(str function, object device) except *
# A copy of a NumPy array, or on the host the array itself unless `is_copied`.
cdef Array from_numpy(object host, cuplug_device place, bint is_copied)
# Sets the shape, in `sizes`, and the dtype of a tensor without strides and memory. Returns NumPy's
# dtype.
cdef object describe(
    str function, object shape, object dtype, int64_t *sizes, cuplug_tensor *x
)
# As `empty`; errors name the function.
cdef Array new_array(str function, object shape, object dtype, object device)
# Sets the fields of a NumPy dtype, if the elements are structures.
cdef Array of_structures(Array x, object descr)
