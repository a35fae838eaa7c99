# SPDX-License-Identifier: Apache-2.0
"""Cumulative probabilities, in which uniform numbers are searched.

They are computed on the host by products, quotients and sums in a fixed order, so that the same
numbers are drawn on each machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from cuplug.array_api.conversion import asarray

MAX_VARIANCE = 1 << 32  # Tables with up to 1.3 million sums.

Sums = tuple[Any, int]


@lru_cache(maxsize=8)
def poisson_sums(mean: float) -> Sums:
    """Return P(X <= k) of a Poisson distribution from some k on, and this k."""
    return _sums(int(mean), mean, 1 << 62, lambda k: mean / k)


@lru_cache(maxsize=8)
def binomial_sums(n: int, p: float) -> Sums:
    """Return P(X <= k) of a binomial distribution from some k on, and this k."""
    q = 1.0 - p
    mode = min(n, int((n + 1) * p))
    return _sums(mode, n * p * q, n, lambda k: (n + 1 - k) * p / (k * q))


def _sums(mode: int, variance: float, last: int, ratio: Callable[[Any], Any]) -> Sums:
    """Return the sums that differ from 0 and 1 by more than 2**-54, from P(k) / P(k - 1)."""
    reach = int(9.5 * math.sqrt(variance)) + 60
    below = np.arange(mode, max(mode - reach, 0), -1, dtype=float)
    above = np.arange(mode + 1, min(mode + reach, last) + 1, dtype=float)
    down = np.cumprod(1.0 / ratio(below)) if variance else np.zeros(below.size)
    up = np.cumprod(ratio(above)) if variance else np.zeros(above.size)
    sums = np.cumsum(np.concatenate([down[::-1], [1.0], up]))
    sums /= sums[-1]
    begin, end = np.searchsorted(sums, [2.0**-54, 1.0])
    return sums[begin : end + 1], mode - below.size + int(begin)


def probabilities(p: Any, n: int) -> Any:
    """Return the probabilities of n choices, on the host in float64."""
    given = asarray(p, device="cpu").numpy()
    if given.shape != (n,):
        raise ValueError(f"choice: p: got shape {given.shape}, expected ({n},), as a")
    if given.dtype.kind not in "biuf":
        raise TypeError(f"choice: p: got {given.dtype}, expected real numbers")
    found = given.astype(float)
    if not (found >= 0).all():  # or NaN
        raise ValueError(f"choice: p: got {found.min()}, expected probabilities of at least 0")
    precision = given.dtype if given.dtype.kind == "f" else found.dtype
    total = math.fsum(found)
    if not abs(total - 1) <= math.sqrt(np.finfo(precision).eps):
        raise ValueError(f"choice: p: got a sum of {total}, expected 1; divide by it")
    return found
