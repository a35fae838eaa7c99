# SPDX-License-Identifier: Apache-2.0
"""Arrays as text."""

from __future__ import annotations

from typing import Any

import numpy

EDGE = 3  # elements at each end of a dimension that is too long to be shown


def shown(x: Any) -> str:
    """Return an array's text: its values, of a large one those at the ends, and where it is."""
    head = f"{type(x).__name__}("
    return f"{head}{_text(x, ', ', head)}, dtype={x.dtype}, device='{x.device}')"


def values_shown(x: Any) -> str:
    """Return the values alone, as NumPy prints them."""
    return _text(x, " ", "") if x.ndim else str(x.numpy())


def _text(x: Any, separator: str, head: str) -> str:
    is_long = x.size > numpy.get_printoptions()["threshold"]
    values = _ends(x, x.ndim - 1) if is_long else x.numpy()
    threshold = 0 if is_long else values.size
    text: str = numpy.array2string(
        values, None, None, None, separator, head, threshold=threshold, edgeitems=EDGE
    )
    return text


def _ends(x: Any, axis: int) -> Any:
    """Return the elements at the ends of dimensions up to `axis`: no more are copied."""
    if axis < 0:
        return x.numpy()
    if x.shape[axis] <= 2 * EDGE:
        return _ends(x, axis - 1)
    before = (slice(None),) * axis
    parts = [slice(None, EDGE + 1), slice(-EDGE, None)]
    return numpy.concatenate([_ends(x[(*before, part)], axis - 1) for part in parts], axis=axis)
