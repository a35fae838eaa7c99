# SPDX-License-Identifier: Apache-2.0
"""`cuplug install` and `cuplug uninstall`: plugins in a folder of the search path.

A plugin is copied next to its destination, checked there, and renamed, so readers see a complete
file, the old or the new one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import cuplug
from cuplug._engine.discovery.fields import check_owner
from cuplug._engine.discovery.table import read_table
from cuplug._engine.lookup.records import Directory
from cuplug._integration.author import linkage
from cuplug._integration.author.check import ERROR, check_file
from cuplug._integration.author.elf import ElfError, open_regular
from cuplug._integration.author.sources import library_at
from cuplug._integration.commands.output import print_json, print_lines
from cuplug._source.compilers import temporary
from cuplug.errors import NotFoundError, PluginError

OWN_ORIGINS = ("LD_LIBRARY_CUPLUG_PATH", "user", "system")


def install(file: str, folder: str | None) -> str:
    """Install a plugin in a folder; return its path.

    Raises
    ------
    NotFoundError, PluginError
        The file does not exist or breaks the build contract, or the folder is not for plugins.
    """
    source = library_at(file) or file
    if not os.path.exists(source):
        raise NotFoundError(f"install: {source}: no such file")
    folder = os.path.abspath(folder) if folder else _choose_folder()
    with _folder_beside(folder) as beside:
        fresh = _copy(source, beside)
        _check(source, fresh, folder)
        _sync(fresh)
        final = os.path.join(folder, os.path.basename(fresh))
        os.replace(fresh, final)
    _sync(folder)
    return final


def uninstall(name: str) -> str:
    """Remove the plugin with that name from the first of the user's folders that has it."""
    if not name.isidentifier():
        raise PluginError(f"uninstall: got {name!r}, expected the name of a plugin")
    folders = [d.path for d in _own_directories()]
    for folder in folders:
        path = os.path.join(folder, f"lib{name}.so")
        if os.path.lexists(path):
            os.unlink(path)
            _sync(folder)
            return path
    looked = "".join(f"\n  searched: {folder}" for folder in folders)
    raise NotFoundError(f"uninstall: {name}: there is no lib{name}.so{looked}")


def show_installed(path: str, as_json: bool) -> None:
    """Report the path of a plugin, and why it may not be found."""
    states = [(p.state, p.reason) for p in cuplug.plugins() if p.path == path]
    state, reason = states[0] if states else ("not found", "its folder is not on the search path")
    if as_json:
        print_json({"path": path, "state": state, "reason": reason})
    else:
        print_lines([path, *([f"{state}: {reason}"] if reason else [])])


def show_uninstalled(path: str, as_json: bool) -> None:
    """Report the removed library, and the one that is used instead."""
    name = os.path.basename(path)[3:-3]
    others = [p.path for p in cuplug.plugins() if p.name == name and p.state == "ok"]
    if as_json:
        print_json({"removed": path, "used": others[0] if others else None})
    else:
        print_lines([f"removed: {path}", *(f"used now: {other}" for other in others)])


def _own_directories() -> list[Directory]:
    return [d for d in cuplug.search_path() if d.state == "ok" and d.origin in OWN_ORIGINS]


def _choose_folder() -> str:
    """Return the first writable folder of LD_LIBRARY_CUPLUG_PATH, else the user's folder."""
    for directory in _own_directories():
        if directory.origin == OWN_ORIGINS[0] and os.access(directory.path, os.W_OK):
            return directory.path
    for directory in cuplug.search_path():
        if directory.origin == "user":
            os.makedirs(directory.path, mode=0o755, exist_ok=True)
            return directory.path
    raise PluginError("install: there is no home directory; pass --to FOLDER")


@contextmanager
def _folder_beside(folder: str) -> Iterator[str]:
    """Create a folder in `folder` that only this user, root and allowed users may write."""
    beside = ExitStack()
    try:
        check_owner(folder)
        temporary.sweep(folder)
        path = beside.enter_context(temporary.folder(folder))
    except OSError as error:
        raise PluginError(f"install: {folder}: {error.strerror}") from None
    except (NotFoundError, PluginError) as error:
        reason = "no such folder" if isinstance(error, NotFoundError) else error
        raise PluginError(f"install: {folder}: {reason}") from None
    with beside:
        yield path


def _copy(source: str, folder: str) -> str:
    """Copy a plugin, under the name in its table. The owner of the source does not matter."""
    copy = os.path.join(folder, "copy")
    try:
        with open_regular(source) as stream, open(copy, "wb") as to:
            shutil.copyfileobj(stream, to)
    except ElfError as error:
        raise PluginError(f"install: {source}: {error}") from None
    os.chmod(copy, 0o755)
    table = read_table(copy)
    if not table.name:
        raise PluginError(f"install: {source}: {table.reason}")
    named = os.path.join(folder, f"lib{table.name}.so")
    os.rename(copy, named)
    return named


def _check(source: str, fresh: str, folder: str) -> None:
    """Reject a plugin that would not load in the folder: libraries next to it are not copied."""
    for finding in check_file(fresh, os.path.realpath(folder)):
        if finding.level == ERROR or finding.text.startswith(linkage.MISSING):
            text = finding.text.replace(fresh, source)
            raise PluginError(f"install: {source}: {finding.rule}: {text}")


def _sync(path: str) -> None:
    """Make written data survive a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
