# SPDX-License-Identifier: Apache-2.0
"""The core's tables as tuples; table.py names their fields."""

import itertools
import os

cimport cuplug._engine.base.core as core
from cuplug._engine.base.core_call cimport cuplug_check_owner
from cuplug._engine.base.status cimport raise_error
from cuplug._engine.base.strings cimport to_architectures, to_str

TAKES_STRIDES: int = core.CUPLUG_OVERLOAD_TAKES_STRIDES  # of an overload's flags

OWN_FIELDS = ("signature", "doc", "host", "cuda", "order")  # of an overload; not properties

# Indexed by number, in the order of <cuplug/host.h>.
STATES = ("ok", "shadowed", "duplicate", "rejected", "changed", "no plugin", "missing")


def inspect_fields(path: str) -> tuple[str, str, str, str, tuple[int, ...], int, Any]:
    """Return (state, reason, name, version, architectures, abi_version, rows) of a file."""
    cdef core.cuplug_file *file = NULL
    cdef core.cuplug_error error
    encoded = os.fsencode(path)
    status = core.cuplug_inspect(encoded, &file, &error)
    sentence = to_str(error.message) if status else ""
    if file == NULL:
        return "rejected", sentence, "", "", (), 0, ()
    try:
        state = STATES[core.cuplug_file_state(file)]
        if status and state == "ok":
            state = "rejected"
        n_rows = core.cuplug_file_n_overloads(file)
        rows = tuple([_row(core.cuplug_file_overload(file, k)) for k in range(n_rows)])
        return (
            state,
            to_str(core.cuplug_file_reason(file)) or sentence,
            to_str(core.cuplug_file_name(file)),
            to_str(core.cuplug_file_version(file)),
            to_architectures(core.cuplug_file_architectures(file)),
            core.cuplug_file_abi_version(file),
            rows,
        )
    finally:
        core.cuplug_free_file(file)


def check_trust(path: str):
    """Raise PluginError, with the reason, if others may write a file or no list allows it."""
    cdef core.cuplug_error error
    encoded = os.fsencode(path)
    if core.cuplug_check_trust(encoded, &error):
        raise_error(&error)


def check_owner(path: str):
    """Raise PluginError, with the reason, if others may write a path or its parent directories."""
    cdef core.cuplug_error error
    encoded = os.fsencode(path)
    if cuplug_check_owner(encoded, &error):
        raise_error(&error)


cdef tuple _row(const core.cuplug_overload *row):
    return (
        _entry(row, core.CUPLUG_CUDA),
        _entry(row, core.CUPLUG_CPU),
        to_str(core.cuplug_overload_signature(row)),
        to_str(core.cuplug_overload_doc(row)),
        core.cuplug_overload_flags(row),
        properties_of(row),
    )


cdef dict properties_of(const core.cuplug_overload *row):
    """Return an overload's properties other than OWN_FIELDS; None for flags."""
    cdef const char *field
    properties = {}
    for k in itertools.count():
        field = core.cuplug_overload_field(row, k)
        if field == NULL:
            return properties
        key, is_value, value = to_str(field).removeprefix("!").partition("=")
        if key not in OWN_FIELDS:
            properties[key] = value if is_value else None


def parameter_docs(rows: Iterable[Mapping[str, str | None]]) -> dict[str, str]:
    """Return the documentation of each parameter in overloads: {"x": "Any array."}."""
    docs = {}
    for properties in rows:
        for key, text in properties.items():
            kind, _, name = key.partition(".")
            if kind == "doc" and text and text not in docs.setdefault(name, []):
                docs[name].append(text)
    return {name: " ".join(texts) for name, texts in docs.items()}


def full_doc(doc: str, rows: Iterable[Mapping[str, str | None]]) -> str:
    """Return documentation, with a section of parameters if properties of overloads have one."""
    parts = [f"{name}\n    {text}" for name, text in parameter_docs(rows).items()]
    return "\n".join([doc, *(["", "Parameters", "----------"] if parts else []), *parts])


cdef str _entry(const core.cuplug_overload *row, int device_type):
    cdef const char *entry = core.cuplug_overload_entry(row, device_type)
    return to_str(entry) if entry != NULL else ""
