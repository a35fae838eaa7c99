# SPDX-License-Identifier: Apache-2.0
"""Arguments of generators that are not arrays: seeds and numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def seed_sequence(seed: Any) -> np.random.SeedSequence:
    """Return the seed sequence of a seed."""
    try:
        return np.random.SeedSequence(seed)
    except (TypeError, ValueError) as error:
        wanted = "an integer of at least 0, a sequence of them, a SeedSequence or None"
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"seed: got {seed!r}, expected {wanted}") from None


def number(what: str, value: Any) -> float:
    """Return a number as a float."""
    try:
        if not isinstance(value, (str, bytes)):
            return float(value)
    except (TypeError, ValueError):
        pass
    except OverflowError:
        raise ValueError(f"{what}: got an integer beyond float64, expected a number") from None
    raise TypeError(f"{what}: got {type(value).__name__}, expected a number")


def finite(what: str, value: Any, at_least: float = -math.inf) -> float:
    """Return a finite number."""
    found = number(what, value)
    if not at_least <= found < math.inf or found == -math.inf:
        wanted = "a finite number" + (" of at least 0" if at_least == 0 else "")
        raise ValueError(f"{what}: got {value}, expected {wanted}")
    return found


def has_parts(x: Any) -> bool:
    """Return whether NumPy converts an argument to an array with dimensions."""
    try:
        return type(x) is not int and np.ndim(x) > 0
    except ValueError:  # rows of unequal length; asarray reports them
        return True
