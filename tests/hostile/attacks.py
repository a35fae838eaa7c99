# SPDX-License-Identifier: Apache-2.0
"""The list of attacks, and their common code. An attack makes many attempts in its own process.

It raises an exception for a wrong result. Its process must not crash, and must end in time. Random
choices depend only on its seed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

# A function of random numbers and an empty folder that returns its number of attempts.
Attack = Callable[[Random, Path], int]
ATTACKS: dict[str, Attack] = {}


def attack(function: Attack) -> Attack:
    """Add a function to the list, by its name."""
    ATTACKS[function.__name__] = function
    return function


@contextlib.contextmanager
def refusals(*classes: type[BaseException]) -> Iterator[None]:
    """Accept errors of these classes, with which cuplug rejects input. They must have a message."""
    try:
        yield
    except classes as error:
        if not str(error):
            raise AssertionError(f"{type(error).__name__} without a sentence") from error
