# SPDX-License-Identifier: Apache-2.0
"""What an operator is in PyTorch, once it is registered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cuplug.call.operator import Operator
from cuplug.frameworks.torch_schema import Overload
from cuplug.signature.signature import Signature

__all__ = ["Entry", "Registered"]


@dataclass(frozen=True)
class Registered:
    """An operator, and what it is in PyTorch."""

    operator: Operator
    rows: tuple[Signature, ...]
    packet: Any  # torch.ops.cuplug.<name>
    spelled: dict[str, str]  # the names of arguments that are others in PyTorch

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call it as PyTorch's operator, with the names of the signature."""
        if self.spelled and keywords:
            keywords = {self.spelled.get(name, name): x for name, x in keywords.items()}
        return self.packet(*args, **keywords)


@dataclass(frozen=True)
class Entry:
    """One of its overloads."""

    whole: Registered
    overload: Overload
    call: Any  # torch.ops.cuplug.<name>.<overload>

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of its arguments."""
        return tuple(x.name for x in self.overload.arguments)

    def named(self, args: Sequence[Any]) -> dict[str, Any]:
        """Return what is given, by name: None stands for what is left out."""
        return {name: x for name, x in zip(self.names, args, strict=False) if x is not None}
