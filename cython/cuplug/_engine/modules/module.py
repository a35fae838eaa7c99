# SPDX-License-Identifier: Apache-2.0
"""Files of tvm-ffi modules: what is in them, and their functions as operators."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from typing import Any

from cuplug._engine.adoption.adopt import Opened, loaded, resolve
from cuplug._engine.adoption.description import plugin_name, read_sidecar, sidecar_of
from cuplug._engine.base.libraries import open_library
from cuplug._engine.base.public import PublicCall
from cuplug._engine.call.pickled import PickledOperator
from cuplug._engine.modules.contexts import open_with_context
from cuplug._engine.modules.description import Described, read_description
from cuplug._engine.modules.entry import define_described
from cuplug._engine.modules.files import PREFIX, RUNTIME, functions_in, read_symbols
from cuplug._engine.modules.function import ModuleFunction
from cuplug._engine.modules.runtime import LIBRARY, load_runtime
from cuplug.errors import PluginError

CONTEXT = "__tvm_ffi__library_ctx"

_made: dict[tuple[str, Opened, Any], tuple[Callable[..., Any], ...]] = {}  # alive for ever


def describe_module(path: str) -> dict[str, Described]:
    """Return what the description beside a module says; nothing without one.

    Raises
    ------
    ValueError
        The description is wrong.
    """
    if not os.path.lexists(sidecar_of(path)):
        return {}
    return read_description(path, read_sidecar(path), functions_in(path))


def open_module(path: str, find: Callable[..., Any]) -> tuple[Callable[..., Any], ...]:
    """Load a module; return its functions, or with a description its operators.

    `find` is `cuplug.load`, which finds them again when they are unpickled.

    Raises
    ------
    PluginError
        The file is refused or cannot be loaded, or its description is wrong.
    """
    try:
        described = describe_module(path)
    except ValueError as error:
        raise PluginError(f"{path}: {error}") from None
    opened = resolve(path)
    key = (path, opened, repr(described))
    if key not in _made:
        addresses = _open(path, opened)
        _made[key] = tuple(_make(path, addresses, described, find))
    return _made[key]


def _make(
    path: str,
    addresses: dict[str, tuple[int, int]],
    described: Mapping[str, Described],
    find: Callable[..., Any],
) -> list[Callable[..., Any]]:
    plugin = plugin_name(path)
    if not described:
        return [
            ModuleFunction(name, plugin, path, *place, (PickledOperator, (find, (path,), name)))
            for name, place in addresses.items()
        ]
    return [
        define_described(
            x.signature,
            x.sources,
            *addresses[x.function],
            x.place,
            plugin,
            path,
            x.doc,
            PublicCall(PickledOperator, find, (path,), name),
        )
        for name, x in described.items()
    ]


def _open(path: str, opened: Opened) -> dict[str, tuple[int, int]]:
    """Load the code; return the object and the address of each function."""
    symbols, names = read_symbols(path), functions_in(path)
    if LIBRARY in symbols.needed or any(x.startswith(RUNTIME) for x in symbols.undefined):
        load_runtime(path)
    try:
        if CONTEXT in symbols.defined:
            load_runtime(path)
            found = open_with_context(opened.name, names)
        else:
            library = ctypes.CDLL(opened.name, handle=open_library(opened.name))
            found = {name: (0, _address(library, PREFIX + name)) for name in names}
    except OSError as error:
        raise PluginError(f"{path}: {error}") from None
    loaded[path] = opened
    return found


def _address(library: ctypes.CDLL, symbol: str) -> int:
    return ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value or 0
