# SPDX-License-Identifier: Apache-2.0
"""The list of attacks, and what they share. An attack tries many things in a process of its own.

It raises an exception for a wrong result; its process may not die, and must end in time. What is
drawn depends on its seed alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

# A function of random numbers and an empty folder that returns how many things it has tried.
Attack = Callable[[Random, Path], int]
ATTACKS: dict[str, Attack] = {}


def attack(function: Attack) -> Attack:
    """Add a function to the list, by its name."""
    ATTACKS[function.__name__] = function
    return function


@contextlib.contextmanager
def refusals(*classes: type[BaseException]) -> Iterator[None]:
    """Let errors of these classes pass: cuplug has refused. They must say something."""
    try:
        yield
    except classes as error:
        if not str(error):
            raise AssertionError(f"{type(error).__name__} without a sentence") from error
