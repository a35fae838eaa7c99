# SPDX-License-Identifier: Apache-2.0
"""Operators from functions of libraries that were not written for cuplug, by their C prototypes."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

from cuplug._engine import provider
from cuplug._engine.adoption.adopted_call import AdoptedCall
from cuplug._engine.adoption.arguments import Arguments
from cuplug._engine.adoption.callbacks import CallbackType
from cuplug._engine.adoption.description import (
    Declared,
    Items,
    check_description,
    description_path_of,
    gradients_of,
    plugin_name,
    read_sidecar,
)
from cuplug._engine.adoption.entry import define_adopted
from cuplug._engine.adoption.prototypes import Prototypes, read_prototypes
from cuplug._engine.adoption.watching import ThreadLock
from cuplug._engine.base.libraries import open_library
from cuplug._engine.base.public import PublicCall, public
from cuplug._engine.base.validate import absolute
from cuplug._engine.call.operator import Operator
from cuplug._engine.call.pickled import PickledOperator
from cuplug._engine.discovery.fields import check_trust
from cuplug.errors import NotFoundError, PluginError

Identity = tuple[int, int, int, int]  # of a file: device, inode, size, time in ns


class Opened(NamedTuple):
    """The state of a path when a library was last loaded from it."""

    name: str  # for the dynamic linker
    identity: Identity | None  # None: the dynamic linker found it


loaded: dict[str, Opened] = {}  # by path
_gradients: dict[Operator, dict[str, Operator | CallbackType]] = {}
_locks: dict[str, ThreadLock] = {}  # by path
# The library's path, names in it, and their callers; kept until the process exits.
_functions: list[tuple[str, list[str], AdoptedCall]] = []


def read_trusted(library: str) -> dict[str, Any]:
    """Read the description next to a library. No other user may be able to write it."""
    path = description_path_of(library)
    try:
        if os.path.lexists(path):
            check_trust(path)
    except PluginError as error:
        raise PluginError(f"{os.path.basename(path)}: {error}") from None
    return read_sidecar(library)


@public
def adopt(
    path: str | os.PathLike[str], description: Mapping[str, Any] | None = None
) -> SimpleNamespace:
    """Make operators of functions in a shared library that was not written for cuplug.

    The library is loaded at once and stays loaded. cuplug cannot check that a prototype matches the
    function: a wrong one reads or overwrites memory, or ends the process.

    Parameters
    ----------
    path : str or path
        The library. The dynamic linker searches for a name without a folder, "libm.so.6"; a file of
        the current directory is "./libm.so.6".
    description : mapping, optional
        If omitted, it is read from the file lib<name>.cuplug.toml next to the library. It has
        `prototypes`, C declarations, and for each operator a mapping by the operator's name:

        - `signature`: as in a plugin; each array has one dtype.
        - `arguments`: the arguments of the function, in order: names of arrays, scalars and
          dimensions, `stream`, integers by `+ - * // %`, `min`, `max`, `size(x)`, constants,
          `status`, an integer by address that is judged by `returns`, and scratch.
        - `function`: its name; the default is the operator's name.
        - `place`: "host" (default) or "cuda", the required place of arrays.
        - `returns`: for an integer: "zero" (default), "one", "nonzero" or "nonnegative" is
          success; "cuda", a cudaError_t; "errno", a negative errno, or -1 with errno set;
          "ignored". Or the name of an output without dimensions, which is the value that the
          function returns. A function may also return void.
        - `scratch`: memory that it uses as workspace, "work: float64[3 * n]".
        - `order`: "c" (default) or "fortran", for column-major matrices.
        - `lock`: "none" (default) or "library", for one thread at a time.
        - `gradient`: the operator of the description that computes its gradient; `linear`: arrays
          in which it is linear.
        - `doc`: one line.

    Returns
    -------
    SimpleNamespace
        The operators, by name.

    Raises
    ------
    ValueError
        The description is wrong, does not fit the prototypes, or is missing.
    PluginError
        Another user may write the library or its description, the library cannot be loaded or does
        not have a function, or cffi is not installed.

    Examples
    --------
    >>> prototypes = {"prototypes": "double cbrt(double x);"}
    >>> cbrt = {"signature": "cbrt(x: float64) -> y: float64[]", "arguments": "x", "returns": "y"}
    >>> cuplug.adopt("libm.so.6", prototypes | {"cbrt": cbrt}).cbrt(27.0)
    array(3.)
    """
    place = absolute("adopt", path)
    if not os.path.dirname(os.fsdecode(path)):
        place = os.fsdecode(path)
        if description is None:
            raise ValueError(
                f"adopt: got the name {place} without a folder and no description, expected a "
                f"description; pass one, or a path such as ./{place}"
            )
    if description is None:
        description = read_trusted(place)
    declared, operators = check_description(os.fsdecode(path), description)
    opened = resolve(place)
    return SimpleNamespace(
        **{name: _adopt(place, declared, name, operators, opened) for name in operators}
    )


def _adopt(
    path: str, declared: Declared, name: str, told: Mapping[str, Items], opened: Opened
) -> Operator | CallbackType:
    items = told[name]
    try:
        prototypes = read_prototypes(declared.prototypes)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if "callback" in dict(items):
        return _define_callback(path, declared, name, items)
    for function in _wanted(name, items):
        prototypes.function(function, name)
    _check(name, items)
    if declared.source:
        opened = opened._replace(name=f"{opened.name}: {declared.source}")
    library = _open(prototypes, path, opened, declared)
    found = {x: _find(prototypes, library, x, name) for x in _wanted(name, items)}
    gradients = gradients_of(name, told)
    op, adopted = _define(path, declared, name, items, tuple(gradients.items()))
    adopted.bind(found, opened.name)
    if op not in _gradients:
        _gradients[op] = {name: op}  # gradients may form cycles
        own = {x: _adopt(path, declared, x, told, opened) for x in gradients}
        _gradients[op] = own
    return op


def adopted_sibling(op: Operator, name: str) -> Operator | None:
    """Return the operator that computes an adopted one's gradient, described accordingly."""
    found = _gradients.get(op, {}).get(name)
    return found if isinstance(found, Operator) else None


def _wanted(name: str, items: Items) -> list[str]:
    """Return the names of the library's functions that calls require."""
    own = {"function": name, **dict(items)}
    return [own[x] for x in ("function", "destroy", "free") if x in own]


@cache
def _check(name: str, items: Items) -> None:
    """Check the parts of a description that can be checked before the library's code runs."""
    Arguments(name, dict(items))


def _pickled(
    path: str, declared: Declared, name: str, items: Items, more: tuple[tuple[str, Items], ...] = ()
) -> PublicCall:
    described: dict[str, Any] = {"prototypes": declared.prototypes, name: dict(items)}
    described |= {x: dict(own) for x, own in more}
    if declared.source:
        described |= {"source": declared.source, "options": list(declared.options)}
    return PublicCall(PickledOperator, adopt, (path, described), name)


@cache
def _define(
    path: str, declared: Declared, name: str, items: Items, more: tuple[tuple[str, Items], ...]
) -> tuple[Operator, AdoptedCall]:
    description = dict(items)
    adopted = AdoptedCall(name, description, read_prototypes(declared.prototypes))
    if adopted.is_locked:
        adopted.lock = _locks.setdefault(path, ThreadLock())
    made = _pickled(path, declared, name, items, more)
    texts = (description.get(x, "") for x in ("gradient", "linear"))
    op = define_adopted(adopted, plugin_name(path), path, description.get("doc", ""), made, *texts)
    if not declared.source:
        _functions.append((path, _wanted(name, items), adopted))
    return op, adopted


@cache
def _define_callback(path: str, declared: Declared, name: str, items: Items) -> CallbackType:
    callback = CallbackType(name, dict(items), read_prototypes(declared.prototypes))
    callback.define(plugin_name(path), path, _pickled(path, declared, name, items))
    return callback


def resolve(path: str) -> Opened:
    """Return the name that the dynamic linker receives for a path.

    It compares names before files, so a file that was replaced gets a longer name.
    """
    if os.sep not in path:
        return Opened(path, None)
    place = os.path.realpath(path)
    try:
        check_trust(place)
        identity = _identify(place)
    except (NotFoundError, OSError, PluginError) as error:
        raise PluginError(f"{path}: {error}") from None
    before = loaded.get(path)
    if before is None or before.identity is None:
        return Opened(place, identity)
    if before.identity == identity:
        return before
    if before.identity[:2] == identity[:2]:
        raise PluginError(
            f"{path}: the file was overwritten in place while its code is loaded; restart the "
            "process, and replace files by renaming new ones"
        )
    folder, file = os.path.split(before.name)
    return Opened(os.path.join(folder, ".", file), identity)


def _identify(path: str) -> Identity:
    status = os.stat(path)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _open(
    prototypes: Prototypes, path: str, opened: Opened, declared: Declared | None = None
) -> Any:
    try:
        if declared and declared.source:
            return _dlopen(prototypes, opened.name, _compile(path, declared))
        open_library(opened.name)  # its constructors may change how the thread rounds
        library = _dlopen(prototypes, opened.name)
    except OSError as error:
        raise PluginError(f"{path}: {error}") from None
    loaded[path] = opened
    return library


@cache
def _dlopen(prototypes: Prototypes, name: str | None, handle: int = 0) -> Any:
    """Load a library. It is never closed, because its functions are in use."""
    ffi = prototypes.ffi
    return ffi.dlopen(ffi.cast("void *", handle) if handle else name)


@cache
def _compile(path: str, declared: Declared) -> int:
    """Compile the source text of a description, linked with the library; return its handle."""
    compiler: Any = provider("host compiler")
    library = path if os.sep in path else f"-l:{path}"
    return int(compiler.compile_library(declared.source, library, declared.options))


def _find(prototypes: Prototypes, library: Any, function: str, name: str) -> Any:
    """Find a function of a library.

    Functions of the C library, such as `free`, are looked up in the whole process: LD_PRELOAD may
    replace them, and memory must return to its own allocator.
    """
    try:
        found = getattr(library, function)
    except AttributeError as error:
        raise PluginError(f"{name}: {function}: {error}") from None
    with suppress(OSError, AttributeError):  # other C libraries, and functions of others
        if getattr(_dlopen(prototypes, "libc.so.6"), function) == found:
            return getattr(_dlopen(prototypes, None), function)
    return found


def reload_adopted(paths: Collection[str] | None) -> tuple[set[str], list[Exception]]:
    """Reload the code of operators of adopted libraries at these paths, or all.

    It returns what `reload_files` returns.
    """
    return reload_files({x for x, _, _ in _functions}, paths, _rebind)


def reload_files(
    known: Collection[str], paths: Collection[str] | None, rebind: Callable[[str, Opened], bool]
) -> tuple[set[str], list[Exception]]:
    """Call `rebind` for the known files that are among the paths, or for all.

    Returns
    -------
    tuple
        The paths of the files that had changed, and a list of exceptions. Functions that the new
        file lacks, or of a file that is rejected, keep the old code.
    """
    changed: set[str] = set()
    errors: list[Exception] = []
    files = {x for x in known if os.sep in x and os.path.exists(x)}
    for path in sorted(files if paths is None else files & set(paths)):
        try:
            is_same = loaded[path].identity == _identify(path)
            if rebind(path, loaded[path] if is_same else resolve(path)):
                changed.add(path)
        except (OSError, PluginError) as error:
            errors.append(error)
    return changed, errors


def _rebind(path: str, opened: Opened) -> bool:
    """Rebind all functions of a library, or none; return whether any had changed."""
    own = [(names, x) for place, names, x in _functions if place == path]
    stale = [(names, x) for names, x in own if x.library != opened.name]
    found = []
    for names, x in stale:
        library = _open(x.prototypes, path, opened)
        found.append({name: _find(x.prototypes, library, name, x.name) for name in names})
    for (_, x), functions in zip(stale, found, strict=True):
        x.bind(functions, opened.name)
    return bool(stale)
