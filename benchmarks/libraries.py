# SPDX-License-Identifier: Apache-2.0
"""Arrays of several libraries, through functions with the same names."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

MODULES = {"cuplug": "cuplug.array_api", "numpy": "numpy", "torch": "torch", "cupy": "cupy"}


def grown(library: str, arrays: Sequence[Any], times: int) -> list[Any]:
    """Return arrays repeated a number of times, except those shorter than others."""
    tile = importlib.import_module(MODULES[library]).tile
    rows = max(map(len, arrays))
    return [tile(x, (times, *[1] * (x.ndim - 1))) if len(x) == rows else x for x in arrays]
