# SPDX-License-Identifier: Apache-2.0
"""Formulas of formula.py, parsed and in the core's form, for operators that live until the
process ends."""

from cpython.mem cimport PyMem_RawCalloc
from libc.stdint cimport uint32_t
from libc.string cimport memcpy

from cuplug._engine.base.core cimport cuplug_error
from cuplug._engine.base.core_call cimport (
    cuplug_condition,
    cuplug_formula,
    cuplug_free_signature,
    cuplug_parse_signature,
    cuplug_signature,
    cuplug_step,
    cuplug_term,
)
from cuplug._engine.base.runtime cimport cuplug_parse_terms
from cuplug._engine.base.strings cimport to_str
from cuplug._engine.signature.fields cimport encode, parse

from cuplug._engine.signature.fields import SPACES
from cuplug.errors import SignatureError


cdef void *allocate(size_t n, size_t n_bytes) except NULL:
    """Return zeroed memory, which is never freed."""
    cdef void *block = PyMem_RawCalloc(n + 1, n_bytes)
    if block == NULL:
        raise MemoryError()
    return block


cdef int set_term(cuplug_term *term, object made) except -1:
    """Set a term from a `formula.Term`. Its memory is never freed."""
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


def parse_terms(
    signature: str, text: str, what: str, own: Sequence[str] | None
) -> list[tuple[tuple[tuple[int, int, int], ...], str]]:
    """Return (steps, text) of each term of a text that names the arguments of a signature."""
    cdef cuplug_signature *terms = NULL
    cdef cuplug_error error
    cdef uint32_t position = 0
    cdef int status
    encoded, prefix = encode(text.translate(SPACES), what), what.encode()
    names = b"" if own is None else " ".join(own).encode()
    cdef const char *own_names = NULL if own is None else <const char *>names
    cdef cuplug_signature *scope = parse(signature, cuplug_parse_signature)
    try:
        status = cuplug_parse_terms(
            scope, encoded, prefix, own_names, &terms, &position, &error
        )
        if status:
            raise SignatureError(to_str(error.message), position, text)
        return [_term(&terms.conditions[k]) for k in range(terms.n_conditions)]
    finally:
        cuplug_free_signature(terms)
        cuplug_free_signature(scope)


cdef tuple _term(const cuplug_condition *x):
    cdef const cuplug_formula *formula = &x.sides[0].formula
    cdef const cuplug_step *steps = formula.steps
    numbers = [(steps[k].kind, steps[k].operand, steps[k].value) for k in range(formula.n_steps)]
    return tuple(numbers), x.text.decode()
