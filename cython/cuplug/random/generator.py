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
from cuplug.array_api.sorting import argsort, searchsorted
from cuplug.array_api.views import axis_of, reshape
from cuplug.random.arguments import finite, has_parts, number, seed_sequence
from cuplug.random.outputs import Size, fitting, floating, integral, shape_of_size, written
from cuplug.random.source import Source
from cuplug.random.tables import MAX_VARIANCE, Sums, binomial_sums, poisson_sums, probabilities

_MASK = (1 << 64) - 1


class Generator:
    """Random numbers for a seed: the same on the CPU, on any GPU, and for any number of threads.

    Each element has its own random bits, by Philox4x32-10, whose counter is the number of elements
    that were drawn before it, at once or one by one. Methods are as in `numpy.random.Generator`;
    the numbers differ, and arrays are `cuplug.Array`, created on the device of `cuplug.empty`.

    Parameters
    ----------
    seed : int, sequence of int or numpy.random.SeedSequence, optional
        Without it, bits of the operating system.

    Attributes
    ----------
    seed_sequence : numpy.random.SeedSequence
        The source of the key and the stream.
    position : int
        The number of drawn elements; set it to draw elements again or to skip some.
    """

    def __init__(self, seed: Any = None) -> None:
        is_sequence = isinstance(seed, np.random.SeedSequence)
        self.seed_sequence = seed if is_sequence else seed_sequence(seed)
        self._source = Source(*map(int, self.seed_sequence.generate_state(2, np.uint64)))

    @property
    def position(self) -> int:
        """How many elements were drawn."""
        return self._source.position

    @position.setter
    def position(self, value: int) -> None:
        if not 0 <= integer("position", value) <= _MASK:
            raise ValueError(f"position: got {value}, expected 0 <= position < 2**64")
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
            If they are equal after rounding, `high` may be among the numbers.
        size : int or sequence of int, optional
            The shape. The default is that of `out`, or no dimensions.
        dtype : str or numpy.dtype
            float32, with 24 random bits, or float64, with 53.
        out : array, optional
            An array of any library, on the host or on a GPU, that receives the numbers.
        device : str, int or Device, optional
            As for `cuplug.empty`.

        Returns
        -------
        Array
        """
        wanted = floating("uniform", dtype)
        first = number("uniform: low", low)
        span = number("uniform: high", high) - first
        if not abs(span) <= float(np.finfo(wanted).max):
            distance = f"numbers whose distance {wanted} holds"
            raise ValueError(f"uniform: low, high: got {low} and {high}, expected {distance}")
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
        of `scale`, up to 6.3 times. Other parameters are as in `uniform`.
        """
        middle, spread = number("normal: loc", loc), number("normal: scale", scale)
        if not spread >= 0:
            raise ValueError(f"normal: scale: got {scale}, expected a number that is not negative")
        wanted = floating("normal", dtype)
        return self._draw("random.normal", wanted, size, out, device, middle, spread)

    def lognormal(
        self,
        mean: float = 0.0,
        sigma: float = 1.0,
        size: Size = None,
        dtype: Any = "float64",
        *,
        out: Any = None,
        device: Any = None,
    ) -> Array:
        """Return exponentials of normal numbers around `mean` with deviation `sigma`.

        The exponential is computed in float64, to one rounding error, and rounded to `dtype`.
        Other parameters are as in `uniform`.
        """
        middle = finite("lognormal: mean", mean)
        spread = finite("lognormal: sigma", sigma, at_least=0)
        wanted = floating("lognormal", dtype)
        return self._draw("random.lognormal", wanted, size, out, device, middle, spread)

    def standard_exponential(
        self, size: Size = None, dtype: Any = "float64", *, out: Any = None, device: Any = None
    ) -> Array:
        """Return numbers of the exponential distribution of mean 1."""
        return self.exponential(1.0, size, dtype, out=out, device=device)

    def exponential(
        self,
        scale: float = 1.0,
        size: Size = None,
        dtype: Any = "float64",
        *,
        out: Any = None,
        device: Any = None,
    ) -> Array:
        """Return numbers of the exponential distribution of mean `scale`.

        They are the quantile function: in float64 at 2**52 places, at most 36.8 times `scale`; in
        float32 at 2**32 places, at most 22.9 times. Other parameters are as in `uniform`.
        """
        mean = finite("exponential: scale", scale, at_least=0)
        wanted = floating("exponential", dtype)
        return self._draw("random.exponential", wanted, size, out, device, 0.0, mean)

    def poisson(self, lam: float = 1.0, size: Size = None, *, device: Any = None) -> Array:
        """Return numbers of the Poisson distribution, of dtype int64.

        Parameters
        ----------
        lam : float
            The mean, at most 2**32.
        size : int or sequence of int, optional
            The shape. By default no dimensions.
        device : str, int or Device, optional
            As for `cuplug.empty`.

        Returns
        -------
        Array
        """
        mean = finite("poisson: lam", lam, at_least=0)
        if mean > MAX_VARIANCE:
            raise ValueError(f"poisson: lam: got {lam}, expected at most 2**32; use normal")
        return self._search(poisson_sums(mean), size, device)

    def binomial(self, n: int, p: float, size: Size = None, *, device: Any = None) -> Array:
        """Return how many of n trials succeed, of dtype int64.

        Parameters
        ----------
        n : int
            At most 2**53, with n * p * (1 - p) at most 2**32.
        p : float
            The probability of each success.
        size, device
            As for `poisson`.

        Returns
        -------
        Array
        """
        trials, each = integer("binomial: n", n), finite("binomial: p", p, at_least=0)
        if not 0 <= trials <= 1 << 53:
            raise ValueError(f"binomial: n: got {n}, expected 0 <= n <= 2**53")
        if each > 1:
            raise ValueError(f"binomial: p: got {p}, expected 0 <= p <= 1")
        if trials * each * (1 - each) > MAX_VARIANCE:
            problem = f"got {n} and {p}, expected a variance of at most 2**32"
            raise ValueError(f"binomial: n, p: {problem}; use normal")
        return self._search(binomial_sums(trials, each), size, device)

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

        With `endpoint`, `high` is among them. The probability of each number differs from that of
        the others by at most 2**-64 of itself. Other parameters are as in `uniform`; the dtype
        is bool or an integer one.
        """
        low, high = (0, low) if high is None else (low, high)
        first, last = integer("integers: low", low), integer("integers: high", high)
        last -= not endpoint
        wanted, least, most = integral(dtype)
        if not least <= first <= last <= most:
            raise ValueError(
                f"integers: low, high: got {low} and {high}, expected low < high, and numbers that "
                f"{wanted} holds"
            )
        return self._draw("random.integers", wanted, size, out, device, first & _MASK, last - first)

    def permutation(self, x: Any, axis: int = 0, *, device: Any = None) -> Array:
        """Return the numbers below `x`, or an array's parts along `axis`, in random order.

        They are sorted by 96 random bits each, so all orders have the same probability, up to less
        than n**2 / 2**97, for equal bits.
        """
        if not isinstance(x, Array):
            if has_parts(x):
                return self.permutation(asarray(x, device=device), axis)
            return self._order(integer("permutation: x", x), device)
        if not x.ndim:
            raise ValueError("permutation: x: got no dimensions, expected at least one")
        along = axis_of("permutation", axis, x.ndim)
        return take(x, self._order(x.shape[along], x.device), axis=along)

    def shuffle(self, x: Array, axis: int = 0) -> None:
        """Put an array's parts along `axis` in random order, in place."""
        if not isinstance(x, Array):
            raise TypeError(f"shuffle: x: got {type(x).__name__}, expected a cuplug.Array")
        assign(x, self.permutation(x, axis))

    def choice(
        self,
        a: Any,
        size: Size = None,
        replace: bool = True,
        p: Any = None,
        *,
        axis: int = 0,
        device: Any = None,
    ) -> Array:
        """Return numbers below `a`, or an array's parts along `axis`.

        Parameters
        ----------
        a : int or array
            The number of numbers to choose from, or the array to choose from.
        size : int or sequence of int, optional
            The shape. The default is no dimensions.
        replace : bool
            If False, each is chosen at most once.
        p : array of float, optional
            The probability of each, read on the host. The default is a uniform distribution. If
            `replace` is False, each choice uses the probabilities of the remaining elements, in
            proportion.
        axis : int
            The dimension of `a` to choose along.
        device : str, int or Device, optional
            As for `cuplug.empty`. An array `a` stays on its device.

        Returns
        -------
        Array
        """
        whole = None if not isinstance(a, Array) and not has_parts(a) else asarray(a, device=device)
        along = 0 if whole is None else axis_of("choice", axis, whole.ndim)
        n = integer("choice: a", a) if whole is None else whole.shape[along]
        where = device if whole is None else whole.device
        shape = shape_of_size(size)
        wanted = math.prod(shape)
        if n < 0 or (wanted and not n):
            raise ValueError(f"choice: a: got {n} to choose from, expected at least 1")
        if not replace and wanted > n:
            raise ValueError(f"choice: size: got {wanted} of {n}, expected no more without replace")
        if p is not None:
            found = self._choose(probabilities(p, n), wanted, replace, where)
        elif replace:
            found = self.integers(n, size=wanted, device=where) if wanted else empty(0, int, where)
        else:
            found = self._order(n, where)[:wanted]
        if whole is None:
            return reshape(found, shape)
        taken = take(whole, found, axis=along)
        return reshape(taken, (*whole.shape[:along], *shape, *whole.shape[along + 1 :]))

    def spawn(self, n_children: int) -> list[Generator]:
        """Return generators whose numbers have nothing to do with each other or with this one's."""
        n = integer("spawn: n_children", n_children)
        if not 0 <= n < 1 << 32:  # the number of elements with their own numbers
            raise ValueError(f"spawn: n_children: got {n!s:.60}, expected 0 to 2**32 - 1")
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

    def _search(self, sums: Sums, size: Size, device: Any) -> Array:
        """Return which of the numbers, whose probabilities have these sums, are drawn."""
        table, first = sums
        drawn = self.random(size, device=device)
        found = searchsorted(asarray(table, device=drawn.device), drawn, side="right")
        return found + first if first else found

    def _choose(self, p: Any, wanted: int, replace: bool, device: Any) -> Array:
        """Return numbers that have these probabilities.

        Without `replace`, they are those for which events of such rates are first.
        """
        if replace:
            sums = np.cumsum(p)
            return self._search((sums / sums[-1], 0), wanted, device)
        some = np.count_nonzero(p)
        if wanted > some:
            problem = f"got {some} that are not 0, expected at least {wanted} without replace"
            raise ValueError(f"choice: p: {problem}")
        times = self.exponential(size=p.size, device=device)
        return argsort(times / asarray(p, device=times.device))[:wanted]

    def _order(self, n: int, device: Any) -> Array:
        """Return the numbers below n in random order."""
        if n < 0:
            raise ValueError(f"permutation: x: got {n}, expected a number that is not negative")
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
    """Return a `Generator` for a seed; a `Generator` is returned unchanged."""
    return seed if isinstance(seed, Generator) else Generator(seed)
