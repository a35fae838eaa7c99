# SPDX-License-Identifier: Apache-2.0
from cuplug._engine.base.core cimport cuplug_operator
from cuplug._engine.base.core_call cimport (
    cuplug_bound_call,
    cuplug_call_otherwise,
    cuplug_frame,
)


# The call of a slot, which is searched when the slot is empty. `name` is "plugin.operator", or
# "plugin." and the signature that the call was compiled for, which the plugin must have. Never
# freed: another thread may be reading it.
cdef const cuplug_bound_call *bound_of(
    cuplug_operator **slot, const char *name, cuplug_call_otherwise *otherwise
) except NULL nogil

# Raises an error unless the overload that has matched takes the same arguments as the call's.
cdef int check_other_row(const cuplug_bound_call *bound, const cuplug_frame *frame) except -1 nogil
