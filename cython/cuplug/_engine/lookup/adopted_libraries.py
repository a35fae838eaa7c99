# SPDX-License-Identifier: Apache-2.0
"""Adopted libraries on the search path, which have a description lib<name>.cuplug.toml.

They come after all plugins, so that a search for a plugin does not search for descriptions.
"""

from __future__ import annotations

import os
from functools import cache

from cuplug._engine.adoption.description import (
    SUFFIX,
    Items,
    check_description,
    description_path_of,
    plugin_name,
)
from cuplug._engine.call.operator import Operator
from cuplug._engine.discovery.fields import check_trust, inspect_fields
from cuplug._engine.lookup.listing import list_plugins, search_path
from cuplug._engine.lookup.records import Plugin, PluginFile
from cuplug._engine.modules.files import is_module
from cuplug.errors import NotFoundError, PluginError

MAX_REASON = 500  # characters

# Libraries passed to `cuplug.load`, the last one first.
_loaded: list[str] = []


def list_adopted(listed: list[PluginFile]) -> list[PluginFile]:
    """Return the records of adopted libraries, which follow the plugins in listings."""
    places = _places()
    if not places:
        return []
    taken = {p.name: p.path for p in listed if p.state in ("ok", "changed")}
    tables = {p.path for p in listed if p.state != "no plugin"}
    records = []
    for library, origin in places.items():
        if library in tables or inspect_fields(library)[0] == "ok" or is_module(library):
            continue
        record = describe(library, origin)
        if record.state == "ok" and taken.setdefault(record.name, library) != library:
            reason = f"shadowed by {taken[record.name]}"
            record = record._replace(state="shadowed", reason=reason)
        records.append(record)
    return records


def find_adopted(name: str, missing: NotFoundError) -> Operator:
    """Find an operator of an adopted library; if none exists, raise `missing` with the reason."""
    if not _places():
        raise missing
    plugin, _, operator = name.rpartition(".")
    adopted = [p for p in list_adopted(list_plugins()) if plugin in ("", p.name)]
    having = [p for p in adopted if p.state in ("ok", "rejected") and operator in p.operators]
    failures = []
    for record in sorted(having, key=lambda p: (p.state != "ok", p.name != operator)):
        if record.state == "rejected":  # for its prototypes: its operators are known
            failures.append(PluginError(f"{record.path}: {record.reason}"))
            continue
        try:
            return next(op for op in _take(record.path) if op.name == operator)
        except PluginError as error:
            failures.append(error)
    if failures:
        raise failures[0]
    reasons = [f"\n  rejected: {p.path}: {p.reason}" for p in adopted if p.state == "rejected"]
    raise NotFoundError(f"{missing}{''.join(reasons)}")


def load_adopted(path: str, refusal: PluginError) -> Plugin:
    """Adopt one library ahead of the others; raise `refusal` if it has no description."""
    if not os.path.lexists(description_path_of(path)) or inspect_fields(path)[0] != "no plugin":
        raise refusal
    record = describe(path, "loaded")
    if record.state != "ok":
        raise PluginError(f"{path}: {record.reason}")
    operators = _take(path)
    _loaded[:] = [path, *(other for other in _loaded if other != path)]
    return Plugin(operators)


def _places() -> dict[str, str]:
    """Return the libraries with a description in search order, with their directory's origin."""
    places = dict.fromkeys(_loaded, "loaded")
    for directory in search_path():
        if directory.state == "ok":
            for name in _descriptions(directory.path):
                library = os.path.join(directory.path, name.removesuffix(SUFFIX) + ".so")
                places.setdefault(library, directory.origin)
    return places


def _descriptions(directory: str) -> list[str]:
    try:
        names = [name for name in os.listdir(directory) if name.endswith(SUFFIX)]
    except OSError:
        return []
    return sorted((name for name in names if name.startswith("lib")), key=os.fsencode)


def describe(library: str, origin: str) -> PluginFile:
    """Check a library and its description in a directory of `origin`; no code of it is run."""
    from cuplug._engine.adoption.adopt import loaded, read_trusted
    from cuplug._engine.adoption.arguments import Arguments

    reason, rows = "", {}
    try:
        check_trust(library)
        declared, told = check_description(library, read_trusted(library))
        for name, items in told.items():
            if "callback" not in dict(items):
                Arguments(name, dict(items))
        rows = {name: dict(items) for name, items in told.items()}
        reason = _check_prototypes(declared.prototypes, tuple(told.items()))
    except Exception as error:  # a file with arbitrary contents must not end a listing
        reason = str(error) or type(error).__name__
    if len(reason) > MAX_REASON:
        reason = f"{reason[:MAX_REASON]}..."
    places = {row.get("place", "host") for row in rows.values()}
    return PluginFile(
        name=plugin_name(library),
        version="",
        path=library,
        state="rejected" if reason else "ok",
        reason=reason,
        origin=origin,
        operators=tuple(rows),
        signatures=tuple(row["signature"] for row in rows.values()),
        device_types=("cpu",) * ("host" in places) + ("cuda",) * ("cuda" in places),
        architectures=(),
        abi="",
        loaded=library in loaded,
        kind="adopted",
    )


@cache
def _check_prototypes(prototypes: str, told: tuple[tuple[str, Items], ...]) -> str:
    """Return the error in comparison with the prototypes, "" if all fits."""
    from cuplug._engine.adoption.adopted import Adopted
    from cuplug._engine.adoption.callbacks import CallbackType
    from cuplug._engine.adoption.prototypes import read_prototypes

    try:
        declared = read_prototypes(prototypes)
        for name, items in told:
            kind = CallbackType if "callback" in dict(items) else Adopted
            kind(name, dict(items), declared)
    except ValueError as error:
        return str(error)
    except PluginError:  # cffi is not installed, which is reported at the first use
        pass
    return ""


def _take(library: str) -> tuple[Operator, ...]:
    """Adopt a library that was checked."""
    from cuplug._engine.adoption.adopt import adopt

    try:
        return tuple(vars(adopt(library)).values())
    except ValueError as error:
        raise PluginError(f"{library}: {error}") from None
