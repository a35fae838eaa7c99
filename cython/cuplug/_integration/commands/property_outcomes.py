# SPDX-License-Identifier: Apache-2.0
"""An operator on trial: whether it takes a call is noted, and its outputs lie between zones."""

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
LOADING = "loading"  # what comes before the first call; reported only if it fails
LATE = "not finished"  # the first words about what a budget left out
NUMBER = re.compile(r"-?\d[\w.+-]*")


class Fresh:
    """An argument that is made for each call: a handle, or the memory at an address.

    Attributes
    ----------
    code : str
        Python that makes it.
    """

    def __init__(self, make: Callable[[str], Any], code: str) -> None:
        self.make, self.code = make, code


def made_for(arguments: dict[str, Any], device: str, keep: ExitStack) -> dict[str, Any]:
    """Return arguments for one call on a device; `keep` closes the handles among them."""

    def value(x: Any) -> Any:
        if not isinstance(x, Fresh):
            return x
        made = x.make(device)
        if isinstance(made, Handle):
            keep.callback(made.close)
            return made
        keep.push(lambda *_: made is None)  # it refers to the memory until the call has ended
        return address_of(made)

    return {name: value(x) for name, x in arguments.items()}


def address_of(x: Any) -> Any:
    """Return the address of an array, or what is not an array as it is."""
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
        The sentences by which it refused layouts, by the names of these.
    answer : str or None
        What the operator said to the first call of an example: "" where it took it, the sentence
        by which it was refused otherwise; None before that.
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
