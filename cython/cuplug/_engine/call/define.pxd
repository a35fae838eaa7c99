# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint32_t

from cuplug._engine.base.runtime cimport cuplug_definition_overload
from cuplug._engine.call.operator cimport Operator

# A new operator without a plugin, from overloads, a description and a pickled form. Never freed.
cdef Operator define(
    const cuplug_definition_overload *rows, uint32_t n_rows, str plugin, const char *version,
    str origin, str doc, object made
)
