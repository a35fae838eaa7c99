# SPDX-License-Identifier: Apache-2.0
"""Functions of arrays that NumPy and CuPy have as methods, under the same names."""

from cuplug._engine.array.arithmetic cimport functions
from cuplug._engine.array.buffer cimport check_writable

import sys
from contextlib import suppress
from functools import partial

from numpy import can_cast

from cuplug._engine import provider
from cuplug._engine.array.arrayprint import as_html


cdef class Methods(Values):
    """Attributes and methods of arrays: `cuplug.array_api` computes all of them."""

    @property
    def __array_priority__(self):
        """A priority above NumPy's, as dask and others query the first array for `concatenate`.

        Dask queries it before it joins blocks or divides sums, and then registers cuplug's arrays.
        """
        if "dask.array" in sys.modules:
            with suppress(ImportError):  # a dask that is older than the module requires
                provider("dask types")
        return 100.0

    def _repr_html_(self):
        return as_html(self)

    # ---- Elements ----------------------------------------------------------------------------

    def round(self, decimals: int = 0, out: Array | None = None) -> Array:
        """Return each element rounded to so many decimals, halves to even.

        Examples
        --------
        >>> print(cuplug.asarray([1.25, 2.5]).round(1))
        [1.2 2.5]
        """
        return into(out, functions().rounded(self, decimals))

    def clip(self, min=None, max=None, out: Array | None = None) -> Array:
        """Return elements in the range from `min` to `max`, in the array's dtype.

        Examples
        --------
        >>> print(cuplug.asarray([3, 1, 2]).clip(2))
        [3 2 2]
        """
        return into(out, standard().clip(self, min, max))

    def take(
        self, indices, axis: int | None = None, out: Array | None = None, mode: str = "raise"
    ) -> Array:
        """Return the elements at positions, counted in C order or along a dimension.

        Positions out of range wrap or are clipped with `mode` "wrap" or "clip".

        Examples
        --------
        >>> print(cuplug.asarray([5, 6, 7]).take([2, 0]))
        [7 5]
        """
        whole = self.ravel() if axis is None or (self.ndim == 0 and axis in (0, -1)) else self
        places = standard().asarray(indices, device=self.device)
        if mode != "raise":
            n = whole.shape[functions().axis_of("take", axis or 0, whole.ndim)]
            places = functions().within("take", places, n, mode)
        return into(out, standard().take(whole, places, axis=axis))

    def choose(self, choices, out: Array | None = None, mode: str = "raise") -> Array:
        """Return elements of several arrays; each element is the number of one of these.

        Examples
        --------
        >>> print(cuplug.asarray([0, 1, 0]).choose([[1, 2, 3], [7, 8, 9]]))
        [1 8 3]
        """
        return standard().choose(self, choices, out, mode)

    # ---- All elements, or those along dimensions -----------------------------------------------

    def sum(
        self, axis=None, dtype=None, out: Array | None = None, keepdims=False, initial=None,
        where=True,
    ) -> Array:
        """Return the sum of `initial` and the elements that the mask `where` selects.

        Examples
        --------
        >>> print(cuplug.asarray([[1.0, 2.0], [3.0, 4.0]]).sum(axis=0))
        [4. 6.]
        """
        of, dtype = reducing("sum", initial, where), dtype_for(self, dtype, out)
        return into(out, of(self, axis=axis, dtype=dtype, keepdims=keepdims))

    def prod(
        self, axis=None, dtype=None, out: Array | None = None, keepdims=False, initial=None,
        where=True,
    ) -> Array:
        """Return the product; arguments as of `sum`.

        Examples
        --------
        >>> print(cuplug.asarray([[1.0, 2.0], [3.0, 4.0]]).prod())
        24.0
        """
        of, dtype = reducing("prod", initial, where), dtype_for(self, dtype, out)
        return into(out, of(self, axis=axis, dtype=dtype, keepdims=keepdims))

    def mean(
        self, axis=None, dtype=None, out: Array | None = None, keepdims=False, *, where=True
    ) -> Array:
        """Return the arithmetic mean of the elements that the mask `where` selects.

        Examples
        --------
        >>> print(cuplug.asarray([[1.0, 2.0], [3.0, 4.0]]).mean(axis=1))
        [1.5 3.5]
        """
        of = reducing("mean", None, where)
        x = self if dtype is None else functions().in_floats("mean", self, dtype)
        return into(out, of(x, axis=axis, keepdims=keepdims))

    def var(
        self, axis=None, dtype=None, out: Array | None = None, ddof: float = 0, keepdims=False, *,
        where=True, correction: float | None = None,
    ) -> Array:
        """Return the variance, of n - ddof degrees of freedom; `correction` is another name.

        Examples
        --------
        >>> print(cuplug.asarray([[1.0, 2.0], [3.0, 4.0]]).var())
        1.25
        """
        of = reducing("var", None, where)
        x = self if dtype is None else functions().in_floats("var", self, dtype)
        ddof = ddof if correction is None else correction
        return into(out, of(x, axis=axis, correction=ddof, keepdims=keepdims))

    def std(
        self, axis=None, dtype=None, out: Array | None = None, ddof: float = 0, keepdims=False, *,
        where=True, correction: float | None = None,
    ) -> Array:
        """Return the standard deviation; arguments as of `var`.

        Examples
        --------
        >>> print(cuplug.asarray([1.0, 3.0]).std())
        1.0
        """
        of = reducing("std", None, where)
        x = self if dtype is None else functions().in_floats("std", self, dtype)
        ddof = ddof if correction is None else correction
        return into(out, of(x, axis=axis, correction=ddof, keepdims=keepdims))

    def max(
        self, axis=None, out: Array | None = None, keepdims=False, initial=None, where=True
    ) -> Array:
        """Return the maximum of `initial` and the elements that the mask `where` selects.

        Examples
        --------
        >>> print(cuplug.asarray([[1.0, 2.0], [3.0, 4.0]]).max(axis=0))
        [3. 4.]
        """
        return into(out, reducing("max", initial, where)(self, axis=axis, keepdims=keepdims))

    def min(
        self, axis=None, out: Array | None = None, keepdims=False, initial=None, where=True
    ) -> Array:
        """Return the minimum; arguments as of `max`.

        Examples
        --------
        >>> print(cuplug.asarray([[1.0, 2.0], [3.0, 4.0]]).min(axis=0))
        [1. 2.]
        """
        return into(out, reducing("min", initial, where)(self, axis=axis, keepdims=keepdims))

    def any(self, axis=None, out: Array | None = None, keepdims=False, *, where=True) -> Array:
        """Return whether any element that the mask `where` selects is not 0.

        Examples
        --------
        >>> print(cuplug.asarray([0, 2]).any())
        True
        """
        return into(out, reducing("any", None, where)(self, axis=axis, keepdims=keepdims))

    def all(self, axis=None, out: Array | None = None, keepdims=False, *, where=True) -> Array:
        """Return whether no element that the mask `where` selects is 0.

        Examples
        --------
        >>> print(cuplug.asarray([0, 2]).all())
        False
        """
        return into(out, reducing("all", None, where)(self, axis=axis, keepdims=keepdims))

    def argmax(self, axis=None, out: Array | None = None, keepdims=False) -> Array:
        """Return the index of the first maximum.

        Examples
        --------
        >>> print(cuplug.asarray([3, 1, 2]).argmax())
        0
        """
        return into(out, standard().argmax(self, axis=axis, keepdims=keepdims))

    def argmin(self, axis=None, out: Array | None = None, keepdims=False) -> Array:
        """Return the index of the first minimum.

        Examples
        --------
        >>> print(cuplug.asarray([3, 1, 2]).argmin())
        1
        """
        return into(out, standard().argmin(self, axis=axis, keepdims=keepdims))

    def ptp(self, axis=None, out: Array | None = None, keepdims=False) -> Array:
        """Return the difference between the maximum and the minimum.

        Examples
        --------
        >>> print(cuplug.asarray([3, 1, 2]).ptp())
        2
        """
        return into(out, standard().ptp(self, axis, keepdims=keepdims))

    def dot(self, other: Array) -> Array:
        """Return the sums of products over the last dimension and the other's second last.

        Examples
        --------
        >>> print(cuplug.asarray([[1.0, 2.0], [3.0, 4.0]]).dot(cuplug.asarray([1.0, 1.0])))
        [3. 7.]
        """
        return standard().dot(self, other)

    def trace(
        self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype=None, out: Array | None = None
    ) -> Array:
        """Return the sums of `diagonal`.

        Examples
        --------
        >>> print(cuplug.asarray([[1.0, 2.0], [3.0, 4.0]]).trace())
        5.0
        """
        return into(out, standard().trace(self, offset, axis1, axis2, dtype))

    # ---- In order ----------------------------------------------------------------------------

    def cumsum(self, axis: int | None = None, dtype=None, out: Array | None = None) -> Array:
        """Return the sums of the elements up to each one, in C order by default.

        Examples
        --------
        >>> print(cuplug.asarray([3, 1, 2]).cumsum())
        [3 4 6]
        """
        whole, axis = (self.ravel(), 0) if axis is None else (self, axis)
        return into(out, as_out(standard().cumulative_sum(whole, axis=axis, dtype=dtype), out))

    def cumprod(self, axis: int | None = None, dtype=None, out: Array | None = None) -> Array:
        """Return the products of the elements up to each one, in C order by default.

        Examples
        --------
        >>> print(cuplug.asarray([3, 1, 2]).cumprod())
        [3 3 6]
        """
        whole, axis = (self.ravel(), 0) if axis is None else (self, axis)
        return into(out, as_out(standard().cumulative_prod(whole, axis=axis, dtype=dtype), out))

    def sort(self, axis: int = -1, kind=None, *, descending=False, stable=True):
        """Sort the elements in place; NaN is larger than all numbers.

        All kinds of NumPy give the order of the stable one.

        Examples
        --------
        >>> x = cuplug.asarray([3, 1, 2])
        >>> x.sort()
        >>> print(x)
        [1 2 3]
        """
        check_kind("sort", kind)
        check_writable(self, "sort")
        functions().assign(self, standard().sort(self, axis=axis, descending=descending))

    def argsort(self, axis: int | None = -1, kind=None, *, descending=False, stable=True) -> Array:
        """Return the indices that sort the elements stably.

        Examples
        --------
        >>> print(cuplug.asarray([3, 1, 2]).argsort())
        [1 2 0]
        """
        check_kind("argsort", kind)
        whole, along = (self.ravel(), 0) if axis is None or self.ndim == 0 else (self, axis)
        return standard().argsort(whole, axis=along, descending=descending)

    def partition(self, kth, axis: int | None = -1):
        """Sort the elements in place, which puts the elements of rank `kth` in their positions.

        Examples
        --------
        >>> x = cuplug.asarray([3, 1, 2])
        >>> x.partition(1)
        >>> print(x)
        [1 2 3]
        """
        check_writable(self, "partition")
        functions().assign(self, standard().partition(self, kth, axis))

    def argpartition(self, kth, axis: int | None = -1) -> Array:
        """Return the positions of `partition`.

        Examples
        --------
        >>> print(cuplug.asarray([3, 1, 2]).argpartition(0)[0])
        1
        """
        return standard().argpartition(self, kth, axis)

    def searchsorted(self, v, side: str = "left", sorter: Array | None = None) -> Array:
        """Return the positions at which elements would be inserted into this ascending array.

        Examples
        --------
        >>> print(cuplug.asarray([1, 3, 5]).searchsorted(cuplug.asarray([3, 4])))
        [1 2]
        """
        values = standard().asarray(v, device=self.device)
        return standard().searchsorted(self, values, side=side, sorter=sorter)

    def nonzero(self) -> tuple[Array, ...]:
        """Return the positions of elements that are not 0, an array for each dimension.

        Examples
        --------
        >>> [positions] = cuplug.asarray([0, 5, 6]).nonzero()
        >>> print(positions)
        [1 2]
        """
        return standard().nonzero(self)


cdef object standard():
    """Return `cuplug.array_api`, imported at the first use."""
    return functions().standard


cdef object reducing(str name, object initial, object where):
    """Return the function of a reduction, of some elements if `initial` or `where` is given."""
    if initial is None and where is True:
        return getattr(standard(), name)
    return partial(functions().reduced_part, name, initial, where)


cdef int check_kind(str function, object kind) except -1:
    if kind not in (None, "quicksort", "mergesort", "heapsort", "stable"):
        raise ValueError(f"{function}: kind: got {kind!r}, expected one of numpy.sort")
    return 0


cdef object dtype_for(object x, object dtype, object out):
    """Return the dtype of sums, by default the dtype of `out`, which must hold the numbers."""
    if dtype is None and isinstance(out, Methods) and can_cast(x.dtype, out.dtype, "same_kind"):
        return out.dtype
    return dtype


cdef object as_out(object result, object out):
    """Convert integers to bools for a bool array: sums are or, products are and."""
    if isinstance(out, Methods) and out.dtype.kind == "b" and result.dtype.kind in "iu":
        return result != 0
    return result


cdef object into(object out, object result):
    """Return a result, copied into `out` if it was given."""
    if out is None:
        return result
    if not isinstance(out, Methods) or out.shape != result.shape:
        seen = f"shape {out.shape}" if isinstance(out, Methods) else type(out).__name__
        raise TypeError(f"cuplug.Array: out: got {seen}, expected a cuplug.Array of {result.shape}")
    if not can_cast(result.dtype, out.dtype, "same_kind"):
        wanted = f"an array that holds {result.dtype}"
        raise TypeError(f"cuplug.Array: out: got elements of {out.dtype}, expected {wanted}")
    check_writable(out, "cuplug.Array: out")
    functions().assign(out, result)
    return out
