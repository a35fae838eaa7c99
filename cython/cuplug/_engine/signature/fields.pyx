# SPDX-License-Identifier: Apache-2.0
"""Signatures as the core parses them, as tuples; signature.py gives their fields names."""

from libc.stdint cimport uint32_t, uint64_t

cimport cuplug._engine.base.core as core
cimport cuplug._engine.base.core_call as core_call
from cuplug._engine.base.strings cimport to_str

from cuplug._engine.base.dtypes import DTYPES
from cuplug.errors import SignatureError

_PARAMETER_KINDS = (
    "array", "inout", "scalar", "string", "choice", "output", "list", "arrays", "handle"
)
_DIM_KINDS = (
    "fixed", "named", "variadic", "loop", "unknown", "formula", "slice", "listed"
)


def parse_fields(text):
    """Return the fields of signature text.

    They are (name, parameters, outputs, variables, dim_names, conditions, made, each_names).
    """
    cdef core_call.cuplug_signature *signature = NULL
    cdef core.cuplug_error error
    cdef uint32_t position = 0
    encoded = text.encode()
    if core_call.cuplug_parse_signature(encoded, &signature, &position, &error):
        raise SignatureError(to_str(error.message), position, text)
    try:
        return _fields(signature)
    finally:
        core_call.cuplug_free_signature(signature)


cdef tuple _fields(const core_call.cuplug_signature *s):
    cdef int n = s.n_parameters
    parameters = tuple([_parameter(&s.parameters[k]) for k in range(n)])
    outputs = tuple([_parameter(&s.parameters[n + k]) for k in range(s.n_outputs)])
    variables = tuple(
        [
            (s.variables[k].name.decode(), _dtypes(s.variables[k].dtypes))
            for k in range(s.n_variables)
        ]
    )
    dim_names = tuple([s.dim_names[k].decode() for k in range(s.n_dim_names)])
    conditions = tuple([s.conditions[k].text.decode() for k in range(s.n_conditions)])
    made = _parameter(s.made) if s.made != NULL else None
    each_names = tuple([k for k in range(s.n_dim_names) if s.each_names >> <uint32_t>k & 1])
    return s.name.decode(), parameters, outputs, variables, dim_names, conditions, made, each_names


cdef tuple _dim(const core_call.cuplug_dim *d):
    """Its kind and its number or size; what is worked out, or a slice, as its text."""
    value = d.value if d.kind < core_call.CUPLUG_DIM_FORMULA else d.text.decode()
    return _DIM_KINDS[d.kind], value


cdef tuple _parameter(const core_call.cuplug_parameter *x):
    dims = tuple([_dim(&x.dims[k]) for k in range(x.n_dims)])
    choices = tuple([x.choices[k].decode() for k in range(x.n_choices)])
    default_text = x.default_text.decode() if x.default_text != NULL else ""
    kind = _PARAMETER_KINDS[x.kind]
    default = _default(x, choices) if x.has_default else None
    return (
        x.name.decode(), kind, x.type_variable, dims, bool(x.has_default), default, default_text,
        choices, x.tag.decode() if x.tag != NULL else "", bool(x.is_inout), bool(x.is_each),
    )


cdef object _default(const core_call.cuplug_parameter *x, tuple choices):
    if x.default_kind == core.CUPLUG_ARGUMENT_NONE:
        return None
    if x.kind == core_call.CUPLUG_PARAMETER_CHOICE:
        return choices[x.default_value.i]
    if x.default_kind == core.CUPLUG_ARGUMENT_BOOL:
        return x.default_value.i != 0
    if x.default_kind == core.CUPLUG_ARGUMENT_INT:
        return x.default_value.i
    if x.default_kind == core.CUPLUG_ARGUMENT_UINT:
        return x.default_value.u
    if x.default_kind == core.CUPLUG_ARGUMENT_FLOAT:
        return x.default_value.f
    if x.default_kind == core.CUPLUG_ARGUMENT_STRING:
        return x.default_value.s.decode()
    return None


cdef tuple _dtypes(uint64_t bits):
    return tuple([name for k, name in enumerate(DTYPES) if bits >> <uint32_t>k & 1])
