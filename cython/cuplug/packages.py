# SPDX-License-Identifier: Apache-2.0
"""Plugin directories of installed packages: the entry-point group `cuplug.plugins`.

An entry `name = package.folder` names the directory `folder` of `package`. No code of the package
is run. Most environments have no such package, and importing `importlib.metadata` takes longer
than all of cuplug; so the files that would name one are looked through first.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator

GROUP = "cuplug.plugins"
_METADATA = (".dist-info", ".egg-info")


def plugin_directories() -> list[str]:
    """Return the directories that installed packages name, in the order of their entries' names."""
    if not any(map(_mentions_group, sys.path)):
        return []
    from importlib.metadata import entry_points

    entries = sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value))
    return [directory for entry in entries for directory in _directories(entry.name, entry.value)]


def _mentions_group(directory: str) -> bool:
    """Say whether some package installed in a directory of `sys.path` has entries of ours."""
    try:
        with os.scandir(directory or os.curdir) as found:
            packages = [entry.path for entry in found if entry.name.endswith(_METADATA)]
    except OSError:
        return not os.path.isdir(directory or os.curdir) and os.path.exists(directory)
    return any(map(_has_group, packages))


def _has_group(package: str) -> bool:
    try:
        with open(os.path.join(package, "entry_points.txt"), "rb") as file:
            return GROUP.encode() in file.read()
    except OSError:
        return False


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
        warnings.warn(
            f"cuplug: the entry point {name} = {value} names no package that is installed",
            RuntimeWarning,
            stacklevel=2,
        )
    for place in places:
        yield os.path.join(place, *folders)
