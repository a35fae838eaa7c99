# SPDX-License-Identifier: Apache-2.0
"""Signatures as the core parses them, as tuples; signature.py gives their fields names."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

cimport cuplug._engine.base.core as core
cimport cuplug._engine.base.core_call as core_call
from cuplug._engine.base.strings cimport to_str

from cuplug._engine.base.dtypes import BY_ID, DTYPES
from cuplug._engine.signature.steps import Condition, Formula, Slice
from cuplug.errors import SignatureError

_PARAMETER_KINDS = (
    "array", "inout", "scalar", "string", "choice", "output", "list", "arrays", "handle",
    "dtype",
)
WORDS = ("inout", "zero", "detached", "host")  # by the bits of CUPLUG_WORD_INOUT ...
# Replacements in texts that may have several lines.
SPACES: dict[int, str] = dict.fromkeys(map(ord, "\t\n\r"), " ")
_DIM_KINDS = (
    "fixed", "named", "variadic", "loop", "unknown", "formula", "slice", "listed"
)


def parse_fields(
    text: str
) -> tuple[str, Any, Any, Any, tuple[str, ...], tuple[Condition, ...], Any, tuple[int, ...]]:
    """Return the fields of signature text.

    They are (name, parameters, outputs, variables, dim_names, conditions, made, each_names).
    """
    cdef core_call.cuplug_signature *signature = parse(text, core_call.cuplug_parse_signature)
    try:
        return _fields(signature)
    finally:
        core_call.cuplug_free_signature(signature)


def parse_short(text: str) -> tuple[
    list[tuple[str, str, bool, int]], list[tuple[str, str, bool, int]], int, list[str], bool
]:
    """Return the parameters and outputs of a signature that may lack brackets, unchecked.

    Each is (kind, dtype, has_default, the end of its dtype in bytes). Then come the end of the
    parameters, the type variables, and whether there is a `where`.
    """
    cdef core_call.cuplug_signature *s = parse(text, core_call.cuplug_parse_short)
    cdef int n = s.n_parameters
    try:
        parameters = [_short(s, &s.parameters[k]) for k in range(n)]
        outputs = [_short(s, &s.parameters[n + k]) for k in range(s.n_outputs)]
        variables = [
            (s.variables[k].name.decode(), s.variables[k].dtypes) for k in range(s.n_variables)
        ]
        has_where = s.n_conditions > 0 or any([name and bits for name, bits in variables])
        names = [name for name, _ in variables if name]
        return parameters, outputs, s.parameters_end, names, has_where
    finally:
        core_call.cuplug_free_signature(s)


cdef tuple _short(const core_call.cuplug_signature *s, const core_call.cuplug_parameter *x):
    dtype = s.text[x.type_at:x.type_end].decode()
    return _PARAMETER_KINDS[x.kind], dtype, bool(x.has_default), x.type_end


cdef core_call.cuplug_signature *parse(str text, parser parse_text) except NULL:
    cdef core_call.cuplug_signature *signature = NULL
    cdef core.cuplug_error error
    cdef uint32_t position = 0
    encoded = encode(text, "signature")
    if parse_text(encoded, &signature, &position, &error):
        raise SignatureError(to_str(error.message), position, text)
    return signature


cdef bytes encode(str text, str what):
    encoded = text.encode()
    if b"\0" in encoded:  # where it would end for the core
        raise SignatureError(f"{what}: got a zero byte, expected text", encoded.index(b"\0"), text)
    return encoded


cdef tuple _fields(const core_call.cuplug_signature *s):
    cdef int n = s.n_parameters
    names = _names(s)
    parameters = tuple([_parameter(s, &s.parameters[k], names) for k in range(n)])
    outputs = tuple([_parameter(s, &s.parameters[n + k], names) for k in range(s.n_outputs)])
    variables = tuple(
        [
            (s.variables[k].name.decode(), _dtypes(s.variables[k].dtypes))
            for k in range(s.n_variables)
        ]
    )
    dim_names = tuple([s.dim_names[k].decode() for k in range(s.n_dim_names)])
    conditions = tuple([_condition(&s.conditions[k], names) for k in range(s.n_conditions)])
    made = _parameter(s, s.made, names) if s.made != NULL else None
    each_names = tuple([k for k in range(s.n_dim_names) if s.each_names >> <uint32_t>k & 1])
    return s.name.decode(), parameters, outputs, variables, dim_names, conditions, made, each_names


# ---- Steps ---------------------------------------------------------------------------------------


cdef dict _names(const core_call.cuplug_signature *s):
    """Return the names of scalars and arrays by number, and of dimensions by position in steps."""
    cdef const core_call.cuplug_dim_source *place
    cdef int64_t value
    own = [(s.parameters[k].kind, s.parameters[k].name.decode()) for k in range(s.n_parameters)]
    scalars = [name for kind, name in own if kind > core_call.CUPLUG_PARAMETER_INOUT]
    arrays = [name for kind, name in own if kind <= core_call.CUPLUG_PARAMETER_INOUT]
    names = dict(enumerate(scalars)) | {("element", k): name for k, name in enumerate(arrays)}
    for k in range(s.n_dim_names):
        place = &s.places[k]
        if place.is_group:
            value = <int64_t>place.n_before << 32 | place.n_after
        else:
            value = place.n_before if place.n_before >= 0 else -1 - place.n_after
        if place.n_before >= 0 or place.n_after >= 0:
            names[place.is_group, place.array, value] = s.dim_names[k].decode()
    return names


cdef tuple _step(const core_call.cuplug_step *step, dict names):
    """Return the kind of a step, the name that it reads, and its value."""
    cdef int32_t kind = step.kind
    cdef double real = 0
    if kind == core_call.CUPLUG_STEP_ELEMENT:
        return kind, names["element", step.operand], 0
    if kind == core_call.CUPLUG_STEP_SCALAR or kind >= core_call.CUPLUG_STEP_LENGTH:
        return kind, names[step.operand], step.value
    if kind == core_call.CUPLUG_STEP_REAL:
        memcpy(&real, &step.value, sizeof(real))
        return kind, "", real
    if kind == core_call.CUPLUG_STEP_SIZE:
        return kind, names[0, step.operand, step.value], 0
    if kind >= core_call.CUPLUG_STEP_NDIM:
        return kind, names[1, step.operand, step.value], 0
    return kind, "", step.value


cdef object _formula(
    const core_call.cuplug_formula *formula, str text, uint32_t at, dict names
):
    return Formula(
        text, at, tuple([_step(&formula.steps[k], names) for k in range(formula.n_steps)])
    )


cdef object _condition(const core_call.cuplug_condition *x, dict names):
    text, element = x.text.decode(), names.get(("element", x.array), "")
    sides = tuple(
        [
            (x.sides[k].relation, _formula(&x.sides[k].formula, text, x.at, names))
            for k in range(x.n_sides)
        ]
    )
    return Condition(text, x.at, sides, element)


# ---- Parameters ----------------------------------------------------------------------------------


cdef tuple _dim(
    const core_call.cuplug_signature *s, const core_call.cuplug_dim *d, dict names
):
    """Return the kind of a dimension, and its number, size, Formula or Slice."""
    kind = _DIM_KINDS[d.kind]
    if d.kind < core_call.CUPLUG_DIM_FORMULA:
        return kind, d.value
    text = d.text.decode()
    first = _formula(&d.formula, text, d.at, names)
    if d.kind == core_call.CUPLUG_DIM_FORMULA:
        return kind, first
    is_listed = d.kind == core_call.CUPLUG_DIM_LISTED
    group = names[d.value] if is_listed else s.dim_names[d.value].decode()
    return kind, Slice(text, d.at, group, first, _formula(&d.end, text, d.at, names))


cdef tuple _parameter(
    const core_call.cuplug_signature *s, const core_call.cuplug_parameter *x, dict names
):
    dims = tuple([_dim(s, &x.dims[k], names) for k in range(x.n_dims)])
    choices = tuple([x.choices[k].decode() for k in range(x.n_choices)])
    default_text = x.default_text.decode() if x.default_text != NULL else ""
    kind = _PARAMETER_KINDS[x.kind]
    default = _default(x, choices) if x.has_default else None
    return (
        x.name.decode(), kind, x.type_variable, dims, bool(x.has_default), default, default_text,
        choices, x.tag.decode() if x.tag != NULL else "", bool(x.is_inout), bool(x.is_each),
        tuple([word for k, word in enumerate(WORDS) if x.words >> <uint32_t>k & 1]),
        s.parameters[x.like - 1].name.decode() if x.like else "",
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
    if x.default_kind == core.CUPLUG_ARGUMENT_DTYPE:
        dtype = x.default_value.dtype
        return BY_ID[dtype.code << 24 | dtype.bits << 16 | dtype.lanes].name
    return None


cdef tuple _dtypes(uint64_t bits):
    return tuple([name for k, name in enumerate(DTYPES) if bits >> <uint32_t>k & 1])
