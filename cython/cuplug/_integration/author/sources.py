# SPDX-License-Identifier: Apache-2.0
"""The source files of a plugin, its name, and the path of its library."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from cuplug._engine.base.public import public
from cuplug._engine.base.validate import absolute
from cuplug.errors import PluginError

CUDA_SUFFIX = ".cu"
SUFFIXES = (".c", ".cpp", ".cc", ".cxx", CUDA_SUFFIX)
HEADER_SUFFIXES = (".h", ".cuh", ".hpp")
TABLE = re.compile(r"^CUPLUG_PLUGIN\(\s*(\w+)\s*,", re.M)
# The folder of plugins in a package, as `cuplug new --package` creates it.
FOLDER = "plugins"


@public
class BuildError(PluginError):
    """A plugin that cannot be built, with the compiler's output and the command.

    Examples
    --------
    >>> issubclass(cuplug.BuildError, cuplug.PluginError)
    True
    """


@dataclass(frozen=True)
class Source:
    """The files of one plugin: a single file, or all in a folder."""

    name: str
    directory: str
    files: tuple[str, ...]

    @property
    def has_cuda(self) -> bool:
        """Return whether one of them is CUDA."""
        return any(file.endswith(CUDA_SUFFIX) for file in self.files)

    @property
    def output(self) -> str:
        """Return the default path of its library."""
        return os.path.join(self.directory, f"lib{self.name}.so")


def find_source(path: str | os.PathLike[str]) -> Source:
    """Return the files of the plugin at a path.

    Raises
    ------
    BuildError
        No plugin was found, or several.
    """
    found = find_sources(path)
    if len(found) > 1:
        names = ", ".join(source.name for source in found)
        raise BuildError(
            f"build: {os.fspath(path)}: got {len(found)} plugins ({names}), expected one"
        )
    return found[0]


def find_sources(path: str | os.PathLike[str]) -> list[Source]:
    """Return the plugins at a path: a file, a folder of one or of several, or of a package.

    Several in one folder are files with one table each. A package has them in its folder `plugins`,
    as files or folders.

    Raises
    ------
    BuildError
        No plugin was found, or it is unclear which file belongs to which.
    """
    text = absolute("build", path)
    if os.path.isdir(text):
        found = list(_in_folder(text))
        if not found:
            raise BuildError(f"build: {text}: a folder without a .cu, .c or .cpp file")
        return found
    if not os.path.exists(text):
        raise BuildError(f"build: {text}: no such file")
    if not text.endswith(SUFFIXES):
        kind = os.path.splitext(text)[1] or "no suffix"
        raise BuildError(
            f"build: {text}: got {kind}, expected a folder, or a file that ends in .cu, .c or .cpp"
        )
    return [source_of((text,))]


def _in_folder(folder: str) -> Iterator[Source]:
    files = source_files(folder)
    if files and _has_several(files):
        yield from (source_of((file,)) for file in files)
    elif files:
        yield source_of(files, os.path.basename(folder))
    elif os.path.isdir(plugins := os.path.join(folder, FOLDER)):
        yield from (source_of((file,)) for file in source_files(plugins))
        for entry in sorted(os.scandir(plugins), key=lambda entry: entry.name):
            if entry.is_dir():
                yield from _in_folder(entry.path)


def source_files(folder: str) -> tuple[str, ...]:
    """Return the files in a folder that a compiler accepts, in order."""
    names = sorted(name for name in os.listdir(folder) if name.endswith(SUFFIXES))
    return tuple(os.path.join(folder, name) for name in names)


def source_of(files: tuple[str, ...], usual: str = "") -> Source:
    """Return the plugin of some files. Without a table, its name is `usual` or the first file's."""
    directory, first = os.path.split(files[0])
    tables = find_tables(files)
    names = {name for found in tables.values() for name in found}
    name = names.pop() if len(names) == 1 else usual or os.path.splitext(first)[0]
    return Source(name, directory, files)


def find_tables(files: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the files with tables, and the names of their plugins."""
    tables = {}
    for file in files:
        with open(file, errors="replace") as stream:
            names = TABLE.findall(stream.read())
        if names:
            tables[file] = names
    return tables


def _has_several(files: tuple[str, ...]) -> bool:
    tables = find_tables(files)
    if len(tables) > 1 and len(tables) < len(files):
        listed = ", ".join(os.path.basename(file) for file in tables)
        raise BuildError(
            f"build: {os.path.dirname(files[0])}: got a table in each of {listed}, and files "
            "without one, expected a folder for each plugin of several files"
        )
    return len(tables) > 1


def library_at(path: str | os.PathLike[str]) -> str:
    """Return the only library that a path refers to; as for `libraries_at`.

    Raises
    ------
    BuildError
        Or the path is a folder of several plugins.
    """
    found = libraries_at(path)
    if len(found) > 1:
        names = ", ".join(os.path.basename(library) for library in found)
        raise BuildError(f"{os.fspath(path)}: got {len(found)} plugins ({names}), expected one")
    return found[0] if found else ""


def libraries_at(path: str | os.PathLike[str]) -> list[str]:
    """Return the libraries that a path refers to: itself, or those built in a folder.

    Returns None if it is not a path: it has no separator, and no file with that name or only a
    folder without plugins exists.

    Raises
    ------
    BuildError
        A plugin in the folder is not yet built.
    """
    text = os.fspath(path)
    if not os.path.isdir(text):
        return [text] if os.sep in text or os.path.exists(text) else []
    sources = list(_in_folder(os.path.abspath(text)))
    if sources:
        return [_built(source, text) for source in sources]
    usual = os.path.join(text, f"lib{os.path.basename(os.path.abspath(text))}.so")
    if os.path.exists(usual):
        return [usual]
    if os.sep not in text and text != os.curdir:
        return []
    raise BuildError(f"{text}: there is no {os.path.basename(usual)} in this folder")


def _built(source: Source, folder: str) -> str:
    if not os.path.exists(source.output):
        name = os.path.basename(source.output)
        advice = f"`cuplug build {folder}` makes it"
        raise BuildError(f"{folder}: there is no {name} in this folder: {advice}")
    return os.path.join(folder, os.path.relpath(source.output, os.path.abspath(folder)))
