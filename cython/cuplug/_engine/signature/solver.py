# SPDX-License-Identifier: Apache-2.0
"""Values for the names of a signature that satisfy its conditions, close to the requested ones.

The search uses three facts about a condition: the names that it reads, whether it holds for known
values, and the interval that it allows for a name. It does not depend on the grammar.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, product
from random import Random
from typing import Any, NamedTuple

from cuplug._engine.signature.evaluate import LOOP, interval, shape_of
from cuplug._engine.signature.signature import Parameter, Signature
from cuplug._engine.signature.steps import Condition

__all__ = ["Names", "Unsolved", "element_range", "solve"]

Names = dict[str, Any]
Limits = tuple[float, float]

ATTEMPTS = 4  # later ones in another order, from other wishes
MAX_TRIED = 1500  # values in each attempt
SMALL = 64  # also try multiples of wishes below it, for larger sizes with a common factor
MAX_NUMBERS = 10  # numbers that are combined with each other
TILE = 31  # elements that arrays repeat if they are too large for random ones
LARGEST = 1 << 62
MOST = 1 << 15  # the width of the range of an array's elements, if it has only one end
MAX_ITEMS = 4  # items of a list, or dimensions of a group
_NUMBER = re.compile(r"\b\d+\b")


class Unsolved(ValueError):
    """No values were found; the message names the conditions."""


class Rule(NamedTuple):
    """A condition, or the requirement that no size of an array is negative."""

    text: str
    names: frozenset[str]
    holds: Callable[[Names], bool]


def element_range(
    signature: Signature, x: Parameter, names: Mapping[str, Any]
) -> tuple[int, int] | None:
    """Return the smallest and the largest element of an array; None if no condition names it.

    They are integers, also for floats: the integers in their range.
    """
    if not any(condition.element == x.name != "" for condition in signature.ranges):
        return None
    ends = interval(signature, x.name, names)
    low, high = (max(-LARGEST, min(end, LARGEST)) for end in ends)  # also infinities
    first = 0 if low == -LARGEST and high >= 0 else math.ceil(max(low, high - MOST))
    return first, math.floor(min(high, first + MOST))


def solve(
    signature: Signature,
    fixed: Mapping[str, Any],
    wishes: Mapping[str, Any],
    limits: Mapping[str, Limits] | None = None,
    accepts: Callable[[Names], bool] = lambda names: True,
) -> Names:
    """Return values of all names that satisfy the conditions of a signature.

    Parameters
    ----------
    signature : Signature
    fixed : dict
        Values that do not change, by name.
    wishes : dict
        Values to start from: int, float, bool, tuples (sizes of a group, items of a list of
        arrays) and lists of numbers. A name that no condition restricts keeps its wish.
    limits : dict, optional
        The smallest and the largest value of names; by default, 0 and infinity.
    accepts : callable, optional
        Returns False to reject values that satisfy all conditions.

    Raises
    ------
    Unsolved
        No values were found. The message names the conditions that no value satisfied.
    """
    rules = _rules(signature, fixed.keys() | wishes.keys())
    search = _Search(signature, rules, limits or {}, accepts)
    random = Random(0)
    for attempt in range(ATTEMPTS):
        start = dict(wishes)
        if attempt:
            start = {name: _moved(x, random) for name, x in wishes.items()}
        found = search.run(fixed, start, attempt)
        if found is not None:
            return {**dict.fromkeys(wishes), **found}  # in the order of the wishes
    raise Unsolved(f"{signature.name}: no values satisfy {search.unmet()}")


def _moved(x: Any, random: Random) -> Any:
    return x + random.randrange(2 * SMALL) if type(x) is int else x


def _rules(signature: Signature, known: set[str]) -> list[Rule]:
    rules = [
        Rule(condition.text, frozenset(condition.names) & known, partial(_holds, condition))
        for condition in signature.ranges
        if not condition.element
    ]
    for x in (*signature.parameters, *signature.outputs):
        computed = [value for _, value in x.dims if not isinstance(value, int)]
        if computed:
            names = frozenset(name for value in computed for name in value.names) & known
            sizes = [v for k, v in x.dims if k in ("named", "variadic") and isinstance(v, int)]
            numbers = {signature.dim_names[v] for v in sizes}
            text = f"{x.name or 'output'}[{signature.shape(x)}] >= 0"
            rules.append(Rule(text, names | numbers, partial(_has_shape, signature, x)))
    return rules


def _holds(condition: Condition, names: Names) -> bool:
    try:
        return bool(condition.holds(names))
    except (LookupError, TypeError):
        return False


def _has_shape(signature: Signature, x: Parameter, names: Names) -> bool:
    try:
        shape = shape_of(signature, x, {LOOP: ()} | names)
    except (ArithmeticError, LookupError, TypeError):
        return False
    return min(shape, default=0) >= 0


class _Search:
    """A depth-first search over the names, which checks each rule once all its names are known."""

    def __init__(
        self,
        signature: Signature,
        rules: list[Rule],
        limits: Mapping[str, Limits],
        accepts: Callable[[Names], bool],
    ) -> None:
        self.signature, self.rules, self.limits, self.accepts = signature, rules, limits, accepts
        self.n_met = dict.fromkeys((rule.text for rule in rules), 0)
        self.failed: set[str] = set()
        self.names: Names = {}
        self.order: list[str] = []
        self.n_left = 0

    def run(self, fixed: Mapping[str, Any], wishes: Names, attempt: int) -> Names | None:
        """Return values, or None if MAX_TRIED values do not suffice."""
        ruled = set().union(*(rule.names for rule in self.rules))
        self.names = dict(fixed) | {k: x for k, x in wishes.items() if k not in ruled}
        self.wishes = wishes
        self.order = self._ordered([name for name in wishes if name in ruled], attempt)
        self.n_left = MAX_TRIED
        ready = [rule for rule in self.rules if rule.names <= self.names.keys()]
        return self.names if self._hold(ready) and self._from(0) else None

    def unmet(self) -> str:
        """Return the conditions that no value satisfied, else the ones that sometimes failed."""
        never = [text for text in self.failed if not self.n_met[text]]
        texts = [rule.text for rule in self.rules if rule.text in (never or self.failed)]
        return ", ".join(texts) or "the limit on memory"

    def _ordered(self, names: list[str], attempt: int) -> list[str]:
        """Sort names: first those in a finite interval. Later attempts shuffle them."""
        if attempt:
            return Random(attempt).sample(names, len(names))
        return sorted(names, key=lambda name: math.isinf(max(map(abs, self._interval(name)))))

    def _from(self, depth: int) -> bool:
        if depth == len(self.order):
            return self.accepts(self.names)
        name = self.order[depth]
        known = self.names.keys() | {name}
        rules = [rule for rule in self.rules if name in rule.names and rule.names <= known]
        for value in self._candidates(name):
            self.n_left -= 1
            if self.n_left < 0:
                break
            self.names[name] = value
            if self._hold(rules) and self._from(depth + 1):
                return True
        self.names.pop(name, None)
        return False

    def _hold(self, rules: list[Rule]) -> bool:
        """Return True if all rules hold, and count each rule that does."""
        failed = [rule.text for rule in rules if not rule.holds(self.names)]
        self.failed.update(failed)
        for rule in rules:
            self.n_met[rule.text] += rule.text not in failed
        return not failed

    def _interval(self, name: str) -> Limits:
        wish = self.wishes[name]
        least, most = self.limits.get(name, (0, math.inf))
        if isinstance(wish, (list, tuple, bool, complex)):
            return least, most
        low, high = interval(self.signature, name, self.names, 0 if type(wish) is float else 1)
        return max(low, least), min(high, most)

    def _candidates(self, name: str) -> Iterator[Any]:
        wish = self.wishes[name]
        if isinstance(wish, bool):
            return iter((wish, not wish))
        if isinstance(wish, (int, float)):
            low, high = self._interval(name)
            if low > high:
                self.failed |= {rule.text for rule in self.rules if name in rule.names}
        if isinstance(wish, float):
            return _floats(wish, low, high)
        numbers = self._numbers(name)
        if isinstance(wish, int):
            return _integers(wish, low, high, numbers)
        if isinstance(wish, (list, tuple)):
            return _sequences(wish, numbers)
        return iter((wish,))

    def _numbers(self, name: str) -> list[int]:
        """Return the numbers in conditions and known values; first, in conditions of a name."""
        found: dict[int, None] = {}
        for rule in sorted(self.rules, key=lambda rule: name not in rule.names):
            known = [self.names[x] for x in sorted(rule.names) if x in self.names]
            of_text = map(int, _NUMBER.findall(rule.text))
            found |= dict.fromkeys(chain(of_text, *map(_integers_in, known)))
        return [x for x in found if x >= 0][:MAX_NUMBERS]


def _integers_in(x: Any) -> list[int]:
    if isinstance(x, (list, tuple)):
        items = [item for item in x if type(item) is int]
        return [*items, len(x), math.prod(items)]
    return [int(x)] if isinstance(x, (int, float)) and math.isfinite(x) else []


def _clamped(wish: int, low: float, high: float) -> int:
    """Return a number of an interval: different ones for small wishes, an end for large ones."""
    if low <= wish <= high:
        return wish
    if high < low or wish >= SMALL:
        return int(max(low, min(wish, high)))
    if math.isinf(low):
        return int(high) - abs(wish)
    return int(low) + int(abs(wish) if math.isinf(high) else abs(wish) % (high - low + 1))


def _integers(wish: int, low: float, high: float, numbers: Sequence[int]) -> Iterator[int]:
    """Yield the wish, multiples of it, then other integers by their distance from it."""
    if high < low:
        return iter(())
    low, high = (x if math.isinf(x) else f(x) for f, x in ((math.ceil, low), (math.floor, high)))
    first = _clamped(wish, low, high)
    multiples = [first * k for k in numbers if k > 1 and first < SMALL]
    near = set(range(first - 4, first + 5)) | set(range(17))
    near |= {f(first, k) for k in numbers if k > 0 for f in (_rounded_down, _rounded_up)}
    near |= {x for pair in product(numbers, repeat=2) for x in _combined(*pair)}
    near |= {int(end) + k for end in (low, high) if math.isfinite(end) for k in range(-8, 9)}
    base = int(low) if math.isfinite(low) else 0
    random = Random(first)
    near |= {
        random.randint(base, int(min(high, base + (1 << bits))))
        for bits in range(4, 13)
        if base <= high
    }
    ordered = sorted(near, key=lambda x: (not x, abs(x - first), x))  # empty arrays last
    return (x for x in dict.fromkeys([first, *multiples, *ordered]) if low <= x <= high)


def _rounded_down(x: int, k: int) -> int:
    return x // k * k


def _rounded_up(x: int, k: int) -> int:
    return -(-x // k) * k


def _combined(a: int, b: int) -> Iterator[int]:
    yield from (a, a + 1, a - 1, -a, a + b, a - b, a * b)
    if b:
        yield from (a // b, a % b)


def _floats(wish: float, low: float, high: float) -> Iterator[float]:
    """Yield the wish, then floats inside an interval, then its ends."""
    if low <= wish <= high:
        yield wish
    ends = [x for x in (low, high) if math.isfinite(x)]
    if len(ends) == 2 and low <= high:
        yield from (low + (high - low) * part / 16 for part in (8, 4, 12, 1, 15))
    yield from (low + x for x in (1.0, 0.5) if math.isfinite(low) and low + x <= high)
    yield from (high - x for x in (1.0, 0.5) if math.isfinite(high) and low <= high - x)
    yield from ends


def _sequences(wish: Sequence[Any], numbers: Sequence[int]) -> Iterator[Any]:
    """Yield the wish, then sequences of other lengths with its items and with `numbers`."""
    of = tuple if isinstance(wish, tuple) else list
    items = list(wish) or [1]
    yield of(wish)
    usual = {*range(MAX_ITEMS + 1), *(k for k in numbers if k <= 2 * MAX_ITEMS)}
    lengths = sorted(usual, key=lambda n: abs(n - len(wish)))
    for n in lengths:
        yield of((items * (n or 1))[:n])
    numbers = sorted(numbers, key=lambda x: not x)  # empty arrays last
    if type(items[0]) is int:
        for n, k in product(lengths, (1, *numbers)):
            yield of([k] * n)
        for n in (n for n in lengths if n):
            for at, x in product(range(n), {y for k in numbers for y in (k, k * items[0])}):
                changed = (items * n)[:n]
                changed[at] = x
                yield of(changed)
