# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint32_t

from cuplug._engine.base.core cimport cuplug_operator
from cuplug._engine.base.core_call cimport cuplug_frame


# The operator that one compiled call uses, and the row that it was compiled for, or
# CUPLUG_ANY_ROW. Never freed:
# another thread may be reading it.
cdef struct bound_call:
    cuplug_operator *op
    uint32_t row


# The call of a slot, which is looked up when the slot is empty. `name` is "plugin.operator", or
# "plugin." and the signature that the call was compiled for, which the plugin must have.
cdef const bound_call *bound_of(cuplug_operator **slot, const char *name) except NULL nogil

# Raises an error unless another row that has matched takes the same arguments as the call's own.
cdef int check_other_row(const bound_call *bound, const cuplug_frame *frame) except -1 nogil
