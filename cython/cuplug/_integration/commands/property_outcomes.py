# SPDX-License-Identifier: Apache-2.0
"""An operator under test: records whether it accepts a call, and guards its outputs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np

from cuplug._engine.arguments.handle import Handle
from cuplug._engine.call.operator import Operator
from cuplug._engine.call.output_tuples import all_outputs
from cuplug._engine.host.guarded_memory import damage, zones

REFUSALS = (ValueError, TypeError, IndexError, MemoryError)
LOADING = "loading"  # the step before the first call; reported only if it fails
LATE = "not finished"  # start of the note about properties skipped for lack of time
NUMBER = re.compile(r"-?\d[\w.+-]*")


class Fresh:
    """An argument created for each call: a handle, or the address of memory.

    Attributes
    ----------
    code : str
        Python code that creates it.
    """

    def __init__(self, make: Callable[[str], Any], code: str) -> None:
        self.make, self.code = make, code


def made_for(arguments: dict[str, Any], device: str, keep: ExitStack) -> dict[str, Any]:
    """Return arguments for one call on a device. `keep` closes their handles."""

    def value(x: Any) -> Any:
        if not isinstance(x, Fresh):
            return x
        made = x.make(device)
        if isinstance(made, Handle):
            keep.callback(made.close)
            return made
        keep.push(lambda *_: made is None)  # the call refers to the memory until it ends
        return address_of(made)

    return {name: value(x) for name, x in arguments.items()}


def address_of(x: Any) -> Any:
    """Return the address of an array, and other objects unchanged."""
    for name in ("__cuda_array_interface__", "__array_interface__"):
        interface = getattr(x, name, None)
        if interface is not None:
            return interface["data"][0]
    return x


class Tried:
    """An operator as properties call it.

    Attributes
    ----------
    rejected : dict
        Messages that reject layouts, by the names of the layouts.
    answer : str or None
        The first call's answer for an example: "" if it was accepted, otherwise the message; None
        before the call.
    """

    def __init__(self, operator: Operator, device: str = "cpu") -> None:
        self.operator, self.device = operator, device
        self.name, self.path, self.signatures = operator.name, operator.path, operator.signatures
        self.answer: str | None = None
        self.rejected: dict[str, str] = {}

    def __call__(self, **arguments: Any) -> Any:
        """Call the operator."""
        try:
            with ExitStack() as keep, zones():
                given = made_for(arguments, arguments.get("device", self.device), keep)
                result = self.operator(**(all_outputs(self.operator) | given))
        except REFUSALS as error:
            self._note(str(error))
            raise
        self._note("")
        return result

    def _note(self, answer: str) -> None:
        if self.answer is None:
            self.answer = answer


class Answers:
    """The answers of an operator to the examples of a property."""

    def __init__(self) -> None:
        self.n_calls = self.n_accepted = 0
        self.refusals: Counter[str] = Counter()
        self._shown: dict[str, str] = {}

    def add(self, answer: str) -> None:
        """Count an answer. Messages that differ only in numbers count as one."""
        self.n_calls += 1
        if not answer:
            self.n_accepted += 1
            return
        shown = self._shown.setdefault(NUMBER.sub("#", answer), answer)
        self.refusals[shown] += 1


def check_beside(outputs: list[np.ndarray[Any, Any]]) -> None:
    """Check that nothing was written next to outputs that were allocated for a call."""
    for x in outputs:
        side = damage(x) if isinstance(x, np.ndarray) else ""
        assert not side, f"memory {side} an output was written"
