# SPDX-License-Identifier: Apache-2.0
"""Weighted means, ranges and covariances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug._engine.array.promotion import DEFAULTS, kind_of
from cuplug.array_api.beyond.host_values import on_the_host
from cuplug.array_api.concatenation import concat
from cuplug.array_api.conversion import asarray
from cuplug.array_api.dtypes import astype, checked, result_type
from cuplug.array_api.elementwise import clip, unary
from cuplug.array_api.products import matmul
from cuplug.array_api.statistical import max, mean, min, sum
from cuplug.array_api.views import axes_of, broadcast_to, diagonal, expand_dims, reshape


def average(
    x: Array,
    /,
    axis: Any = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """Return the mean, weighted if `weights` are given; with `returned` also the sum of weights.

    Weights have the shape of `x`, or for one axis its size.

    Examples
    --------
    >>> print(xp.average(xp.asarray([1.0, 5.0]), weights=[3, 1]))
    2.0
    """
    checked("average", "x", x)
    axes = axes_of("average", axis, x.ndim)
    if weights is None:
        found = mean(x, axis=axis, keepdims=keepdims)
        n = math.prod(x.shape[k] for k in axes)
        return (found, found * 0 + n) if returned else found
    w = asarray(weights, device=x.device)
    if w.shape != x.shape:
        if len(axes) != 1 or w.shape != (x.shape[axes[0]],):
            raise ValueError(f"average: weights: got shape {w.shape}, expected {x.shape} (as x)")
        w = broadcast_to(reshape(w, (-1, *(1 for _ in x.shape[axes[0] + 1 :]))), x.shape)
    real = result_type(x.dtype, w.dtype)
    real = real if kind_of(real) in ("float", "complex") else DEFAULTS["real floating"]
    total = sum(astype(w, real, copy=False), axis=axis, keepdims=keepdims)
    found = sum(x * astype(w, real, copy=False), axis=axis, keepdims=keepdims) / total
    return (found, total) if returned else found


def ptp(x: Array, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Return the difference between the maximum and the minimum.

    Examples
    --------
    >>> print(xp.ptp(xp.asarray([3, 9, 4])))
    6
    """
    return max(x, axis=axis, keepdims=keepdims) - min(x, axis=axis, keepdims=keepdims)


def cov(
    m: Array,
    /,
    y: Array | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Array:
    """Return the covariance matrix.

    Parameters
    ----------
    m : Array, shape (n,) or (n_variables, n)
    y : Array, optional
        Additional variables.
    rowvar : bool, default True
        If True, rows are variables; otherwise columns are.
    bias : bool, default False
        If True, sums are divided by n; otherwise by n - 1.
    ddof : int, optional
        Sums are divided by n - ddof, and `bias` has no effect.
    fweights : array_like, shape (n,), optional
        Integers: the number of times that each observation counts.
    aweights : array_like, shape (n,), optional
        The weight of each observation.
    dtype : str or numpy.dtype, optional
        The default is float64 or complex128.

    Returns
    -------
    Array
        Without dimensions for one variable.

    Examples
    --------
    >>> print(xp.cov(xp.asarray([[1.0, 2.0, 3.0], [4.0, 6.0, 8.0]])))
    [[1. 2.]
     [2. 4.]]
    """
    rows = [_variables("cov", each, rowvar) for each in (m, y) if each is not None]
    wanted = result_type(*rows, "float64") if dtype is None else dtype
    x = concat([astype(each, wanted, copy=False) for each in rows])
    less = (0 if bias else 1) if ddof is None else ddof
    weights, left = _weights(x, fweights, aweights, less)
    x = x - average(x, axis=1, weights=weights, keepdims=True)
    other = x if weights is None else x * weights
    found = matmul(x, unary("conj", other).T) / left
    return reshape(found, ()) if found.size == 1 else found


def _weights(x: Array, fweights: Any, aweights: Any, less: Any) -> tuple[Array | None, Any]:
    """Return the weights of observations, and the divisor of their weighted products."""
    n = x.shape[1]
    total: Any = None
    for name, each in (("fweights", fweights), ("aweights", aweights)):
        if each is None:
            continue
        given = on_the_host(f"cov: {name}", each, "real numbers")
        if given.shape != (n,):
            raise (RuntimeError if given.ndim > 1 else ValueError)(
                f"cov: {name}: got shape {given.shape}, expected ({n},)"
            )
        if (given < 0).any() or (name == "fweights" and (given != np.around(given)).any()):
            raise ValueError(f"cov: {name}: got {given}, expected numbers of at least 0")
        total = given if total is None else total * given
    whole = n if total is None else total.sum()
    if aweights is not None and less:
        less = less * (total * on_the_host("cov: aweights", aweights, "real numbers")).sum() / whole
    left = whole - less
    weights = None if total is None else asarray(total.astype(x.real.dtype), device=x.device)
    return weights, float(left) if left > 0 else math.nan


def _variables(name: str, x: Any, rowvar: bool) -> Array:
    if checked(name, "m", x).ndim > 2:
        raise ValueError(f"{name}: m: got {x.ndim} dimensions, expected at most 2")
    if x.ndim < 2:
        return reshape(x, (1, -1))
    found: Array = x if rowvar else x.T
    return found


def corrcoef(
    x: Array, /, y: Array | None = None, rowvar: bool = True, *, dtype: Any = None
) -> Array:
    """Return the matrix of Pearson correlation coefficients; parameters are as in `cov`.

    Examples
    --------
    >>> print(xp.corrcoef(xp.asarray([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])))
    [[ 1. -1.]
     [-1.  1.]]
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return c / c
    spread = unary("sqrt", unary("real", diagonal(c)))
    c = c / expand_dims(spread, axis=1) / expand_dims(spread, axis=0)
    if kind_of(c.dtype) != "complex":
        return clip(c, -1, 1)
    for part in (c.real, c.imag):
        part[...] = clip(part, -1, 1)
    return c
