# SPDX-License-Identifier: Apache-2.0
"""Signatures as the core parses them, as tuples; signature.py gives their fields names."""

from libc.stdint cimport uint32_t

from cuplug.base cimport core, core_call
from cuplug.base.texts cimport to_str

from cuplug.base.dtypes import DTYPES
from cuplug.errors import SignatureError

_PARAMETER_KINDS = ("array", "inout", "scalar", "string", "choice", "output")
_DIM_KINDS = ("fixed", "named", "variadic", "loop", "unknown")


def parse_fields(text):
    """Return (name, parameters, outputs, variables, dim_names) of signature text."""
    cdef core_call.cuplug_signature signature
    cdef core.cuplug_error error
    cdef uint32_t position = 0
    cdef int n
    encoded = text.encode()
    if core_call.cuplug_parse_signature(encoded, &signature, &position, &error):
        raise SignatureError(to_str(error.message), position)
    n = signature.n_parameters
    parameters = tuple([_parameter(&signature.parameters[k]) for k in range(n)])
    outputs = tuple([_parameter(&signature.parameters[n + k]) for k in range(signature.n_outputs)])
    variables = tuple(
        [
            (signature.variables[k].name.decode(), _dtypes(signature.variables[k].dtypes))
            for k in range(signature.n_variables)
        ]
    )
    dim_names = tuple([signature.dim_names[k].decode() for k in range(signature.n_dim_names)])
    return signature.name.decode(), parameters, outputs, variables, dim_names


cdef tuple _parameter(const core_call.cuplug_parameter *x):
    dims = tuple([(_DIM_KINDS[x.dims[k].kind], x.dims[k].value) for k in range(x.n_dims)])
    choices = tuple([x.choices[k].decode() for k in range(x.n_choices)])
    default_text = x.default_text.decode() if x.default_text != NULL else ""
    kind = _PARAMETER_KINDS[x.kind]
    default = _default(x, choices) if x.has_default else None
    return (
        x.name.decode(), kind, x.type_variable, dims, bool(x.has_default), default, default_text,
        choices,
    )


cdef object _default(const core_call.cuplug_parameter *x, tuple choices):
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


cdef tuple _dtypes(uint32_t bits):
    return tuple([name for k, name in enumerate(DTYPES) if bits >> <uint32_t>k & 1])
