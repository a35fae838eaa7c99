# SPDX-License-Identifier: Apache-2.0
"""What the tools ask the core: tables of files, signatures, devices; as tuples.

`cuplug.table` and `cuplug.signature` give their fields names.
"""

import os

from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memcpy

from cuplug cimport _host
from cuplug._status cimport raise_error

cdef extern from "cuplug/plugin.h":
    ctypedef struct cuplug_table_header:
        uint32_t header_bytes
        uint32_t row_bytes
        uint32_t n_rows

TAKES_STRIDES = _host.CUPLUG_TAKES_STRIDES  # of a row's flags

_PARAMETER_KINDS = ("array", "inout", "scalar", "string", "choice", "output")
_STATES = ("ok", "shadowed", "duplicate", "rejected", "changed", "no plugin", "missing")
_DIM_KINDS = ("fixed", "named", "variadic", "loop", "unknown")


class SignatureError(ValueError):
    """Ill-formed signature text; `position` is the byte offset of the place."""

    def __init__(self, message, position):
        super().__init__(message)
        self.position = position


def parse_fields(text):
    """Return (name, parameters, outputs, variables, dim_names) of signature text."""
    cdef _host.cuplug_signature signature
    cdef _host.cuplug_error error
    cdef uint32_t position = 0
    cdef int n
    encoded = text.encode()
    if _host.cuplug_parse_signature(encoded, &signature, &position, &error):
        raise SignatureError(_text(error.message), position)
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


cdef tuple _parameter(const _host.cuplug_parameter *x):
    dims = tuple([(_DIM_KINDS[x.dims[k].kind], x.dims[k].value) for k in range(x.n_dims)])
    choices = tuple([x.choices[k].decode() for k in range(x.n_choices)])
    default_text = x.default_text.decode() if x.default_text != NULL else ""
    kind = _PARAMETER_KINDS[x.kind]
    default = _default(x, choices) if x.has_default else None
    return (
        x.name.decode(), kind, x.type_variable, dims, bool(x.has_default), default, default_text,
        choices,
    )


cdef object _default(const _host.cuplug_parameter *x, tuple choices):
    if x.kind == _host.CUPLUG_PARAMETER_CHOICE:
        return choices[x.default_value.i]
    if x.default_kind == _host.CUPLUG_ARGUMENT_BOOL:
        return x.default_value.i != 0
    if x.default_kind == _host.CUPLUG_ARGUMENT_INT:
        return x.default_value.i
    if x.default_kind == _host.CUPLUG_ARGUMENT_UINT:
        return x.default_value.u
    if x.default_kind == _host.CUPLUG_ARGUMENT_FLOAT:
        return x.default_value.f
    if x.default_kind == _host.CUPLUG_ARGUMENT_STRING:
        return x.default_value.s.decode()
    return None


cdef tuple _dtypes(uint32_t bits):
    names = []
    cdef uint32_t k = 0
    while _host.cuplug_dtype_name(k) != NULL:
        if bits >> k & 1:
            names.append(_host.cuplug_dtype_name(k).decode())
        k += 1
    return tuple(names)


def inspect_fields(path):
    """Return (state, reason, name, version, architectures, abi_version, rows) of a file."""
    cdef _host.cuplug_file *file = NULL
    cdef _host.cuplug_error error
    encoded = os.fsencode(path)
    status = _host.cuplug_inspect(encoded, &file, &error)
    sentence = _text(error.message) if status else ""
    if file == NULL:
        return "rejected", sentence, "", "", "", 0, ()
    try:
        state = "rejected" if status and file.state == 0 else _STATES[file.state]
        reason = _text(file.reason) if file.reason != NULL else sentence
        rows = tuple([_row(&file.rows[k]) for k in range(file.n_rows)])
        return (
            state, reason, _text(file.name), _text(file.version), _text(file.architectures),
            file.abi_version, rows,
        )
    finally:
        _host.cuplug_free_file(file)


def check_trust(path):
    """Raise PluginError, with the reason, for a file that others may write or no list allows."""
    cdef _host.cuplug_error error
    encoded = os.fsencode(path)
    if _host.cuplug_check_trust(encoded, &error):
        raise_error(&error)


def rows_of_note(bytes note):
    """Return the rows in the bytes of a note, unchecked, for a table that the core rejects."""
    cdef cuplug_table_header header
    cdef _host.cuplug_row row
    cdef uint64_t n_bytes = len(note), begin
    cdef const char *first = note
    rows = []
    if n_bytes < sizeof(header):
        return ()
    memcpy(&header, first, sizeof(header))
    for number in range(header.n_rows):
        begin = header.header_bytes + <uint64_t>number * header.row_bytes
        if header.row_bytes < sizeof(row) or begin + sizeof(row) > n_bytes:
            break
        memcpy(&row, first + begin, sizeof(row))
        row.cuda_entry[sizeof(row.cuda_entry) - 1] = 0
        row.host_entry[sizeof(row.host_entry) - 1] = 0
        row.signature[sizeof(row.signature) - 1] = 0
        row.doc[sizeof(row.doc) - 1] = 0
        rows.append(_row(&row))
    return tuple(rows)


def list_devices():
    """Return (driver_version, devices, reason): 13000 for CUDA 13.0; (name, capability, bytes).

    The reason says why there is no device to use, or is "".
    """
    cdef _host.cuplug_error error
    cdef _host.cuplug_device_info info
    cdef int32_t n = 0, driver_version = 0, number
    cdef int status
    with nogil:
        status = _host.cuplug_n_devices(&n, &driver_version, &error)
    if status:
        return driver_version, (), _text(error.message)
    devices = []
    for number in range(n):
        if _host.cuplug_query_device(number, &info, &error):
            return driver_version, tuple(devices), _text(error.message)
        devices.append((_text(info.name), info.compute_capability, info.memory_bytes))
    return driver_version, tuple(devices), ""


cdef tuple _row(const _host.cuplug_row *row):
    return (
        _text(row.cuda_entry), _text(row.host_entry), _text(row.signature), _text(row.doc),
        row.flags,
    )


cdef str _text(const char *text):
    return text.decode(errors="replace")
