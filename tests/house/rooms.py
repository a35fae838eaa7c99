# SPDX-License-Identifier: Apache-2.0
"""The rooms, as docs/architecture.md lists them, and the dependencies between modules."""

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from places import ROOT

CORE = ROOT / "core"
RUNTIME = ROOT / "runtime"
PACKAGE = ROOT / "cython" / "cuplug"
CODE = {".c", ".h", ".py", ".pyx", ".pxd", ".pyi"}


@dataclass(frozen=True)
class Room:
    """A row of the table of rooms."""

    name: str
    core: tuple[str, ...]  # modules, as the table names them
    runtime: tuple[str, ...]
    package: tuple[str, ...]


@dataclass(frozen=True)
class Wing:
    """A row of the table of wings."""

    name: str
    folder: str  # of the package; "": its rooms are public, at the top
    rooms: tuple[str, ...]


def _section() -> str:
    text = (ROOT / "docs" / "architecture.md").read_text()
    return text.partition("\n## The rooms")[2].partition("\n## ")[0]


def read_rooms() -> list[Room]:
    """Return the rooms in their order: each uses only earlier ones."""
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\|([^|]*)\|([^|]*)\|([^|]*)\|$", _section(), re.M)
    return [Room(name, *(tuple(x.split()) for x in sides)) for name, *sides in rows]


def read_wings() -> list[Wing]:
    """Return the wings of the package in their order: each imports only earlier ones."""
    rows = re.findall(r"^\| (\w+) \| (?:`(_\w+)/` )?\| ((?:`\w+` )+)\|$", _section(), re.M)
    return [
        Wing(name, folder, tuple(rooms.replace("`", "").split())) for name, folder, rooms in rows
    ]


ROOM_FOLDERS = {(wing.folder, room) for wing in read_wings() for room in wing.rooms}
FOLDERS = [wing.folder for wing in read_wings() if wing.folder]


def module_of(file: Path) -> tuple[str, ...]:
    """Return the module of a file, ("core", "base", "status"); files of one name are one module."""
    folder = next(folder for folder in (CORE, RUNTIME, PACKAGE) if folder in file.parents)
    return _in_room((folder.name, *file.relative_to(folder).with_suffix("").parts))


def _in_room(module: tuple[str, ...]) -> tuple[str, ...]:
    """Remove the folder of a room's wing."""
    return (module[0], *module[2:]) if module[1:3] in ROOM_FOLDERS else module


def core_modules() -> dict[tuple[str, ...], set[tuple[str, ...]]]:
    """Return the modules of the core, each with those that it includes."""
    return _including(CORE)


def runtime_modules() -> dict[tuple[str, ...], set[tuple[str, ...]]]:
    """Return the modules of the runtime, each with those that it includes; it may use all of the
    core."""
    return _including(RUNTIME)


def _including(folder: Path) -> dict[tuple[str, ...], set[tuple[str, ...]]]:
    used: dict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)
    for file in sorted(folder.rglob("*.[ch]")):
        names = re.findall(r'^\s*#\s*include "([\w/.]+\.h)"', file.read_text(), re.M)
        paths = [folder / name for name in names]
        used[module_of(file)] |= {module_of(path) for path in paths if path.exists()}
    return _apart(used)


def package_modules() -> dict[tuple[str, ...], set[tuple[str, ...]]]:
    """Return the modules of the package, each with those that it imports or cimports anywhere."""
    files = [file for file in sorted(PACKAGE.rglob("*")) if file.suffix in CODE]
    known = {module_of(file) for file in files}
    used: dict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)
    for file in files:
        used[module_of(file)] |= {_known(name, known) for name in _imports(file.read_text())}
    return _apart(used)


def _imports(text: str) -> set[str]:
    """Return the dotted names of cuplug modules that are imported, at any depth of the code.

    Arguments of `import_module` also count.
    """
    found = set(re.findall(r"^\s*c?import (cuplug[\w.]*)", text, re.M))
    found |= set(re.findall(r"""import(?:_module|__)\(\s*f?["'](cuplug[\w.]*)""", text))
    pattern = r"^\s*from (cuplug[\w.]*) c?import (\([^)]*\)|[^\n#]+)"
    for module, names in re.findall(pattern, text, re.M):
        found |= {
            f"{module}.{name.split()[0]}" for name in re.split(r"[(),\n]+", names) if name.strip()
        }
    return found


def _known(name: str, known: set[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the module that a dotted name names, or that contains it."""
    parts = _in_room(("cuplug", *name.split(".")[1:]))
    while parts:
        for module in (parts, (*parts, "__init__")):
            if module in known:
                return module
        parts = parts[:-1]
    raise LookupError(name)


def _apart(
    used: dict[tuple[str, ...], set[tuple[str, ...]]],
) -> dict[tuple[str, ...], set[tuple[str, ...]]]:
    return {module: others - {module} for module, others in used.items()}
