# SPDX-License-Identifier: Apache-2.0
"""Calls on symbolic arrays in a library's program, which that library's module handles."""

from __future__ import annotations

import sys
from typing import Any

from cuplug._engine import PROVIDERS, provider

__all__ = ["hand_on"]


def hand_on(library: str, operator: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return the result of `cuplug.<library>` for a call, or NotImplemented."""
    # An argument may only resemble one of that library, or the library may have no module.
    if library not in sys.modules or library not in PROVIDERS:
        return NotImplemented
    try:
        module: Any = provider(library)
    except ImportError:  # the library is older than the module requires
        return NotImplemented
    if not operator.returns or library == "dask":  # whose tasks call the operator itself
        return module.hand_on(operator, args, keywords)
    rest = {name: x for name, x in keywords.items() if name not in operator.returns}
    result = module.hand_on(operator, args, rest)  # computes all outputs
    left_out = [number for name, number in operator.returns.items() if not keywords.get(name)]
    return result if result is NotImplemented else _without(result, left_out)


def _without(result: Any, left_out: list[int]) -> Any:
    """Return the outputs of a call, None for those that were not requested."""
    outputs = result if isinstance(result, tuple) else (result,)
    kept = [None if k in left_out else x for k, x in enumerate(outputs)]
    if not isinstance(result, tuple):
        return kept[0]
    return type(result)._make(kept) if hasattr(result, "_make") else tuple(kept)
