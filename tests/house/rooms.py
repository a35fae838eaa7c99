# SPDX-License-Identifier: Apache-2.0
"""The rooms of the house, as docs/architecture.md lists them, and who uses whom."""

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


def read_rooms() -> list[Room]:
    """Return the rooms in their order: each uses those before it, and no other."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    table = text.partition("\n## The rooms")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\|([^|]*)\|([^|]*)\|([^|]*)\|$", table, re.M)
    return [Room(name, *(tuple(x.split()) for x in sides)) for name, *sides in rows]


def module_of(file: Path) -> tuple[str, ...]:
    """Return where a module lies: ("core", "base", "status"); files of one name are one module."""
    folder = next(folder for folder in (CORE, RUNTIME, PACKAGE) if folder in file.parents)
    return folder.name, *file.relative_to(folder).with_suffix("").parts


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
    """Return the dotted names of cuplug's own that are imported, at any depth of the code."""
    found = set(re.findall(r"^\s*c?import (cuplug[\w.]*)", text, re.M))
    pattern = r"^\s*from (cuplug[\w.]*) c?import (\([^)]*\)|[^\n#]+)"
    for module, names in re.findall(pattern, text, re.M):
        found |= {
            f"{module}.{name.split()[0]}" for name in re.split(r"[(),\n]+", names) if name.strip()
        }
    return found


def _known(name: str, known: set[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the module that a dotted name is, or is in."""
    parts = ("cuplug", *name.split(".")[1:])
    while parts not in known and len(parts) > 1:
        parts = parts[:-1]
    return parts if parts in known else ("cuplug", "__init__")


def _apart(
    used: dict[tuple[str, ...], set[tuple[str, ...]]],
) -> dict[tuple[str, ...], set[tuple[str, ...]]]:
    return {module: others - {module} for module, others in used.items()}
