# SPDX-License-Identifier: Apache-2.0
"""Tables as the core reads them, as tuples; table.py gives their fields names."""

import os

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from cuplug.base cimport core
from cuplug.base.status cimport raise_error

cdef extern from "cuplug/plugin.h":
    ctypedef struct cuplug_table_header:
        uint32_t header_bytes
        uint32_t row_bytes
        uint32_t n_rows

TAKES_STRIDES = core.CUPLUG_TAKES_STRIDES  # of a row's flags

# By number, in the order of <cuplug/host.h>.
STATES = ("ok", "shadowed", "duplicate", "rejected", "changed", "no plugin", "missing")


def inspect_fields(path):
    """Return (state, reason, name, version, architectures, abi_version, rows) of a file."""
    cdef core.cuplug_file *file = NULL
    cdef core.cuplug_error error
    encoded = os.fsencode(path)
    status = core.cuplug_inspect(encoded, &file, &error)
    sentence = _text(error.message) if status else ""
    if file == NULL:
        return "rejected", sentence, "", "", "", 0, ()
    try:
        state = "rejected" if status and file.state == 0 else STATES[file.state]
        reason = _text(file.reason) if file.reason != NULL else sentence
        rows = tuple([_row(&file.rows[k]) for k in range(file.n_rows)])
        return (
            state, reason, _text(file.name), _text(file.version), _text(file.architectures),
            file.abi_version, rows,
        )
    finally:
        core.cuplug_free_file(file)


def check_trust(path):
    """Raise PluginError, with the reason, for a file that others may write or no list allows."""
    cdef core.cuplug_error error
    encoded = os.fsencode(path)
    if core.cuplug_check_trust(encoded, &error):
        raise_error(&error)


def rows_of_note(bytes note):
    """Return the rows in the bytes of a note, unchecked, for a table that the core rejects."""
    cdef cuplug_table_header header
    cdef core.cuplug_row row
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


cdef tuple _row(const core.cuplug_row *row):
    return (
        _text(row.cuda_entry), _text(row.host_entry), _text(row.signature), _text(row.doc),
        row.flags,
    )


cdef str _text(const char *text):
    return text.decode(errors="replace")
