# SPDX-License-Identifier: Apache-2.0
"""The generator: a key, a stream and a position in the sequence of Philox blocks."""

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
from cuplug.array_api.sorting import argsort
from cuplug.array_api.views import axis_of, reshape
from cuplug.random.arguments import has_parts, seed_sequence
from cuplug.random.distributions import MASK, Distributions
from cuplug.random.outputs import Size, shape_of_size
from cuplug.random.source import Source
from cuplug.random.tables import probabilities


class Generator(Distributions):
    """Random numbers for a seed: the same on the CPU, on any GPU, and for any number of threads.

    Each element has its own random bits, by Philox4x32-10, whose counter is the number of elements
    drawn before it, in one call or in several. Methods are as in `numpy.random.Generator`. The
    numbers differ, and arrays are `cuplug.Array`, created on the device of `cuplug.empty`.

    Parameters
    ----------
    seed : int, sequence of int or numpy.random.SeedSequence, optional
        The default is bits from the operating system.

    Attributes
    ----------
    seed_sequence : numpy.random.SeedSequence
        The source of the key and the stream.
    position : int
        The number of drawn elements; set it to draw elements again or to skip some.

    Examples
    --------
    >>> generator = cuplug.random.Generator(5)
    >>> x = generator.random(3)
    >>> generator.position = 0
    >>> bool((generator.random(3) == x).all())
    True
    """

    def __init__(self, seed: Any = None) -> None:
        is_sequence = isinstance(seed, np.random.SeedSequence)
        self.seed_sequence = seed if is_sequence else seed_sequence(seed)
        self._source = Source(*map(int, self.seed_sequence.generate_state(2, np.uint64)))

    @property
    def position(self) -> int:
        """The number of drawn elements.

        Examples
        --------
        >>> rng = cuplug.random.default_rng(1)
        >>> x = rng.random((2, 3))
        >>> rng.position
        6
        """
        return self._source.position

    @position.setter
    def position(self, value: int) -> None:
        if not 0 <= integer("position", value) <= MASK:
            raise ValueError(f"position: got {value}, expected 0 <= position < 2**64")
        self._source.position = int(value)

    def permutation(self, x: Any, axis: int = 0, *, device: Any = None) -> Array:
        """Return the numbers below `x`, or an array's parts along `axis`, in random order.

        They are sorted by 96 random bits each. All orders have the same probability, to within n**2
        / 2**97, because bits may be equal.

        Examples
        --------
        >>> rng = cuplug.random.default_rng(1)
        >>> print(rng.permutation(5))
        [1 3 0 2 4]
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
        """Put an array's parts along `axis` in random order, in place.

        Examples
        --------
        >>> rng = cuplug.random.default_rng(1)
        >>> x = xp.arange(5)
        >>> rng.shuffle(x)
        >>> print(x)
        [1 3 0 2 4]
        """
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
            The shape. The default is ().
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

        Examples
        --------
        >>> rng = cuplug.random.default_rng(1)
        >>> print(rng.choice(10, 3, replace=False))
        [8 7 9]
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
        """Return generators whose numbers are independent of each other and of this one's.

        Examples
        --------
        >>> rng = cuplug.random.default_rng(1)
        >>> first, second = rng.spawn(2)
        >>> print(first.random(2), second.random(2))
        [0.79364678 0.94258116] [0.39440068 0.73288563]
        """
        n = integer("spawn: n_children", n_children)
        if not 0 <= n < 1 << 32:  # the number of elements with their own numbers
            raise ValueError(f"spawn: n_children: got {n!s:.60}, expected 0 to 2**32 - 1")
        return [type(self)(child) for child in self.seed_sequence.spawn(n)]

    def _choose(self, p: Any, wanted: int, replace: bool, device: Any) -> Array:
        """Return numbers with these probabilities.

        Without `replace`, they are the numbers whose events, at such rates, come first.
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
    """Return a `Generator` for a seed; a `Generator` is returned unchanged.

    Examples
    --------
    >>> cuplug.random.default_rng(5).integers(0, 10, 3).shape
    (3,)
    """
    return seed if isinstance(seed, Generator) else Generator(seed)
