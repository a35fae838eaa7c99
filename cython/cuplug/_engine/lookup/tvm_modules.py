# SPDX-License-Identifier: Apache-2.0
"""Modules of tvm-ffi on the search path: files that export its functions, whatever their names.

They come after plugins and adopted libraries.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from cuplug._engine.adoption.description import description_path_of, plugin_name
from cuplug._engine.call.operator import Operator
from cuplug._engine.discovery.fields import check_trust
from cuplug._engine.lookup.listing import list_plugins, search_path
from cuplug._engine.lookup.records import Plugin, PluginFile
from cuplug._engine.modules.files import functions_in, is_module
from cuplug.errors import NotFoundError, PluginError

# Modules passed to `cuplug.load`, the last one first.
_loaded: list[str] = []


def list_modules(listed: list[PluginFile]) -> list[PluginFile]:
    """Return the records of modules, which follow plugins and libraries in listings."""
    taken = {x.name: x.path for x in listed if x.state in ("ok", "changed")}
    known = {x.path for x in listed if x.state != "no plugin"}
    records = []
    for path, origin in _places().items():
        if path in known or not is_module(path):
            continue
        record = describe_file(path, origin)
        if record.state == "ok" and taken.setdefault(record.name, path) != path:
            reason = f"shadowed by {taken[record.name]}"
            record = record._replace(state="shadowed", reason=reason)
        records.append(record)
    return records


def find_in_modules(
    name: str, missing: NotFoundError, find: Callable[..., Any]
) -> Callable[..., Any]:
    """Find a function of a module; raise `missing` if none has it. `find`: `cuplug.load`."""
    if not any(functions_in(path) for path in _places()):
        raise missing
    from cuplug._engine.modules.module import open_module  # most processes do not use it

    plugin, _, function = name.rpartition(".")
    records = [x for x in list_modules(list_plugins()) if plugin in ("", x.name)]
    having = [x for x in records if x.state == "ok" and function in x.operators]
    for record in having:
        return next(x for x in open_module(record.path, find) if x.__name__ == function)
    reasons = [f"\n  rejected: {x.path}: {x.reason}" for x in records if x.state == "rejected"]
    raise NotFoundError(f"{missing}{''.join(reasons)}")


def load_module(path: str, find: Callable[..., Any]) -> Plugin:
    """Load one module ahead of the others."""
    from cuplug._engine.modules.function import ModuleFunction
    from cuplug._engine.modules.module import open_module

    record = describe_file(path, "loaded")
    if record.state != "ok":
        raise PluginError(f"{path}: {record.reason}")
    made = open_module(path, find)
    _loaded[:] = [path, *(other for other in _loaded if other != path)]
    operators = tuple(x for x in made if isinstance(x, Operator))
    return Plugin(operators, tuple(x for x in made if isinstance(x, ModuleFunction)))


def _places() -> dict[str, str]:
    """Return the shared objects in search order, each with its directory's origin.

    LD_LIBRARY_PATH has many other libraries. There, only libraries with a description count.
    """
    places = dict.fromkeys(_loaded, "loaded")
    for directory in search_path():
        if directory.state != "ok":
            continue
        for name in _shared_objects(directory.path):
            path = os.path.join(directory.path, name)
            if directory.origin != "LD_LIBRARY_PATH" or os.path.lexists(description_path_of(path)):
                places.setdefault(path, directory.origin)
    return places


def _shared_objects(directory: str) -> list[str]:
    try:
        names = [name for name in os.listdir(directory) if name.endswith(".so")]
    except OSError:
        return []
    return sorted(names, key=os.fsencode)


def describe_file(path: str, origin: str) -> PluginFile:
    """Check a module and its description; no code of it is run."""
    from cuplug._engine.adoption.adopt import loaded
    from cuplug._engine.modules.module import describe_module

    reason, described = "", {}
    names = tuple(functions_in(path))
    try:
        check_trust(path)
        if os.path.lexists(description_path_of(path)):
            check_trust(description_path_of(path))
        described = describe_module(path)
    except Exception as error:  # a file with arbitrary contents must not end a listing
        reason = str(error) or type(error).__name__
    device_types = {each for x in described.values() for each in x.device_types}
    return PluginFile(
        name=plugin_name(path),
        version="",
        path=path,
        state="rejected" if reason else "ok",
        reason=reason,
        origin=origin,
        operators=tuple(described) or names,
        signatures=tuple(x.signature for x in described.values()),
        device_types=tuple(sorted(device_types)),
        architectures=(),
        abi="",
        loaded=path in loaded,
        kind="module",
    )
