# SPDX-License-Identifier: Apache-2.0
"""Results in output arrays, as for NumPy's parameter `out`."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuplug.array_api.creation import assign


def written(found: Any, out: Any) -> Any:
    """Return results, in their output arrays if given."""
    if out is None:
        return found
    results = found if isinstance(found, tuple) else (found,)
    pairs = [(x, y) for x, y in zip(results, out, strict=True) if y is not None]
    for x, y in pairs:
        if x.shape != y.shape:
            raise ValueError(f"out: got shape {y.shape}, expected {x.shape}")
        if not np.can_cast(x.dtype, y.dtype, "same_kind"):
            raise TypeError(f"out: got {y.dtype}, expected an array that holds {x.dtype}")
    for x, y in pairs:
        assign(y, x)
    kept = tuple(x if y is None else y for x, y in zip(results, out, strict=True))
    return kept if isinstance(found, tuple) else kept[0]


def into_out(found: Any, out: Any) -> Any:
    """Return a result, in `out` if given."""
    return written(found, None if out is None else (out,))
