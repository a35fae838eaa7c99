# SPDX-License-Identifier: Apache-2.0
"""Files generated from symbol tables: typed functions for Cython, and type stubs.

`cuplug bind` and `cuplug stubs` generate the files of a plugin. When the package is built, `python
-m cuplug._integration.author.bind --stock DIRECTORY` generates the files of the stock plugins.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from cuplug._engine.base import flags
from cuplug._engine.discovery.fields import full_doc
from cuplug._engine.discovery.table import Table, read_table
from cuplug._engine.signature import signature
from cuplug._integration.author import memoryviews, stubs
from cuplug.errors import Error


@dataclass
class Written:
    """The files written for one plugin."""

    pxd: str
    functions: list[str]


@dataclass
class WrittenStubs:
    """The files written for one module."""

    pyi: str
    operators: list[str]


class TableError(Error, ValueError):
    """A file whose table cannot be used."""


def write_module(
    file: str, directory: str, name: str | None = None, only: Sequence[str] = ()
) -> Written:
    """Write a Cython module of typed functions for one plugin.

    Parameters
    ----------
    file : str
        The plugin. Its table is read, and its code does not run.
    directory : str
        The folder of NAME.pxd; created if it does not exist.
    name : str, optional
        The module's name. The default is <plugin>_typed.
    only : sequence of str, optional
        The operators that get functions. The default is all.

    Raises
    ------
    TableError
        The file has no usable table.
    ValueError
        The name is not an identifier, or Cython reserves it; or the plugin lacks an operator of
        `only`.
    """
    table = _usable(read_table(file))
    name = f"{table.name}_typed" if name is None else name
    if not name.isidentifier() or memoryviews.is_reserved(name):
        raise ValueError(f"name: got {name!r}, expected an identifier that Cython does not reserve")
    signatures = [signature.parse(row.signature) for row in table.rows]
    known = list(dict.fromkeys(row.name for row in signatures))
    for operator in only:
        if operator not in known:
            raise ValueError(f"only: got {operator!r}, expected one of {', '.join(known)}")
    module = memoryviews.Module()
    memoryviews.add_plugin(module, table.name, signatures, only)
    os.makedirs(directory, exist_ok=True)
    pxd = os.path.join(directory, f"{name}.pxd")
    title = f"Typed functions of the plugin {table.name} {table.version}, by cuplug bind."
    _save(pxd, memoryviews.write(module, title))
    return Written(pxd, [function.name for function in module.functions])


def write_stubs(files: Sequence[str], directory: str, name: str | None = None) -> WrittenStubs:
    """Write the type stubs of a module with the operators of some plugins.

    Parameters
    ----------
    files : sequence of str
        The plugins. Their tables are read, and their code does not run.
    directory : str
        The folder of NAME.pyi; created if it does not exist.
    name : str, optional
        The module's name. The default is the name of the first plugin.

    Raises
    ------
    TableError
        A file has no usable table.
    ValueError
        The name is not an identifier.
    """
    tables = [_usable(read_table(file)) for file in files]
    name = tables[0].name if name is None else name
    if not name.isidentifier():
        raise ValueError(f"name: got {name!r}, expected an identifier")
    listed = ", ".join(f"{table.name} {table.version}" for table in tables)
    rows = [_rows(table) for table in tables]
    os.makedirs(directory, exist_ok=True)
    pyi = os.path.join(directory, f"{name}.pyi")
    _save(pyi, stubs.write_stubs(rows, f"Written by cuplug stubs from the table of {listed}."))
    return WrittenStubs(pyi, list(dict.fromkeys(s.name for found in rows for s, _ in found)))


def _rows(table: Table) -> list[stubs.Row]:
    return [(signature.parse(x.signature), full_doc(x.doc, [x.properties])) for x in table.rows]


def write_stock(directory: str) -> None:
    """Write typed/ and ops.pyi for the stock plugins."""
    folder = os.path.join(flags.lib_directory(), "cuplug")
    files = sorted(f for f in os.listdir(folder) if f.startswith("lib") and f.endswith(".so"))
    tables = [_usable(read_table(os.path.join(folder, file))) for file in files]
    _write_typed(tables, os.path.join(directory, "typed"))
    title = "Written from the symbol tables of the stock plugins at build time."
    text = stubs.write_stubs([_rows(table) for table in tables], title, stubs.OTHERS)
    _save(os.path.join(directory, "ops.pyi"), f"# SPDX-License-Identifier: Apache-2.0\n{text}")


def _write_typed(tables: Sequence[Table], directory: str) -> None:
    """Write a module for each operator, and one for all, so that Cython reads only one file."""
    os.makedirs(directory, exist_ok=True)
    every = memoryviews.Module()
    for table in tables:
        signatures = [signature.parse(row.signature) for row in table.rows]
        for name in dict.fromkeys(row.name for row in signatures):
            module = memoryviews.Module()
            memoryviews.add_plugin(module, table.name, signatures, [name])
            every.functions += module.functions
            title = f"Typed functions of {name}, from the stock plugins, by cuplug bind."
            _save(os.path.join(directory, f"{name}.pxd"), memoryviews.write(module, title))
    text = memoryviews.write(every, "Typed functions of the stock plugins, by cuplug bind.")
    _save(os.path.join(directory, "__init__.pxd"), text)


def _usable(table: Table) -> Table:
    if table.state != "ok":
        raise TableError(f"{table.path}: {table.reason}")
    return table


def _save(path: str, text: str) -> None:
    """Write a file, unless it already has the text: its time stamp then stays, for make."""
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    except OSError:
        pass
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _main(arguments: Sequence[str]) -> int:
    if len(arguments) != 2 or arguments[0] != "--stock":
        print("usage: python -m cuplug._integration.author.bind --stock DIRECTORY", file=sys.stderr)
        return 2
    try:
        write_stock(arguments[1])
    except (OSError, TableError) as error:
        print(f"cuplug.bind: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
