# SPDX-License-Identifier: Apache-2.0
"""Interleaved timing of contenders that do the same work, and targets for them."""

from __future__ import annotations

import os
import time
import timeit
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

NS_PER_UNIT = {"us": 1e3, "ms": 1e6}
BATCH_NS = 500_000
MAX_ROUNDS = 301
SETTLED_S = 0.01  # afterwards, the worker threads of the previous contender no longer spin
STILL, STILL_S = ("numpy", "cuplug"), 0.001  # libraries whose threads, if any, sleep immediately
PART = 1 << 20  # elements that are compared at once
LONG_NS, FEW_ROUNDS = 100_000_000, 3  # batches of this length vary little


class Skip(Exception):
    """A reason why something cannot be measured here."""


@dataclass(frozen=True)
class Contender:
    """One way of doing the work.

    `time_ns(number)` does the work `number` times and returns the total time in nanoseconds. Then
    `result()` returns the computed result, as a NumPy array.
    """

    time_ns: Callable[[int], float]
    result: Callable[[], np.ndarray] | None = None


def statement(text: str, result: Callable[[], np.ndarray] | None = None, **names: Any) -> Contender:
    """Return a contender that runs Python source in a loop, with the garbage collector off."""
    timer = timeit.Timer(text, timer=time.perf_counter_ns, globals=names)
    return Contender(timer.timeit, result)


def alike(
    seen: np.ndarray,
    wanted: np.ndarray,
    compare: Callable[[np.ndarray, np.ndarray], bool] = np.array_equal,
) -> bool:
    """Return whether two arrays have one shape and all parts compare equal. Uses all cores."""
    if seen.shape != wanted.shape:
        return False
    parts = [np.array_split(x.reshape(-1), max(1, x.size // PART)) for x in (seen, wanted)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return all(pool.map(compare, *parts))


@dataclass(frozen=True)
class Target:
    """The limit of a contender's median: factor x the best of the references + extra.

    Without references, `extra` is the limit, in the comparison's unit. With a `control` of two
    contenders, the ratio of their medians is a further factor.
    """

    contender: str
    text: str
    references: tuple[str, ...] = ()
    factor: float = 1.0
    extra: float = 0.0
    control: tuple[str, str] | tuple[()] = ()

    def limit(self, medians: dict[str, float]) -> float | None:
        """Return the limit in this run, or None if no reference was measured."""
        if not self.references:
            return self.extra
        measured = [medians[name] for name in self.references if name in medians]
        if not measured or any(name not in medians for name in self.control):
            return None
        factor = self.factor
        if self.control:
            factor *= medians[self.control[0]] / medians[self.control[1]]
        return factor * min(measured) + self.extra

    def judge(self, medians: dict[str, float]) -> dict[str, Any]:
        """Return the target as plain data, with its limit and whether it is reached."""
        limit = self.limit(medians)
        reached = None
        if limit is not None and self.contender in medians:
            reached = medians[self.contender] <= limit
        absent = [name for name in (*self.references, *self.control) if name not in medians]
        return asdict(self) | {"limit": limit, "reached": reached, "absent_references": absent}


def explain(error: BaseException) -> str:
    """Return the reason why a contender was not measured, in one line."""
    if isinstance(error, Skip):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        return f"not installed ({error})"
    lines = str(error).strip().splitlines() or [""]
    return f"failed: {type(error).__name__}: {lines[0]}"[:200]


@dataclass
class Comparison:
    """Contenders that do the same work, timed in turn, round by round.

    `number` is the number of repetitions in a batch; if None, it is chosen so that a batch takes
    `batch_ns`. `synchronize` runs before and after each batch, untimed, and `pause_s` passes
    between contenders. `expected` is the result that every contender must compute, and `n_bytes`
    the minimum of bytes that the work moves. `is_anew` means that nothing of a run is kept for the
    next: the first one, whose result is checked, is also timed.
    """

    title: str
    unit: str
    reference: str
    targets: Sequence[Target] = ()
    expected: np.ndarray | None = None
    n_bytes: int | None = None
    number: int | None = None
    batch_ns: int = BATCH_NS
    synchronize: Callable[[], None] = lambda: None
    pause_s: float = 0.0
    is_anew: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    contenders: dict[str, Contender] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    shortest_ns: dict[str, float] = field(default_factory=dict)
    samples: dict[str, list[float]] = field(default_factory=dict)
    last: str = ""  # the contender that ran last

    def add(self, name: str, prepare: Callable[[], Contender]) -> None:
        """Prepare a contender, run it once and check its result; note the reason if that fails."""
        self.order.append(name)
        try:
            contender = prepare()
            self._pause(name)
            self.shortest_ns[name] = first_ns = self._batch(contender, 1)
            self._check(contender)
            self.samples[name] = [first_ns / NS_PER_UNIT[self.unit]] if self.is_anew else []
            self.numbers[name] = self.number or self._calibrate(name, contender)
            self.contenders[name] = contender
        except Exception as error:
            self.reasons[name] = explain(error)
            self.samples.pop(name, None)

    def measure(self, seconds: float, min_rounds: int = 5) -> None:
        """Time all contenders in turn until the time is over, each `min_rounds` times or more.

        The order rotates with each round. For slow contenders, half the rounds suffice, and one
        round if another contender takes a fifth of the time.
        """
        names = list(self.contenders)
        deadline = time.monotonic() + seconds
        few_rounds = max(FEW_ROUNDS, (min_rounds + 1) // 2)
        for k in range(MAX_ROUNDS if names else 0):
            is_over = time.monotonic() > deadline
            if is_over and k >= min_rounds:
                return
            turn = k % len(names)
            for name in names[turn:] + names[:turn]:
                if not self._takes_long(name, few_rounds if is_over else MAX_ROUNDS):
                    self._sample(name)

    def as_dict(self) -> dict[str, Any]:
        """Return settings, statistics, reasons and judged targets as plain data."""
        results = {name: self._statistics(name) for name, s in self.samples.items() if s}
        medians = {name: row["median"] for name, row in results.items()}
        names = ("title", "unit", "reference", "n_bytes", "settings", "order", "reasons")
        facts = {name: getattr(self, name) for name in names}
        return facts | {"results": results, "targets": [t.judge(medians) for t in self.targets]}

    def _batch(self, contender: Contender, number: int) -> float:
        self.synchronize()
        elapsed_ns = contender.time_ns(number)
        self.synchronize()
        return elapsed_ns

    def _check(self, contender: Contender) -> None:
        if self.expected is None or contender.result is None:
            return
        seen = contender.result()
        if seen.dtype != self.expected.dtype or not alike(seen, self.expected):
            raise ArithmeticError("its result differs from the expected one")

    def _calibrate(self, name: str, contender: Contender) -> int:
        """Return the number of calls in a batch, from the shorter of two: the first may be cold.

        The first timing of a long call is used.
        """
        number, most = 1, 1 << 20
        while number < most:
            elapsed_ns = self._batch(contender, number)
            if elapsed_ns < LONG_NS:
                elapsed_ns = min(elapsed_ns, self._batch(contender, number))
            self.shortest_ns[name] = min(elapsed_ns / number, self.shortest_ns[name])
            if elapsed_ns >= max(LONG_NS, self.batch_ns) and number == 1:
                self.samples[name].append(elapsed_ns / NS_PER_UNIT[self.unit])
            if elapsed_ns >= self.batch_ns:
                break
            enough = int(1.1 * number * self.batch_ns / max(elapsed_ns, 1))
            number = min(max(enough, 2 * number), 50 * number, most)
        return number

    def _takes_long(self, name: str, few_rounds: int) -> bool:
        """Return whether a contender is so slow that it has been timed often enough."""
        shortest_ns, n_seen = self.shortest_ns[name], len(self.samples[name])
        if shortest_ns * self.numbers[name] < LONG_NS:
            return False
        is_far = shortest_ns > 5 * min(self.shortest_ns[x] for x in self.contenders)
        return n_seen >= (1 if is_far else few_rounds)

    def _pause(self, name: str) -> None:
        """Wait until the threads of the previous contender have stopped spinning."""
        time.sleep(min(self.pause_s, STILL_S) if self.last.startswith(STILL) else self.pause_s)
        self.last = name

    def _settle(self, name: str) -> None:
        """Wait for the pause.

        Caches are cold afterwards, and an untimed call warms them if it is short.
        """
        self._pause(name)
        if self.shortest_ns[name] < self.pause_s * 1e9:
            self._batch(self.contenders[name], 1)

    def _sample(self, name: str) -> None:
        if name in self.reasons:
            return
        try:
            self._settle(name)
            elapsed_ns = self._batch(self.contenders[name], self.numbers[name])
        except Exception as error:
            self.reasons[name] = explain(error)
            self.samples[name].clear()
            return
        each_ns = elapsed_ns / self.numbers[name]
        self.shortest_ns[name] = min(each_ns, self.shortest_ns[name])
        self.samples[name].append(each_ns / NS_PER_UNIT[self.unit])

    def _statistics(self, name: str) -> dict[str, float]:
        samples = self.samples[name]
        low, q1, median, q3 = (float(v) for v in np.percentile(samples, [0, 25, 50, 75]))
        row: dict[str, float] = {"median": median, "q1": q1, "q3": q3, "minimum": low}
        row |= {"n": len(samples), "number": self.numbers[name]}
        if self.n_bytes:
            row["gb_per_s"] = self.n_bytes / (median * NS_PER_UNIT[self.unit])
        return row
