# SPDX-License-Identifier: Apache-2.0
"""Formulas and conditions as the core parsed them, computed for numbers of any type.

The core creates the steps, and `value.c` runs them on 64-bit integers. This module runs the same
steps on Python numbers, with the same errors, and on symbols of frameworks, which need only the
arithmetic operators.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["Condition", "Extent", "Formula", "NoValue", "Slice"]

# `cuplug_step_kind` in <internal/formula.h>
NUMBER, SIZE, COUNT, SCALAR, ADD, SUBTRACT, MULTIPLY, DIVIDE, REST, LEAST, GREATEST = range(11)
NEGATE, REAL, NDIM, PRODUCT, ITEM, LENGTH, LIST_ITEM, LIST_PRODUCT, ELEMENT = range(11, 20)
# `cuplug_relation` in <internal/signature.h>
NONE, LESS, AT_MOST, EQUAL, UNEQUAL, AT_LEAST, GREATER, IN = range(8)
Side = tuple[int, "Formula"]  # the relation to the previous side; NONE begins an alternative
Step = tuple[int, str, Any]  # kind, the name that it reads or "", value

_OPERATIONS: dict[int, Callable[[Any, Any], Any]] = {
    ADD: operator.add,
    SUBTRACT: operator.sub,
    MULTIPLY: operator.mul,
    DIVIDE: operator.floordiv,
    REST: operator.mod,
    LEAST: lambda a, b: b if a > b else a,
    GREATEST: lambda a, b: a if a > b else b,
}
_RELATIONS: dict[int, Callable[[Any, Any], Any]] = {
    LESS: operator.lt,
    AT_MOST: operator.le,
    EQUAL: operator.eq,
    UNEQUAL: operator.ne,
    AT_LEAST: operator.ge,
    GREATER: operator.gt,
}
_LIMIT = 1 << 63


class NoValue(ArithmeticError):
    """A formula has no value; the message is the reason, as in the core."""


class Formula(NamedTuple):
    """A computed number. Formulas are equal if their texts are."""

    text: str
    at: int  # where it begins in the signature, in bytes
    steps: tuple[Step, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Formula) and self[::2] == other[::2]

    def __hash__(self) -> int:
        return hash(self.text)

    @property
    def names(self) -> set[str]:
        """The names that it reads."""
        return {name for _, name, _ in self.steps if name}

    def is_name(self, name: str) -> bool:
        """Return whether it is one name and nothing else."""
        return len(self.steps) == 1 and self.steps[0][1] == name

    def value(self, names: Mapping[str, Any]) -> Any:
        """Compute it from the values of names: numbers, or tuples of sizes or items.

        Raises
        ------
        NoValue
            The result does not exist, or the value of a name is unknown or None.
        """
        stack: list[Any] = []
        for kind, name, value in self.steps:
            if ADD <= kind <= GREATEST:
                b = stack.pop()
                stack[-1] = _combine(kind, stack[-1], b)
            elif kind == NEGATE:
                stack[-1] = _combine(SUBTRACT, 0, stack[-1])
            elif kind in (ITEM, LIST_ITEM):
                stack[-1] = _item(_known(names, name), stack[-1])
            elif name:
                stack.append(_read(kind, _known(names, name), value))
            else:
                stack.append(value)
        return stack[0]


class Slice(NamedTuple):
    """Some dimensions of a group, `*s[a:b]`, or the items of a list, `*shape`."""

    text: str
    at: int
    group: str
    begin: Formula  # without steps: from the first one
    end: Formula  # without steps: to the last one

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slice) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    @property
    def names(self) -> set[str]:
        """The names that it reads."""
        return {self.group} | self.begin.names | self.end.names

    def value(self, names: Mapping[str, Any]) -> Sequence[Any]:
        """Return its sizes; raises the same errors as `Formula.value`."""
        begin, end = (x.value(names) if x.steps else None for x in (self.begin, self.end))
        try:
            return tuple(_known(names, self.group))[begin:end]
        except TypeError as error:  # a symbol
            raise NoValue(str(error)) from None


Extent = int | Formula | Slice  # of a dimension: its size or number, or how to compute the sizes


class Condition(NamedTuple):
    """A relation between numbers, `0 <= k <= n`, or alternatives of them."""

    text: str
    at: int
    sides: tuple[Side, ...]
    element: str  # the array whose name means one of its elements here, or ""

    @property
    def names(self) -> set[str]:
        """The names that it reads."""
        return {name for _, side in self.sides for name in side.names}

    @property
    def alternatives(self) -> list[tuple[Side, ...]]:
        """The alternatives, which `or` separates."""
        begins = [k for k, (relation, _) in enumerate(self.sides) if not relation]
        ends = [*begins[1:], len(self.sides)]
        return [self.sides[begin:end] for begin, end in zip(begins, ends, strict=True)]

    def holds(self, names: Mapping[str, Any]) -> bool:
        """Return whether it holds, as it does if a name is None."""
        if any(names.get(name, 0) is None for name in self.names):
            return True
        return any(_chain_holds(sides, names) for sides in self.alternatives)


def _chain_holds(sides: Sequence[Side], names: Mapping[str, Any]) -> bool:
    """Return whether all relations hold; a relation with a side without a value does not."""
    before: Any = 0
    chain = [side for side in sides if side[0] != IN]
    try:
        for relation, side in chain:
            value = side.value(names)
            if relation and not _RELATIONS[relation](*_alike(before, value)):
                return False
            before = value
    except NoValue:
        return False
    members = [side for relation, side in sides if relation == IN]
    return not members or any(_is_member(before, side, names) for side in members)


def _is_member(value: Any, side: Formula, names: Mapping[str, Any]) -> bool:
    try:
        return bool(operator.eq(*_alike(value, side.value(names))))
    except NoValue:
        return False


def _known(names: Mapping[str, Any], name: str) -> Any:
    found = names.get(name)
    if found is None:
        raise NoValue(f"{name} is not known")
    return found


def _read(kind: int, found: Any, member: int) -> Any:
    """Return the number that a step reads from the value of a name."""
    if kind in (NDIM, LENGTH):
        return len(found)
    if kind in (PRODUCT, LIST_PRODUCT):
        return _product(found)
    if not isinstance(found, int):
        return found
    is_real = kind == SCALAR and (member == 2 or (member == 1 and found >= _LIMIT))
    return float(found) if is_real else int(found)


def _product(sizes: Sequence[Any]) -> Any:
    if any(type(size) is int and not size for size in sizes):
        return 0
    product: Any = 1
    for size in sizes:
        product = _combine(MULTIPLY, product, size)
    return product


def _item(items: Sequence[Any], index: Any) -> Any:
    if isinstance(index, float):
        raise NoValue("its index is not an integer")
    try:
        found = items[index]
    except IndexError:
        raise NoValue("its index is out of range") from None
    except TypeError as error:  # a symbol
        raise NoValue(str(error)) from None
    return int(found) if isinstance(found, bool) else found


def _alike(a: Any, b: Any) -> tuple[Any, Any]:
    """Return both as floats if one is, as the core compares and adds them."""
    if isinstance(a, float) and isinstance(b, int):
        return a, float(b)
    return (float(a), b) if isinstance(b, float) and isinstance(a, int) else (a, b)


def _combine(kind: int, a: Any, b: Any) -> Any:
    if kind in (LEAST, GREATEST):
        first, second = _alike(a, b)
        return a if _OPERATIONS[kind](first, second) is first else b
    a, b = _alike(a, b)
    if kind in (DIVIDE, REST):
        if isinstance(a, float) or isinstance(b, float):
            raise NoValue("// and % require integers")
        if type(b) is int and not b:
            raise NoValue("it divides by zero")
    result = _OPERATIONS[kind](a, b)
    if type(result) is int and not -_LIMIT <= result < _LIMIT:
        raise NoValue("its value exceeds 64 bits")
    return result
