# SPDX-License-Identifier: Apache-2.0
"""Files of tvm-ffi modules: their contents, and their functions as operators."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, NamedTuple

from cuplug._engine.adoption.adopt import Opened, loaded, reload_files, resolve
from cuplug._engine.adoption.description import description_path_of, plugin_name, read_sidecar
from cuplug._engine.base.libraries import open_library
from cuplug._engine.base.public import PublicCall
from cuplug._engine.call.pickled import PickledOperator
from cuplug._engine.modules.contexts import open_with_context
from cuplug._engine.modules.description import Described, read_description
from cuplug._engine.modules.entry import define_described, rebind_described
from cuplug._engine.modules.files import PREFIX, RUNTIME, functions_in, read_symbols
from cuplug._engine.modules.function import ModuleFunction
from cuplug._engine.modules.runtime import LIBRARY, load_runtime
from cuplug.errors import PluginError

CONTEXT = "__tvm_ffi__library_ctx"

_made: dict[tuple[Any, ...], tuple[Callable[..., Any], ...]] = {}  # never freed


class _Bound(NamedTuple):
    """A function of a module, and the means to replace its code."""

    function: str  # its name in the module
    rebind: Callable[[int, int], None]
    current: list[Opened]  # the module whose code it runs


_bound: dict[str, list[_Bound]] = {}  # by path


def describe_module(path: str) -> dict[str, Described]:
    """Return the description next to a module, empty without one.

    Raises
    ------
    ValueError
        The description is wrong.
    """
    if not os.path.lexists(description_path_of(path)):
        return {}
    return read_description(path, read_sidecar(path), functions_in(path))


def open_module(path: str, find: Callable[..., Any]) -> tuple[Callable[..., Any], ...]:
    """Load a module; return its functions, or with a description its operators.

    `find` is `cuplug.load`, which finds them again when they are unpickled.

    Raises
    ------
    PluginError
        The file is rejected or cannot be loaded, or its description is wrong.
    """
    try:
        described = describe_module(path)
    except ValueError as error:
        raise PluginError(f"{path}: {error}") from None
    opened = resolve(path)
    key = (path, *functions_in(path), repr(described))
    if key in _made:
        _rebind(path, opened)
    else:
        addresses = _open(path, opened)
        made = _make(path, addresses, described, find)
        _bound.setdefault(path, []).extend(
            _Bound(function, rebind, [opened]) for function, rebind, _ in made
        )
        _made[key] = tuple(x for _, _, x in made)
    return _made[key]


def reload_modules(paths: Collection[str] | None) -> tuple[set[str], list[Exception]]:
    """Reload the code of functions of modules at these paths, or all.

    It returns what `reload_files` returns.
    """
    return reload_files(_bound, paths, _rebind)


def _rebind(path: str, opened: Opened) -> bool:
    """Rebind all functions of a module, or none; return whether any had changed."""
    stale = [x for x in _bound.get(path, ()) if x.current[0] != opened]
    if not stale:
        return False
    missing = {x.function for x in stale}.difference(functions_in(path))
    if missing:
        raise PluginError(
            f"{path}: got a module without {min(missing)}, expected all functions of the one before"
        )
    addresses = _open(path, opened)
    for x in stale:
        x.rebind(*addresses[x.function])
        x.current[0] = opened
    return True


def _make(
    path: str,
    addresses: dict[str, tuple[int, int]],
    described: Mapping[str, Described],
    find: Callable[..., Any],
) -> list[tuple[str, Callable[[int, int], None], Callable[..., Any]]]:
    """Return triples: a name in the module, the means to replace its code, and the callable."""
    plugin = plugin_name(path)
    made: list[tuple[str, Callable[[int, int], None], Callable[..., Any]]] = []
    for name, place in addresses.items() if not described else ():
        pickled = (PickledOperator, (find, (path,), name))
        function = ModuleFunction(name, plugin, path, *place, pickled)
        made.append((name, function._rebind, function))
    for name, x in described.items():
        operator, at = define_described(
            x.signature,
            x.sources,
            *addresses[x.function],
            x.place,
            plugin,
            path,
            x.doc,
            PublicCall(PickledOperator, find, (path,), name),
        )
        made.append((x.function, partial(rebind_described, at), operator))
    return made


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
