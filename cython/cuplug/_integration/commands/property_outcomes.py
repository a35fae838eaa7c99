# SPDX-License-Identifier: Apache-2.0
"""An operator on trial: whether it takes a call is noted, and its outputs lie between zones."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np

from cuplug._engine.call.operator import Operator
from cuplug._engine.host.guarded_memory import damage, zones

REFUSALS = (ValueError, TypeError, IndexError, MemoryError)
NUMBER = re.compile(r"-?\d[\w.+-]*")


class Tried:
    """An operator as properties call it.

    Attributes
    ----------
    answer : str or None
        What the operator said to the first call of an example: "" where it took it, the sentence
        by which it was refused otherwise; None before that.
    """

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.name, self.path, self.signatures = operator.name, operator.path, operator.signatures
        self.answer: str | None = None

    def __call__(self, **arguments: Any) -> Any:
        """Call the operator."""
        try:
            with zones():
                result = self.operator(**arguments)
        except REFUSALS as error:
            self._note(str(error))
            raise
        self._note("")
        return result

    def _note(self, answer: str) -> None:
        if self.answer is None:
            self.answer = answer


class Answers:
    """What an operator said to the examples of a property."""

    def __init__(self) -> None:
        self.n_calls = self.n_accepted = 0
        self.refusals: Counter[str] = Counter()
        self._shown: dict[str, str] = {}

    def add(self, answer: str) -> None:
        """Count one; sentences that differ in numbers are one."""
        self.n_calls += 1
        if not answer:
            self.n_accepted += 1
            return
        shown = self._shown.setdefault(NUMBER.sub("#", answer), answer)
        self.refusals[shown] += 1


def check_beside(outputs: list[np.ndarray[Any, Any]]) -> None:
    """Check that nothing was written beside outputs that were made for a call."""
    for x in outputs:
        side = damage(x) if isinstance(x, np.ndarray) else ""
        assert not side, f"memory {side} an output was written"
