# SPDX-License-Identifier: Apache-2.0
"""Operators without a plugin, from entries in this process."""

from libc.stdint cimport uint32_t

from cuplug._engine.base.core cimport cuplug_error, cuplug_operator
from cuplug._engine.base.runtime cimport (
    cuplug_define,
    cuplug_definition,
    cuplug_definition_overload,
)
from cuplug._engine.base.status cimport raise_error
from cuplug._engine.call.operator cimport Operator, wrap_operator


cdef Operator define(
    const cuplug_definition_overload *rows, uint32_t n_rows, str plugin, const char *version,
    str origin, str doc, object made
):
    cdef cuplug_definition definition
    cdef cuplug_operator *op = NULL
    cdef cuplug_error error
    cdef bytes plugin_text = plugin.encode(), origin_text = origin.encode()
    cdef bytes doc_text = doc.encode()
    definition.plugin, definition.version = plugin_text, version
    definition.origin, definition.doc = origin_text, doc_text
    definition.rows, definition.n_rows = rows, n_rows
    if cuplug_define(&definition, &op, &error):
        raise_error(&error)
    return wrap_operator(op, made)
