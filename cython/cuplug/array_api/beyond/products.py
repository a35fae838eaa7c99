# SPDX-License-Identifier: Apache-2.0
"""Products by NumPy's rules for dimensions, and sums of products by Einstein's notation."""

from __future__ import annotations

import math
from string import ascii_lowercase, ascii_uppercase
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug._engine.array.promotion import kind_of
from cuplug.array_api.beyond.host_values import together
from cuplug.array_api.beyond.outputs import into_out
from cuplug.array_api.concatenation import concat
from cuplug.array_api.dtypes import astype, checked, integer, result_type
from cuplug.array_api.elementwise import binary, unary
from cuplug.array_api.filled import zeros_like
from cuplug.array_api.manipulation import moveaxis
from cuplug.array_api.products import cross as linalg_cross
from cuplug.array_api.products import matmul, on_host, tensordot
from cuplug.array_api.statistical import any as is_any
from cuplug.array_api.statistical import sum
from cuplug.array_api.views import axis_of, diagonal, permute_dims, reshape


def dot(x1: Array, x2: Array, /, out: Array | None = None) -> Array:
    """Return the sums of products over the last dimension of x1 and the second last of x2.

    For vectors and numbers, return their product.

    Examples
    --------
    >>> print(xp.dot(xp.asarray([1, 2]), xp.asarray([3, 4])))
    11
    """
    if not checked("dot", "x1", x1).ndim or not checked("dot", "x2", x2).ndim:
        found = binary("multiply", x1, x2)
    else:
        found = tensordot(x1, x2, axes=([-1], [-2 if x2.ndim > 1 else -1]))
    if out is not None and out.dtype != found.dtype:
        raise ValueError(f"dot: out: got {out.dtype}, expected {found.dtype}")
    return into_out(found, out)


def inner(x1: Array, x2: Array, /) -> Array:
    """Return the sums of products over the last dimensions.

    Examples
    --------
    >>> print(xp.inner(xp.asarray([1, 2]), xp.asarray([3, 4])))
    11
    """
    if not checked("inner", "x1", x1).ndim or not checked("inner", "x2", x2).ndim:
        return binary("multiply", x1, x2)
    return tensordot(x1, x2, axes=([-1], [-1]))


def vdot(x1: Array, x2: Array, /) -> Array:
    """Return the product of two arrays as vectors. The first one is conjugated.

    Examples
    --------
    >>> print(xp.vdot(xp.asarray([1j, 2.0]), xp.asarray([1j, 1.0])))
    (3+0j)
    """
    first = x1 if kind_of(checked("vdot", "x1", x1).dtype) == "bool" else unary("conj", x1)
    return dot(reshape(first, (-1,)), reshape(x2, (-1,)))


def outer(x1: Array, x2: Array, /) -> Array:
    """Return the products of each element of an array with each element of another, as a matrix.

    Examples
    --------
    >>> print(xp.outer(xp.asarray([1, 2]), xp.asarray([1, 10])))
    [[ 1 10]
     [ 2 20]]
    """
    first, second = checked("outer", "x1", x1), checked("outer", "x2", x2)
    return binary("multiply", reshape(first, (-1, 1)), reshape(second, (1, -1)))


def cross(
    a: Any, b: Any, /, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """Return cross products of vectors of 3 elements, or of 2, whose third element is 0.

    For two vectors of 2 elements, only the third element. `axis` sets all three dimensions.

    Examples
    --------
    >>> print(xp.cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0])))
    [0 0 1]
    """
    a, b = together("cross", a, b)
    axes = (axisa, axisb, axisc) if axis is None else (axis, axis, axis)
    left, right = (
        moveaxis(x, axis_of("cross", k, x.ndim), -1) for x, k in zip((a, b), axes, strict=False)
    )
    sizes = left.shape[-1], right.shape[-1]
    if not {*sizes} <= {2, 3}:
        raise ValueError(
            f"cross: got {sizes[0]} and {sizes[1]} elements, expected 2 or 3 along axis"
        )
    if sizes == (2, 2):
        return left[..., 0] * right[..., 1] - left[..., 1] * right[..., 0]
    left, right = (concat([x, zeros_like(x[..., :1])], axis=-1)[..., :3] for x in (left, right))
    found = linalg_cross(left, right)
    return moveaxis(found, -1, axis_of("cross", axes[2], found.ndim))


def kron(x1: Any, x2: Any, /) -> Array:
    """Return the Kronecker product: each element of x1 times all of x2, as a block.

    Examples
    --------
    >>> print(xp.kron(xp.asarray([1, 10]), xp.asarray([1, 2])))
    [ 1  2 10 20]
    """
    x1, x2 = together("kron", x1, x2)
    ndim = max(x1.ndim, x2.ndim)
    shapes = [(*(1 for _ in range(ndim - x.ndim)), *x.shape) for x in (x1, x2)]
    rows, columns = (
        [n for pair in zip(*order, strict=True) for n in pair]
        for order in ((shapes[0], [1] * ndim), ([1] * ndim, shapes[1]))
    )
    found = binary("multiply", reshape(x1, rows), reshape(x2, columns))
    return reshape(found, [a * b for a, b in zip(*shapes, strict=True)])


# ---- Einstein's notation -------------------------------------------------------------------------

_LETTERS = ascii_uppercase + ascii_lowercase  # counted from 0


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: Array | None = None,
    dtype: Any = None,
    casting: Any = "safe",
    optimize: Any = "greedy",
) -> Array:
    """Return a sum of products in the form "ij,jk->ik"; on the host, by NumPy.

    Parameters
    ----------
    subscripts : str
        Letters for the dimensions of each operand, "..." for dimensions that broadcast; and after
        "->", letters for the result. If "->" is omitted, the letters that occur once, in order.
    *operands : array_like
        At least one is an array. If nothing is summed, the result of one operand is a view.
        Instead of subscripts, a list of numbers or `...` may follow each operand and the last one.
    out : Array, optional
    dtype : optional
        The dtype of the computation and of the result.
    casting : default "safe"
        The allowed conversions to `dtype`, by NumPy's names.
    optimize : default "greedy"
        The order of three or more operands, by `numpy.einsum_path`.

    Examples
    --------
    >>> print(xp.einsum("ij,j->i", xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 10])))
    [21 43]
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _from_lists(subscripts, *operands)
    if not operands:
        raise ValueError("einsum: got no operands, expected at least one")
    operands = tuple(together("einsum", *operands))
    if len(operands) == 1 and out is None:
        ((term, x),), result = _start(subscripts, operands)
        if {*term} == {*result}:
            return permute_dims(x, [term.index(c) for c in result])
    common = result_type(*operands)
    dtype = common if dtype is None else np.dtype(dtype)
    if not np.can_cast(common, dtype, casting):
        wanted = f"one that {common} becomes ({casting})"
        raise TypeError(f"einsum: dtype: got {dtype}, expected {wanted}")
    if dtype != common:
        operands = tuple(astype(x, dtype) for x in operands)
    if all(x.device.type == "cpu" for x in operands):
        found = np.einsum(subscripts, *[x.numpy() for x in operands], optimize=optimize)
        return into_out(astype(on_host(np.asarray(found)), dtype, copy=False), out)
    found = by_pairs(subscripts, [astype(x, dtype, copy=False) for x in operands], optimize)
    return into_out(found, out)


def _from_lists(*given: Any) -> tuple[str, Any]:
    """Return subscripts as text, and operands, from operands each followed by a list of numbers."""
    operands, lists = given[0 : len(given) & ~1 : 2], given[1::2]

    def letters(places: Any) -> str:
        places = places.tolist() if isinstance(places, (Array, np.ndarray)) else places
        if not isinstance(places, (list, tuple)):
            raise TypeError(f"einsum: got {places!r:.60}, expected a list of numbers or '...'")
        return "".join("..." if k is ... else _LETTERS[_number_of_letter(k)] for k in places)

    text = ",".join(map(letters, lists))
    return (text + "->" + letters(given[-1]) if len(given) % 2 else text), operands


def _number_of_letter(k: Any) -> int:
    number = integer("einsum: subscripts", k)
    if not 0 <= number < len(_LETTERS):
        raise ValueError(f"einsum: subscripts: got {number}, expected 0 <= number < 52")
    return number


def _start(subscripts: str, operands: Any) -> tuple[list[tuple[str, Array]], str]:
    """Return operands in which each letter occurs once, with these letters, and the result's."""
    terms, result = _read(subscripts, [x.ndim for x in operands])
    return [_once(term, x) for term, x in zip(terms, operands, strict=True)], result


def by_pairs(subscripts: str, operands: list[Array], optimize: Any) -> Array:
    """Return a sum of products as products of matrices, of two operands at a time."""
    parts, result = _start(subscripts, operands)
    stand_ins = [np.broadcast_to(np.int8(0), x.shape) for x in operands]
    path = np.einsum_path(subscripts, *stand_ins, optimize=optimize)[0][1:]
    for chosen in path:
        taken = [parts.pop(k) for k in sorted(chosen, reverse=True)][::-1]
        while len(taken) > 1:
            needed = set(result).union(*(term for term, _ in (*parts, *taken[2:])))
            taken[:2] = [_product(*taken[0], *taken[1], needed)]
        parts.append(_summed(*taken[0], set(result).union(*(term for term, _ in parts))))
    ((term, x),) = parts
    return permute_dims(x, [term.index(c) for c in result])


def _read(subscripts: str, ndims: list[int]) -> tuple[list[str], str]:
    """Return the letters of operands and of the result; unused letters replace "..."."""
    given, arrow, result = subscripts.replace(" ", "").partition("->")
    terms = given.split(",")
    if len(terms) != len(ndims):
        raise ValueError(f"einsum: got {len(terms)} subscripts, expected {len(ndims)} (operands)")
    n_dots = [ndim - len(term.replace("...", "")) for term, ndim in zip(terms, ndims, strict=True)]
    if any(n < 0 or (n and "..." not in t) for t, n in zip(terms, n_dots, strict=True)):
        raise ValueError(f"einsum: got {subscripts!r}, expected a letter for each dimension")
    extra = "".join(chr(0x3B1 + k) for k in range(max(n_dots)))
    terms = [t.replace("...", extra[len(extra) - n :]) for t, n in zip(terms, n_dots, strict=True)]
    if any(t.count(".") for t in terms) or (arrow and any(n_dots) and "..." not in result):
        raise ValueError(f"einsum: got {subscripts!r}, expected '...' once, and in the result")
    if not arrow:
        letters = "".join(terms)
        once = sorted(c for c in {*letters} - {*extra} if letters.count(c) == 1)
        return terms, extra + "".join(once)
    result = result.replace("...", extra)
    if len({*result}) != len(result) or not {*result} <= {*"".join(terms)}:
        raise ValueError(f"einsum: got {subscripts!r}, expected letters of operands once each")
    return terms, result


def _once(term: str, x: Array) -> tuple[str, Array]:
    """Return an operand in which each letter occurs once: the diagonal of repeated letters."""
    while len({*term}) < len(term):
        twice = next(c for c in term if term.count(c) > 1)
        first, second = term.index(twice), term.rindex(twice)
        rest = [k for k in range(x.ndim) if k not in (first, second)]
        x = diagonal(permute_dims(x, (*rest, first, second)))
        term = "".join(term[k] for k in rest) + twice
    return term, x


def _summed(term: str, x: Array, needed: set[str]) -> tuple[str, Array]:
    gone = tuple(k for k, c in enumerate(term) if c not in needed)
    if not gone:
        return term, x
    total = is_any(x, axis=gone) if kind_of(x.dtype) == "bool" else sum(x, axis=gone, dtype=x.dtype)
    return "".join(c for c in term if c in needed), total


def _product(a: str, x: Array, b: str, y: Array, needed: set[str]) -> tuple[str, Array]:
    """Return the product of two operands, summed over common letters that are not needed later."""
    (a, x), (b, y) = _summed(a, x, needed | {*b}), _summed(b, y, needed | {*a})
    sizes = dict(zip(a, x.shape, strict=True))
    for c, n in zip(b, y.shape, strict=True):  # a dimension of size 1 broadcasts
        sizes[c] = n if sizes.get(c, 1) == 1 else sizes[c]
    for term, own in ((a, x), (b, y)):
        ones = [k for k, c in enumerate(term) if own.shape[k] == 1 != sizes[c]]
        if ones:
            return _by_elements(a, x, b, y, needed)
    both = [c for c in a if c in b]
    loop, summed = [c for c in both if c in needed], [c for c in both if c not in needed]
    rows, columns = [c for c in a if c not in both], [c for c in b if c not in both]
    left = _grouped(a, x, sizes, loop, rows, summed)
    right = _grouped(b, y, sizes, loop, summed, columns)
    found = matmul(left, right) if summed else binary("multiply", left, right)
    order = loop + rows + columns
    return "".join(order), reshape(found, [sizes[c] for c in order])


def _grouped(term: str, x: Array, sizes: dict[str, int], *groups: list[str]) -> Array:
    turned = permute_dims(x, [term.index(c) for group in groups for c in group])
    return reshape(turned, [math.prod(sizes[c] for c in group) for group in groups])


def _by_elements(a: str, x: Array, b: str, y: Array, needed: set[str]) -> tuple[str, Array]:
    order = a + "".join(c for c in b if c not in a)

    def spread(term: str, own: Array) -> Array:
        turned = permute_dims(own, [term.index(c) for c in order if c in term])
        return reshape(turned, [own.shape[term.index(c)] if c in term else 1 for c in order])

    return _summed(order, binary("multiply", spread(a, x), spread(b, y)), needed)
