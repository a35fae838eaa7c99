# SPDX-License-Identifier: Apache-2.0
"""Compiled code that an application ships, for machines without compilers.

A request consists of source texts, options, and a processor or an architecture, without a compiler.
`cuplug warm` sets CUPLUG_WARM_TO, and all code that the program uses is copied to this folder,
under the keys of its requests. The folders in CUPLUG_WARM_PATH are searched by these keys before a
compiler is searched. They have the form of cache.py, and are only read.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
from functools import cache as once

from cuplug._engine.base import environment
from cuplug._engine.discovery.fields import check_owner
from cuplug._source.compilers import cache
from cuplug.errors import NotFoundError, PluginError

PATH = "CUPLUG_WARM_PATH"
TARGET = "CUPLUG_WARM_TO"
_FACTS = ("model name", "flags|Features")  # from /proc/cpuinfo


@once
def processor() -> tuple[str, ...]:
    """Return what host code depends on: the processor's model, if known, and its instructions."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        text = file.read(16384)
        found = (re.search(rf"^(?:{name})\s*:(.*)$", text, re.M) for name in _FACTS)
        return tuple(match[1] if match else "" for match in found)
    return "", os.uname().machine


def request(*parts: str | bytes) -> str:
    """Return the key of a request; "" if no variable is set."""
    if not (environment.variable(PATH) or environment.variable(TARGET)):
        return ""
    return cache.key("request", platform.machine(), *parts)


def read(request: str, kind: str) -> bytes | None:
    """Return the shipped code for a request; None if it does not exist."""
    found = _find(request, kind)
    return None if found is None else found[1]


def path_of(request: str, kind: str) -> str | None:
    """Return the path of the shipped code for a request, or None."""
    found = _find(request, kind)
    return None if found is None else found[0]


def _find(request: str, kind: str) -> tuple[str, bytes] | None:
    if not request:
        return None
    for folder in filter(None, environment.variable(PATH).split(os.pathsep)):
        path = os.path.join(folder, f"{request}.{kind}")
        with contextlib.suppress(OSError, NotFoundError, PluginError):
            _, data = cache.read_entry(path)
            check_owner(path)
            if data is not None:
                return path, data
    return None


def add(request: str, kind: str, data: bytes | None) -> None:
    """Copy code to the folder of CUPLUG_WARM_TO, if it is set.

    Raises
    ------
    OSError
        The folder cannot be written.
    """
    folder = environment.variable(TARGET)
    if request and data is not None and folder:
        cache.write_entry(os.path.join(folder, f"{request}.{kind}"), folder, data, 0o644)
