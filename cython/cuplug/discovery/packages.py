# SPDX-License-Identifier: Apache-2.0
"""Plugin directories of installed packages: the entry-point group `cuplug.plugins`.

An entry `name = package.folder` names the directory `folder` of `package`. No code of the package
is run. Most environments have no such package, and importing this module takes longer than all of
cuplug; so `entry_points.pyx` looks first whether there is one.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from importlib.metadata import entry_points

GROUP = "cuplug.plugins"


def plugin_directories() -> list[str]:
    """Return the directories that installed packages name, in the order of their entries' names."""
    try:
        found = [(entry.name, entry.value) for entry in entry_points(group=GROUP)]
    except Exception as error:  # of a file that some package left behind
        _warn(f"the entry points of the installed packages cannot be read: {error}")
        return []
    return [directory for name, value in sorted(found) for directory in _directories(name, value)]


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
