# SPDX-License-Identifier: Apache-2.0
from cuplug._engine.base.core cimport cuplug_error, cuplug_operator
from cuplug._engine.call.operator cimport Operator

# Finds an operator, "operator" or "plugin.operator", also in directories that installed packages
# name. Returns a status. *op is NULL before.
cdef int look_up(const char *name, cuplug_operator **op, cuplug_error *error) except -1 nogil

# The same Operator each time, unless it was reloaded.
cdef Operator operator_of(cuplug_operator *op)
