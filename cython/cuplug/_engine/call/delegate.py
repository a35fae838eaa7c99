# SPDX-License-Identifier: Apache-2.0
"""Calls on what stands for arrays in a library's program: that library's module takes them."""

from __future__ import annotations

import sys
from typing import Any

from cuplug._engine import PROVIDERS, provider

__all__ = ["hand_on"]


def hand_on(library: str, operator: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return what `cuplug.<library>` makes of a call; NotImplemented where it does not take it."""
    # An argument may only look like one of that library, or come from one that has no module.
    if library not in sys.modules or library not in PROVIDERS:
        return NotImplemented
    try:
        module: Any = provider(library)
    except ImportError:  # the library is older than what the module needs
        return NotImplemented
    return module.hand_on(operator, args, keywords)
