# SPDX-License-Identifier: Apache-2.0
"""Random valid and invalid calls of several threads on a GPU that read each other's results."""

import random
import re
import threading
from collections.abc import Callable

import cuplug
import numpy as np

INDEX = re.compile(r"index (\d+) (?:at position|is out)")
N_CALLERS = 4
N_STEPS = 60


class Caller(threading.Thread):
    """A thread that must receive its own faults, and the faults of arrays that it reads."""

    def __init__(self, number, pick, plain, source, made, make_stream):
        super().__init__()
        self.random = random.Random(number)
        self.number, self.pick, self.plain, self.source = number, pick, plain, source
        self.made, self.streams = made, [None, make_stream(), make_stream()]
        self.untold: set[int] = set()
        self.problems: list[str] = []

    def tell(self, function: Callable, causes=frozenset(), is_read=False):
        """Return a function's result. Calls raise faults of this thread, reads also `causes`."""
        while True:
            try:
                result = function()
            except IndexError as error:
                seen = int(INDEX.search(str(error))[1])
                is_cause = is_read and seen in causes
                if seen not in self.untold and not is_cause:
                    self.problems.append(f"{seen}, expected {self.untold} or {causes}")
                    return None
                self.untold.discard(seen)
                if is_cause:
                    return None
            else:
                if is_read and causes:
                    self.problems.append(f"a read of {causes} raised nothing")
                return result

    def index_of(self, *values: int):
        return self.tell(lambda: cuplug.asarray(np.array(values), device="cuda"))

    def step(self, k: int):
        stream = self.random.choice(self.streams)
        array, causes = self.random.choice(self.made)
        what = self.random.random()
        if what < 0.25:
            wrong = 10000 + 1000 * self.number + k
            index = self.index_of(0, wrong)
            result = self.tell(lambda: self.pick(self.source, index, stream=stream))
            self.untold.add(wrong)
            self.made.append((result, frozenset([wrong])))
        elif what < 0.5:
            self.made.append((self.tell(lambda: self.plain(array, stream=stream)), causes))
        elif what < 0.7:
            index = self.index_of(k, 1)
            result = self.tell(lambda: self.pick(self.source, index, stream=stream))
            self.made.append((result, frozenset()))
        else:
            self.tell(lambda: array.numpy(), causes, True)

    def run(self):
        for k in range(N_STEPS):
            self.step(k)
        self.tell(lambda: self.plain(self.source).numpy())  # waits for the calls on all its streams
        if self.untold:
            self.problems.append(f"not told of {self.untold}")


def run(pick: Callable, plain: Callable, source, make_stream: Callable) -> None:
    """Make threads call an operator that selects elements of a source, and one with one array."""
    made = [(plain(source), frozenset()) for _ in range(4)]
    callers = [
        Caller(number, pick, plain, source, made, make_stream) for number in range(N_CALLERS)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not [problem for caller in callers for problem in caller.problems]
    assert all(fault_of(array) in (causes or [None]) for array, causes in made)
    cuplug.synchronize()


def fault_of(array) -> int | None:
    """Return the index in the fault that reading an array raises; None without a fault."""
    try:
        array.numpy()
    except IndexError as error:
        return int(INDEX.search(str(error))[1])
    return None
