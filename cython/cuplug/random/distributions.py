# SPDX-License-Identifier: Apache-2.0
"""The distributions of a generator, whose elements are drawn from its source."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug.array_api.conversion import asarray
from cuplug.array_api.dtypes import integer
from cuplug.array_api.functions import stock
from cuplug.array_api.sorting import searchsorted
from cuplug.random.arguments import finite, number
from cuplug.random.outputs import Size, fitting, floating, integral, shape_of_size, written
from cuplug.random.source import Source
from cuplug.random.tables import MAX_VARIANCE, Sums, binomial_sums, poisson_sums

MASK = (1 << 64) - 1


class Distributions:
    """The methods of `Generator` that draw each element independently."""

    _source: Source

    def random(
        self, size: Size = None, dtype: Any = "float64", *, out: Any = None, device: Any = None
    ) -> Array:
        """Return numbers in [0, 1): `uniform` without bounds.

        Examples
        --------
        >>> rng = cuplug.random.default_rng(1)
        >>> print(rng.random(3))
        [0.43233519 0.18129477 0.66235464]
        """
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
        """Return numbers from `low` to before `high`, with equal probabilities.

        Parameters
        ----------
        low, high : float
            If they are equal after rounding, `high` may be among the numbers.
        size : int or sequence of int, optional
            The shape. The default is the shape of `out`, or ().
        dtype : str or numpy.dtype
            float32, with 24 random bits, or float64, with 53.
        out : array, optional
            An array of any library, on the host or on a GPU, that receives the numbers.
        device : str, int or Device, optional
            As for `cuplug.empty`.

        Returns
        -------
        Array

        Examples
        --------
        >>> rng = cuplug.random.default_rng(1)
        >>> print(rng.uniform(5, 6, 3))
        [5.43233519 5.18129477 5.66235464]
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
        """Return numbers of the normal distribution around 0 with variance 1.

        Examples
        --------
        >>> rng = cuplug.random.default_rng(1)
        >>> print(rng.standard_normal(3))
        [-0.78520191  1.33677903  0.43666456]
        """
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

        They are the quantile function: in float64 at 2**53 points, to 1e-15, none farther from
        `loc` than 8.3 times `scale`; in float32 at 2**31 points, to 4e-7 of the distance and 4e-8
        of `scale`, up to 6.3 times. Other parameters are as in `uniform`.

        Examples
        --------
        >>> rng = cuplug.random.default_rng(1)
        >>> print(rng.normal(10.0, 2.0, 3))
        [ 8.42959617 12.67355807 10.87332912]
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

        Examples
        --------
        >>> rng = cuplug.random.default_rng(1)
        >>> print(rng.lognormal(size=3))
        [0.45602761 3.80676229 1.54753688]
        """
        middle = finite("lognormal: mean", mean)
        spread = finite("lognormal: sigma", sigma, at_least=0)
        wanted = floating("lognormal", dtype)
        return self._draw("random.lognormal", wanted, size, out, device, middle, spread)

    def standard_exponential(
        self, size: Size = None, dtype: Any = "float64", *, out: Any = None, device: Any = None
    ) -> Array:
        """Return numbers of the exponential distribution of mean 1.

        Examples
        --------
        >>> rng = cuplug.random.default_rng(1)
        >>> print(rng.standard_exponential(3))
        [0.83855408 1.70763098 0.41195416]
        """
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

        They are the quantile function: in float64 at 2**52 points, at most 36.8 times `scale`; in
        float32 at 2**32 points, at most 22.9 times. Other parameters are as in `uniform`.

        Examples
        --------
        >>> rng = cuplug.random.default_rng(1)
        >>> print(rng.exponential(2.0, 3))
        [1.67710816 3.41526196 0.82390833]
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

        Examples
        --------
        >>> rng = cuplug.random.default_rng(1)
        >>> print(rng.poisson(4.0, 3))
        [3 2 5]
        """
        mean = finite("poisson: lam", lam, at_least=0)
        if mean > MAX_VARIANCE:
            raise ValueError(f"poisson: lam: got {lam}, expected at most 2**32; use normal")
        return self._search(poisson_sums(mean), size, device)

    def binomial(self, n: int, p: float, size: Size = None, *, device: Any = None) -> Array:
        """Return the numbers of successes in n trials, of dtype int64.

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

        Examples
        --------
        >>> rng = cuplug.random.default_rng(1)
        >>> print(rng.binomial(10, 0.5, 3))
        [5 4 6]
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

        With `endpoint`, `high` is included. The relative difference between the probabilities of
        two numbers is at most 2**-64. Other parameters are as in `uniform`. The dtype is bool or an
        integer dtype.

        Examples
        --------
        >>> rng = cuplug.random.default_rng(1)
        >>> print(rng.integers(100, size=3))
        [75 48 78]
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
        return self._draw("random.integers", wanted, size, out, device, first & MASK, last - first)

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
        """Return the drawn numbers, from the cumulative sums of their probabilities."""
        table, first = sums
        drawn = self.random(size, device=device)
        found = searchsorted(asarray(table, device=drawn.device), drawn, side="right")
        return found + first if first else found
