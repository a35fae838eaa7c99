# SPDX-License-Identifier: Apache-2.0
"""The generator: a key, a stream and a position among the blocks of Philox."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug._engine.array.make import empty
from cuplug.array_api.conversion import asarray
from cuplug.array_api.creation import assign
from cuplug.array_api.dtypes import integer
from cuplug.array_api.functions import stock
from cuplug.array_api.indexing import take
from cuplug.array_api.views import axis_of, reshape
from cuplug.random.outputs import Size, fitting, floating, integral, shape_of_size, written
from cuplug.random.source import Source

_MASK = (1 << 64) - 1


class Generator:
    """Random numbers for a seed: the same on the CPU, on any GPU, and for any number of threads.

    Each element has random bits of its own, by Philox4x32-10, whose counter is how many elements
    were drawn before it, at once or one by one. Methods are those of `numpy.random.Generator`; the
    numbers are others, and arrays are `cuplug.Array`, made where `cuplug.empty` makes them.

    Parameters
    ----------
    seed : int, sequence of int or numpy.random.SeedSequence, optional
        Without it, bits of the operating system.

    Attributes
    ----------
    seed_sequence : numpy.random.SeedSequence
        What the key and the stream are made of.
    position : int
        How many elements were drawn; it may be set, to draw elements again or to leave some out.
    """

    def __init__(self, seed: Any = None) -> None:
        is_sequence = isinstance(seed, np.random.SeedSequence)
        self.seed_sequence = seed if is_sequence else _seed_sequence(seed)
        self._source = Source(*map(int, self.seed_sequence.generate_state(2, np.uint64)))

    @property
    def position(self) -> int:
        """How many elements were drawn."""
        return self._source.position

    @position.setter
    def position(self, value: int) -> None:
        if not 0 <= integer("position", value) <= _MASK:
            raise ValueError(f"position: seen {value}, wanted 0 <= position < 2**64")
        self._source.position = int(value)

    def random(
        self, size: Size = None, dtype: Any = "float64", *, out: Any = None, device: Any = None
    ) -> Array:
        """Return numbers in [0, 1): `uniform` without bounds."""
        wanted = floating("uniform", dtype)
        return self._draw("random.uniform", wanted, size, out, device, 0.0, 1.0)

    def uniform(
        self,
        low: float = 0.0,
        high: float = 1.0,
        size: Size = None,
        dtype: Any = "float64",
        *,
        out: Any = None,
        device: Any = None,
    ) -> Array:
        """Return numbers from `low` to before `high`, all as probable.

        Parameters
        ----------
        low, high : float
            Where rounding cannot tell them apart, `high` may be among the numbers.
        size : int or sequence of int, optional
            The shape. Without it that of `out`, or no dimensions.
        dtype : str or numpy.dtype
            float32, with 24 random bits, or float64, with 53.
        out : array, optional
            An array of any library, on the host or on a GPU, that takes the numbers.
        device : str, int or Device, optional
            As for `cuplug.empty`.

        Returns
        -------
        Array
        """
        wanted = floating("uniform", dtype)
        first = _number("uniform: low", low)
        span = _number("uniform: high", high) - first
        if not abs(span) <= float(np.finfo(wanted).max):
            distance = f"numbers whose distance {wanted} holds"
            raise ValueError(f"uniform: low, high: seen {low} and {high}, wanted {distance}")
        return self._draw("random.uniform", wanted, size, out, device, first, span)

    def standard_normal(
        self, size: Size = None, dtype: Any = "float64", *, out: Any = None, device: Any = None
    ) -> Array:
        """Return numbers of the normal distribution around 0 with variance 1."""
        wanted = floating("normal", dtype)
        return self._draw("random.normal", wanted, size, out, device, 0.0, 1.0)

    def normal(
        self,
        loc: float = 0.0,
        scale: float = 1.0,
        size: Size = None,
        dtype: Any = "float64",
        *,
        out: Any = None,
        device: Any = None,
    ) -> Array:
        """Return numbers of the normal distribution around `loc` with deviation `scale`.

        They are the quantile function: in float64 at 2**53 places, to 1e-15, none farther from
        `loc` than 8.3 times `scale`; in float32 at 2**31 places, to 4e-7 of the distance and 4e-8
        of `scale`, up to 6.3 times. Other parameters are those of `uniform`.
        """
        middle, spread = _number("normal: loc", loc), _number("normal: scale", scale)
        if not spread >= 0:
            raise ValueError(f"normal: scale: seen {scale}, wanted a number that is not negative")
        wanted = floating("normal", dtype)
        return self._draw("random.normal", wanted, size, out, device, middle, spread)

    def integers(
        self,
        low: int,
        high: int | None = None,
        size: Size = None,
        dtype: Any = "int64",
        endpoint: bool = False,
        *,
        out: Any = None,
        device: Any = None,
    ) -> Array:
        """Return integers from `low` to before `high`; with one bound, from 0 to before it.

        With `endpoint`, `high` is among them. No number's probability differs from that of the
        others by more than 2**-64 of it. Other parameters are those of `uniform`; the dtype is
        bool or an integer one.
        """
        low, high = (0, low) if high is None else (low, high)
        first, last = integer("integers: low", low), integer("integers: high", high)
        last -= not endpoint
        wanted, least, most = integral(dtype)
        if not least <= first <= last <= most:
            raise ValueError(
                f"integers: low, high: seen {low} and {high}, wanted low < high, and numbers that "
                f"{wanted} holds"
            )
        return self._draw("random.integers", wanted, size, out, device, first & _MASK, last - first)

    def permutation(self, x: Any, axis: int = 0, *, device: Any = None) -> Array:
        """Return the numbers below `x`, or an array's parts along `axis`, in random order.

        They are in the order of 96 random bits for each, so all orders are as probable, but for
        less than n**2 / 2**97 where two are alike.
        """
        if not isinstance(x, Array):
            if _has_parts(x):
                return self.permutation(asarray(x, device=device), axis)
            return self._order(integer("permutation: x", x), device)
        if not x.ndim:
            raise ValueError("permutation: x: seen no dimensions, wanted at least one")
        along = axis_of("permutation", axis, x.ndim)
        return take(x, self._order(x.shape[along], x.device), axis=along)

    def shuffle(self, x: Array, axis: int = 0) -> None:
        """Put an array's parts along `axis` in random order, in place."""
        if not isinstance(x, Array):
            raise TypeError(f"shuffle: x: seen {type(x).__name__}, wanted a cuplug.Array")
        assign(x, self.permutation(x, axis))

    def choice(
        self, a: Any, size: Size = None, replace: bool = True, *, axis: int = 0, device: Any = None
    ) -> Array:
        """Return numbers below `a`, or an array's parts along `axis`, all as probable.

        Without `replace` each at most once. There are no other probabilities: for these, look up
        `random` among sums of them, as `numpy.searchsorted` does.
        """
        whole = (
            None if not isinstance(a, Array) and not _has_parts(a) else asarray(a, device=device)
        )
        along = 0 if whole is None else axis_of("choice", axis, whole.ndim)
        n = integer("choice: a", a) if whole is None else whole.shape[along]
        where = device if whole is None else whole.device
        shape = shape_of_size(size)
        wanted = math.prod(shape)
        if n < 0 or (wanted and not n):
            raise ValueError(f"choice: a: seen {n} to choose from, wanted at least 1")
        if replace:
            found = self.integers(n, size=wanted, device=where) if wanted else empty(0, int, where)
        elif wanted > n:
            raise ValueError(f"choice: size: seen {wanted} of {n}, wanted no more without replace")
        else:
            found = self._order(n, where)[:wanted]
        if whole is None:
            return reshape(found, shape)
        taken = take(whole, found, axis=along)
        return reshape(taken, (*whole.shape[:along], *shape, *whole.shape[along + 1 :]))

    def spawn(self, n_children: int) -> list[Generator]:
        """Return generators whose numbers have nothing to do with each other or with this one's."""
        n = integer("spawn: n_children", n_children)
        if not 0 <= n < 1 << 32:  # as many as have numbers of their own
            raise ValueError(f"spawn: n_children: seen {n!s:.60}, wanted 0 to 2**32 - 1")
        return [type(self)(child) for child in self.seed_sequence.spawn(n)]

    def _draw(
        self, name: str, dtype: Any, size: Size, out: Any, device: Any, *numbers: float
    ) -> Array:
        operator = stock(name)
        if out is None:
            shape = size if type(size) is int and size >= 0 else shape_of_size(size)
            return self._source.draw(operator, shape, dtype, device, *numbers)
        x = fitting(operator.name, dtype, size, out)
        self._source.fill(operator, x, math.prod(x.shape), *numbers)
        written(x, out)
        return out

    def _order(self, n: int, device: Any) -> Array:
        """Return the numbers below n in random order."""
        if n < 0:
            raise ValueError(f"permutation: x: seen {n}, wanted a number that is not negative")
        return self._source.order(stock("sorting.permutation"), n, device)

    def __getstate__(self) -> dict[str, Any]:
        return {"seed_sequence": self.seed_sequence, "position": self.position}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Generator.__init__(self, state["seed_sequence"])
        self.position = state["position"]

    def __repr__(self) -> str:
        seed = self.seed_sequence
        return f"<generator of seed {seed.entropy}, {seed.spawn_key}, position {self.position}>"


def default_rng(seed: Any = None) -> Generator:
    """Return a `Generator` for a seed; a `Generator` itself, as it is."""
    return seed if isinstance(seed, Generator) else Generator(seed)


def _seed_sequence(seed: Any) -> np.random.SeedSequence:
    try:
        return np.random.SeedSequence(seed)
    except (TypeError, ValueError) as error:
        wanted = "an integer of at least 0, a sequence of them, a SeedSequence or None"
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"seed: seen {seed!r}, wanted {wanted}") from None


def _number(what: str, value: Any) -> float:
    try:
        if not isinstance(value, (str, bytes)):
            return float(value)
    except (TypeError, ValueError):
        pass
    except OverflowError:
        raise ValueError(f"{what}: seen an integer beyond float64, wanted a number") from None
    raise TypeError(f"{what}: seen {type(value).__name__}, wanted a number")


def _has_parts(x: Any) -> bool:
    try:
        return type(x) is not int and np.ndim(x) > 0  # NumPy makes an array of it
    except ValueError:  # of rows that are not equal, which asarray tells
        return True
