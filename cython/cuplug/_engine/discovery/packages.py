# SPDX-License-Identifier: Apache-2.0
"""Plugin directories of installed packages: the entry-point group `cuplug.plugins`.

An entry `name = package.folder` names the directory `folder` of `package`. No code of the package
is run. Most environments have no such package, and importing this module takes longer than all of
cuplug; so `entry_points.pyx` checks first whether one exists.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions, entry_points

GROUP = "cuplug.plugins"


def plugin_directories() -> list[str]:
    """Return the directories that installed packages name, in the order of their entries' names."""
    try:
        found = [(entry.name, entry.value) for entry in entry_points(group=GROUP)]
    except Exception:  # of a file that a removed package has left
        found = list(_readable_entries())
    return [directory for name, value in sorted(found) for directory in _directories(name, value)]


def _readable_entries() -> Iterator[tuple[str, str]]:
    """Yield the names and values of the entries of those packages whose entries can be read."""
    seen = set()
    for distribution in distributions():
        name = _name_of(distribution)
        if name in seen:  # a later one of that name is not imported
            continue
        seen.add(name)
        try:
            entries = distribution.entry_points.select(group=GROUP)
            yield from [(entry.name, entry.value) for entry in entries]
        except Exception as error:
            _warn(f"{name}: got a malformed entry_points.txt, its plugins are skipped: {error}")


def _name_of(distribution: Distribution) -> str:
    try:
        return str(distribution.metadata["Name"]).lower().replace("_", "-").replace(".", "-")
    except Exception:  # without metadata
        return str(distribution)


def _directories(name: str, value: str) -> Iterator[str]:
    """Resolve an entry without importing the package."""
    from importlib.util import find_spec

    package, *folders = value.partition(":")[0].strip().split(".")
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        spec = None
    places = list(spec.submodule_search_locations or ()) if spec else []
    if not places:
        _warn(f"the entry point {name} = {value} names no package that is installed")
    for place in places:
        yield os.path.join(place, *folders)


def _warn(text: str) -> None:
    warnings.warn(f"cuplug: {text}", RuntimeWarning, stacklevel=3)
