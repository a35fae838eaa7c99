# SPDX-License-Identifier: Apache-2.0
from cuplug._host cimport cuplug_tensor


# A new C-ordered NumPy array of a tensor's shape and dtype, not cleared.
cdef object empty_array(const cuplug_tensor *x)
