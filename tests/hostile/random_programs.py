# SPDX-License-Identifier: Apache-2.0
"""Programs of several operations on arrays that share memory, run by cuplug and by NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import cuplug
import numpy as np
import pytest
from attacks import attack, refusals
from cuplug import array_api as xp

DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "int64", "uint64"]
DTYPES += ["float16", "float32", "float64", "complex64", "complex128"]
SIZES = [0, 1, 1, 2, 3, 5, 17]
STEPS = [None, 1, -1, 2, -2, 3]
N_KEPT = 8  # pairs of arrays
REFUSED = (TypeError, ValueError, IndexError)

Pair = tuple[Any, Any]  # a NumPy array and a cuplug array


class Program:
    """Pairs of arrays. The arrays of each must stay equal, whatever is done with other pairs."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.pairs: list[Pair] = []
        self.said: list[str] = []
        for _ in range(3):
            self.make()

    def make(self) -> None:
        """Add a new array, with its own memory."""
        shape = tuple(self.random.choice(SIZES) for _ in range(self.random.choice([0, 1, 2, 2, 3])))
        x = np.random.default_rng(self.random.getrandbits(32)).integers(0, 4, shape)
        x = x.astype(self.random.choice(DTYPES))
        y = cuplug.asarray(self.laid_out(x), device="cpu")
        x.flags.writeable = y.flags.writeable
        self.add(x, y)

    def laid_out(self, x: Any) -> Any:
        """Return a copy, or one that is not C-ordered, not aligned, or not writable."""
        way = self.random.randrange(5)
        if way == 0:
            return x.astype(x.dtype.newbyteorder(">"))
        if way == 1:
            beside = np.zeros(x.nbytes + 1, np.uint8)[1:]
            beside[:] = np.frombuffer(x.tobytes(), np.uint8)
            return beside.view(x.dtype).reshape(x.shape)
        copy = np.array(x, order=self.random.choice("CF"))
        copy.flags.writeable = way != 2
        return copy

    def add(self, x: Any, y: Any) -> None:
        """Add a pair; it replaces another one if there are many."""
        if len(self.pairs) == N_KEPT:
            self.pairs.pop(self.random.randrange(N_KEPT))
        self.pairs.append((x, y))

    def pick(self) -> Pair:
        """Return one of the pairs."""
        return self.random.choice(self.pairs)

    def pick_writable(self) -> Pair:
        """Return a pair that may be changed, after checking that others reject changes."""
        x, y = self.pick()
        if x.flags.writeable:
            return x, y
        with pytest.raises(ValueError, match="got a read-only array, expected a writable one"):
            y[...] = y
        self.make()
        return self.pick_writable()

    def key(self, shape: tuple[int, ...], has_arrays: bool) -> Any:
        """Return a key for an array of a shape, with positions in range."""
        items: list[Any] = []
        for n in shape:
            kind = self.random.random()
            if kind < 0.2 and n:
                items.append(self.random.randrange(-n, n))
            elif kind < 0.4 and n and has_arrays:
                items.append(
                    np.array(self.random.sample(range(n), self.random.randint(0, min(n, 3))))
                )
                items[-1] = items[-1].astype(int)  # also for an empty array
                has_arrays = False
            else:
                ends = [
                    self.random.choice([None, self.random.randint(-n - 1, n + 1)]) for _ in "ab"
                ]
                items.append(slice(*ends, self.random.choice(STEPS)))
        if self.random.random() < 0.2:
            items.insert(self.random.randint(0, len(items)), None)
        return (*items, ...) if self.random.random() < 0.2 else tuple(items)

    def check(self) -> None:
        """Compare all pairs."""
        for x, y in self.pairs:
            seen = y.numpy()
            if (x.shape, x.dtype) != (seen.shape, seen.dtype) or not np.array_equal(x, seen):
                raise AssertionError(
                    f"got {y!r}, expected {x!r} after " + "; ".join(self.said[-12:])
                )


def view(p: Program) -> None:
    """Add a view of an array."""
    x, y = p.pick()
    key = p.key(x.shape, False)
    key = key if ... in key else (*key, ...)  # a NumPy array, not a number
    p.add(x[key], y[key])


def turned(p: Program) -> None:
    """Permute and reverse dimensions."""
    x, y = p.pick()
    order = p.random.sample(range(x.ndim), x.ndim)
    p.add(x.transpose(order), xp.permute_dims(y, order))


def in_one_line(p: Program) -> None:
    """Copy the elements into one dimension."""
    x, y = p.pick()
    p.add(x.reshape(-1, copy=True), xp.reshape(y, (-1,), copy=True))


def made(p: Program) -> None:
    """Call a function whose result has its own memory."""
    x, y = p.pick()
    function: Callable[[Any, Any], Any] = p.random.choice(
        [
            lambda xp, x: xp.tile(x, (1,)),
            lambda xp, x: xp.tile(x, (2, 1)),
            lambda xp, x: xp.concat([x, x], axis=0),
            lambda xp, x: xp.roll(x, 1),
            lambda xp, x: xp.repeat(x, 2),
            lambda xp, x: xp.where(x == x, x, x),
            lambda xp, x: x != 1,
            lambda xp, x: xp.sum(x, axis=0, dtype=x.dtype),
            lambda xp, x: xp.cumulative_sum(x, axis=-1, dtype=x.dtype),
            lambda xp, x: xp.nonzero(x)[0],
        ]
    )
    if x.size > 2000 or x.dtype == np.float16:  # whose sums NumPy rounds after each addition
        return
    wanted = np.array(function(np, x)) if x.ndim else None
    with refusals(*REFUSED):
        seen = function(xp, y)
        if wanted is not None:
            p.add(wanted, seen)


def written(p: Program) -> None:
    """Write a number, or elements of another array, to a part of an array."""
    x, y = p.pick_writable()
    key = p.key(x.shape, True)
    theirs, ours = p.random.choice([(1, 1), (0, 0), p.pick()])
    fits = isinstance(theirs, int) or (
        theirs.dtype == x.dtype and np.shape(x[key]) == theirs.shape and x.ndim > 0
    )
    if fits:
        p.said.append(f"x[{key}] = {np.shape(theirs)}")
        x[key] = np.array(theirs)
        y[key] = ours


def changed(p: Program) -> None:
    """Update an array in place with another one, which may share its memory."""
    x, y = p.pick_writable()
    a, b = p.pick()
    if x.dtype != a.dtype or x.shape != a.shape or x.dtype == bool:
        return
    p.said.append(f"+= {x.shape} {x.strides} {a.strides}")
    x += np.array(a)
    y += b


def keyed(p: Program) -> None:
    """Read and write with a key that is one of the arrays, also a part of the array itself."""
    x, y = p.pick_writable()
    a, b = p.pick()
    if not x.ndim or not a.ndim or a.dtype.kind not in "biu":
        return
    if a.dtype != bool and a.size:
        most, least = int(a.max()), int(a.min())
        if most >= len(x) or least < -len(x):
            return
    if a.dtype == bool and a.shape != x.shape[: a.ndim]:
        return
    p.said.append(f"by {a.dtype} {a.shape} {a.strides} of {x.shape}")
    if len(a.shape) + x.ndim < 6 and a.size * x.size < 20_000:
        p.add(x[a], y[b])
    theirs, ours = a.copy(), b
    x[theirs], y[ours] = 1, 1


def by_numbers(p: Program) -> None:
    """Update an array in place with a number, or sort it."""
    x, y = p.pick_writable()
    if x.dtype == bool or not x.ndim:
        return
    p.said.append(f"by a number {x.shape} {x.strides}")
    if x.dtype.kind != "c" and p.random.random() < 0.3:
        axis = p.random.randrange(-x.ndim, x.ndim)
        x.sort(axis=axis)
        y.sort(axis=axis)
    else:
        x += 1
        y += 1


OPERATIONS: list[Callable[[Program], None]] = [view, view, turned, in_one_line, made, written]
OPERATIONS += [changed, keyed, by_numbers, Program.make]


@attack
def programs_beside_numpy(random: Random, space: Path) -> int:
    """Run operations on views of views, which are changed in between."""
    n = 0
    for _ in range(60):
        p = Program(random)
        for _ in range(60):
            operation = random.choice(OPERATIONS)
            p.said.append(operation.__name__)
            operation(p)
            p.check()
            n += 1
    return n
