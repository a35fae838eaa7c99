# SPDX-License-Identifier: Apache-2.0
"""Polynomials as arrays of coefficients, the highest power first."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug._engine.array.promotion import kind_of
from cuplug.array_api.beyond.edits import trim_zeros
from cuplug.array_api.beyond.host_values import number, together
from cuplug.array_api.beyond.numpy_linalg import lstsq
from cuplug.array_api.beyond.products import outer
from cuplug.array_api.beyond.signals import convolve
from cuplug.array_api.concatenation import concat
from cuplug.array_api.conversion import asarray
from cuplug.array_api.creation import arange
from cuplug.array_api.dtypes import astype, checked, integer, result_type
from cuplug.array_api.elementwise import CALLED, binary, unary
from cuplug.array_api.filled import zeros
from cuplug.array_api.linalg import inv
from cuplug.array_api.products import matmul
from cuplug.array_api.statistical import sum
from cuplug.array_api.views import flip, matrix_transpose, reshape


def polyval(p: Any, x: Any, /) -> Array:
    """Return a polynomial's values at `x`, from coefficients with the highest power first.

    Examples
    --------
    >>> print(xp.polyval(xp.asarray([1, 0, 2]), xp.asarray([1, 10])))
    [  3 102]
    """
    device = next((each.device for each in (p, x) if isinstance(each, Array)), None)
    coefficients, x = asarray(p, device=device), asarray(x, device=device)
    if coefficients.ndim != 1:
        raise ValueError(f"polyval: p: got shape {coefficients.shape}, expected one dimension")
    found: Array = astype(x * 0, result_type(coefficients, x), copy=False)
    for coefficient in coefficients:
        found = found * x + coefficient
    return found


def polyadd(a1: Any, a2: Any, /) -> Array:
    """Return the sum of two polynomials.

    Examples
    --------
    >>> print(xp.polyadd(xp.asarray([1, 2]), xp.asarray([1, 0, 0])))
    [1 1 2]
    """
    return binary("add", *_as_long(*together("polyadd", a1, a2)))


def polysub(a1: Any, a2: Any, /) -> Array:
    """Return the difference of two polynomials.

    Examples
    --------
    >>> print(xp.polysub(xp.asarray([1, 0, 0]), xp.asarray([1, 2])))
    [ 1 -1 -2]
    """
    return binary("subtract", *_as_long(*together("polysub", a1, a2)))


def polymul(a1: Any, a2: Any, /) -> Array:
    """Return the product of two polynomials without leading zeros, which waits for a GPU.

    Examples
    --------
    >>> print(xp.polymul(xp.asarray([1, 1]), xp.asarray([1, -1])))
    [ 1  0 -1]
    """
    first, second = map(_trimmed, together("polymul", a1, a2))
    return convolve(first, second)


def _as_long(*given: Array) -> list[Array]:
    """Return both, with zeros for the powers that only the other one has."""
    lines = [reshape(x, (-1,)) if not x.ndim else x for x in given]
    n = max(x.shape[0] for x in lines)
    missing = [(n - x.shape[0], *x.shape[1:]) for x in lines]
    return [
        concat([zeros(shape, dtype=x.dtype, device=x.device), x]) if shape[0] else x
        for x, shape in zip(lines, missing, strict=True)
    ]


def _trimmed(x: Array) -> Array:
    line = reshape(x, (-1,)) if not x.ndim else x
    if line.ndim != 1:
        raise ValueError(f"polymul: got {line.ndim} dimensions, expected 1")
    found = trim_zeros(line, "f")
    return found if found.size else zeros((1,), dtype=x.dtype, device=x.device)


def poly(seq_of_zeros: Array, /) -> Array:
    """Return the polynomial with the given zeros, or with a matrix's eigenvalues; on the host.

    Examples
    --------
    >>> print(xp.poly(xp.asarray([1.0, 2.0])))
    [ 1. -3.  2.]
    """
    given = checked("poly", "seq_of_zeros", seq_of_zeros)
    if given.ndim > 1 and (given.ndim > 2 or given.shape[0] != given.shape[1] or not given.size):
        raise ValueError(f"poly: got shape {given.shape}, expected a line or a square matrix")
    return asarray(np.poly(given.numpy()), device=given.device)


def roots(p: Array, /) -> Array:
    """Return the roots of a polynomial, computed on the host as in `numpy.roots`.

    Examples
    --------
    >>> print(xp.roots(xp.asarray([1.0, 0.0, -4.0])))
    [-2.  2.]
    """
    given = checked("roots", "p", p)
    if given.ndim > 1:
        raise ValueError(f"roots: p: got {given.ndim} dimensions, expected 1")
    return asarray(np.roots(given.numpy()), device=given.device)


def polyfit(
    x: Array,
    y: Any,
    /,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: Any = None,
    cov: Any = False,
) -> Any:
    """Return the polynomial with the least squares of distances to samples.

    Parameters
    ----------
    x : Array, shape (n,)
    y : Array, shape (n,) or (n, k)
        The coefficients have the shape (deg + 1,) or (deg + 1, k).
    deg : int
    rcond : float, optional
        As for `numpy.linalg.lstsq`; the default is n epsilons.
    full : bool, default False
        Also return the squares, rank, singular values and `rcond`.
    w : Array, shape (n,), optional
        Weights of the samples.
    cov : bool or "unscaled", default False
        Also return the covariance of the coefficients.

    Examples
    --------
    >>> x = xp.asarray([0.0, 1.0, 2.0])
    >>> print(xp.round(xp.polyfit(x, 2 * x + 1, 1)))
    [2. 1.]
    """
    x, y = together("polyfit", x, y)
    degree = number("polyfit: deg", deg)
    if not 0 <= degree < x.size + 1e6:
        raise ValueError(f"polyfit: deg: got {deg}, expected at least 0, and less than 1e6")
    order = int(degree) + 1
    if x.ndim != 1 or not x.size or y.ndim not in (1, 2) or y.shape[0] != x.size:
        wanted = "(n,) and (n,) or (n, k)"
        raise TypeError(f"polyfit: x, y: got shapes {x.shape} and {y.shape}, expected {wanted}")
    if any(each.dtype == np.float16 for each in (x, y)):
        raise TypeError("polyfit: got float16, expected float32 or float64; use astype")
    dtype = result_type(x, y, 1.0)
    dtype = dtype if kind_of(dtype) in ("float", "complex") else np.dtype("float64")
    x, y = astype(x, result_type(x.dtype, 1.0), copy=False), astype(y, dtype, copy=False)
    rcond = x.size * float(np.finfo(x.dtype).eps) if rcond is None else rcond
    left, right = vander(x, order), y
    if w is not None:
        weights = asarray(w, device=x.device)
        if weights.shape != x.shape:
            raise TypeError(f"polyfit: w: got shape {weights.shape}, expected {x.shape} (as x)")
        left = left * weights[:, None]
        right = right * (weights if y.ndim == 1 else weights[:, None])
    scale = unary("sqrt", sum(left * left, axis=0))
    left = left / scale
    found, squares, rank, values = lstsq(left, right, rcond)
    found = found / (scale if y.ndim == 1 else scale[:, None])
    if full:
        return found, squares, rank, values, rcond
    if rank != order:
        warnings.warn("polyfit: few samples for the degree", np.exceptions.RankWarning, 3)
    if not cov:
        return found
    base = inv(matmul(matrix_transpose(left), left)) / outer(scale, scale)
    if cov != "unscaled" and x.size <= order:
        raise ValueError(f"polyfit: x: got {x.size} samples, expected more than {order} (for cov)")
    share = 1 if cov == "unscaled" else squares / (x.size - order)
    return found, base * share if y.ndim == 1 else base[:, :, None] * share


def vander(x: Array, /, N: int | None = None, increasing: bool = False) -> Array:
    """Return powers of the elements of a vector: N columns, from the power N - 1 down to 0.

    Examples
    --------
    >>> print(xp.vander(xp.asarray([2, 3]), 3))
    [[4 2 1]
     [9 3 1]]
    """
    if checked("vander", "x", x).ndim != 1:
        raise ValueError(f"vander: x: got {x.ndim} dimensions, expected 1")
    n = x.size if N is None else integer("vander: N", N)
    dtype = result_type(x.dtype, "int64")
    powers = arange(n, dtype="int64", device=x.device)
    powers = astype(powers if increasing else flip(powers), dtype, copy=False)
    found: Array = CALLED["pow"](reshape(astype(x, dtype, copy=False), (-1, 1)), powers)
    return found
