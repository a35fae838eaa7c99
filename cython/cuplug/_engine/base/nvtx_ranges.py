# SPDX-License-Identifier: Apache-2.0
"""Ranges of NVTX, with which profilers show the time of each step; enabled by CUPLUG_NVTX."""

from __future__ import annotations

from typing import Any

from cuplug._engine.base import environment


def _open() -> Any:
    """Return the package `nvtx`; None if ranges are off."""
    if environment.variable("CUPLUG_NVTX", "0") in ("", "0"):
        return None
    from importlib import import_module

    try:
        return import_module("nvtx")
    except ImportError:
        raise ImportError("CUPLUG_NVTX: it needs the Python package nvtx: install it") from None


_nvtx = _open()
is_on = _nvtx is not None


def push(name: str) -> None:
    """Begin a range of this thread."""
    _nvtx.push_range(name, domain="cuplug")


def pop() -> None:
    """End the innermost range."""
    _nvtx.pop_range(domain="cuplug")
