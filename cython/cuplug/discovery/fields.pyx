# SPDX-License-Identifier: Apache-2.0
"""Tables as the core reads them, as tuples; table.py gives their fields names."""

import os

from cuplug.base cimport core
from cuplug.base.status cimport raise_error
from cuplug.base.texts cimport to_architectures, to_str

TAKES_STRIDES = core.CUPLUG_ROW_TAKES_STRIDES  # of a row's flags

# By number, in the order of <cuplug/host.h>.
STATES = ("ok", "shadowed", "duplicate", "rejected", "changed", "no plugin", "missing")


def inspect_fields(path):
    """Return (state, reason, name, version, architectures, abi_version, rows) of a file."""
    cdef core.cuplug_file *file = NULL
    cdef core.cuplug_error error
    encoded = os.fsencode(path)
    status = core.cuplug_inspect(encoded, &file, &error)
    sentence = to_str(error.message) if status else ""
    if file == NULL:
        return "rejected", sentence, "", "", (), 0, ()
    try:
        state = "rejected" if status and file.state == 0 else STATES[file.state]
        reason = to_str(file.reason) if file.reason != NULL else sentence
        rows = tuple([_row(&file.rows[k]) for k in range(file.n_rows)])
        return (
            state, reason, to_str(file.name), to_str(file.version),
            to_architectures(file.architectures), file.abi_version, rows,
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
        to_str(row.cuda_entry), to_str(row.host_entry), to_str(row.signature), to_str(row.doc),
        row.flags,
    )
