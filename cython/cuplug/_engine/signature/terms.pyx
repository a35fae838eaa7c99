# SPDX-License-Identifier: Apache-2.0
"""Formulas of formula.py as the core has them, for operators that live until the process ends."""

from cpython.mem cimport PyMem_RawCalloc
from libc.stdint cimport uint32_t
from libc.string cimport memcpy

from cuplug._engine.base.core_call cimport cuplug_step, cuplug_term


cdef void *allocate(size_t n, size_t n_bytes) except NULL:
    """For ever."""
    cdef void *block = PyMem_RawCalloc(n + 1, n_bytes)
    if block == NULL:
        raise MemoryError()
    return block


cdef int set_term(cuplug_term *term, object made) except -1:
    """Set a term, a `formula.Term`, for ever."""
    cdef cuplug_step *to = <cuplug_step *>allocate(len(made.steps), sizeof(cuplug_step))
    cdef bytes text = made.text.encode()
    cdef char *kept = <char *>allocate(len(text), 1)
    memcpy(kept, <const char *>text, len(text))
    for k, (kind, operand, value) in enumerate(made.steps):
        to[k].kind = kind
        to[k].operand = operand
        to[k].value = value
    term.formula.steps = to
    term.formula.n_steps = <uint32_t>len(made.steps)
    term.text = kept
    return 0
