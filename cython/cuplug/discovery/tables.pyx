# SPDX-License-Identifier: Apache-2.0
"""Tables as the core reads them, as tuples; table.py gives their fields names."""

import os

from cuplug.base cimport core
from cuplug.base.status cimport raise_error

TAKES_STRIDES = core.CUPLUG_ROW_TAKES_STRIDES  # of a row's flags

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


cdef tuple _row(const core.cuplug_row *row):
    return (
        _text(row.cuda_entry), _text(row.host_entry), _text(row.signature), _text(row.doc),
        row.flags,
    )


cdef str _text(const char *text):
    return text.decode(errors="replace")
