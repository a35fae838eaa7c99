# SPDX-License-Identifier: Apache-2.0
"""Functions of arrays that NumPy and CuPy have as methods, under the same names."""

from cuplug._engine.array.arithmetic cimport functions
from cuplug._engine.array.buffer cimport Buffer, check_writable

import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import partial

from numpy import can_cast

from cuplug._engine import provider
from cuplug._engine.array.arrayprint import as_html


cdef class Methods(Arithmetic):
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

    # ---- Values ------------------------------------------------------------------------------

    def item(self, *index):
        """Return one element as a number of Python: the only one, or by its number or position."""
        found = functions().element(self, index) if index else self
        if found.size != 1:
            raise ValueError(f"cuplug.Array: item: got shape {self.shape}, expected one element")
        return found.numpy().item()

    def tolist(self):
        """Return the elements as numbers of Python, in lists of lists."""
        return self.numpy().tolist()

    def tobytes(self, order: str = "C") -> bytes:
        """Return the bytes of the elements, in C order or another one."""
        return self.ravel(order).numpy().tobytes()

    def copy(self, order: str = "C") -> Array:
        """Return a new array of the same elements, in C order or, for "F", in Fortran's."""
        if order != "C" and functions().is_reversed(self, "copy", order):
            return functions().copied(self.transpose()).transpose()
        return functions().copied(self)

    def fill(self, value):
        """Set all elements to a number."""
        self[...] = value

    def astype(self, dtype, copy=True, *, casting="unsafe", order: str = "K") -> Array:
        """Return the elements in a dtype; the array itself if it has it and `copy` is false.

        Conversions that `casting`, as of `numpy.can_cast`, rules out raise TypeError. `order`
        is that of the elements in memory: "C", "F", or by default their own.
        """
        if casting != "unsafe" and not can_cast(self.dtype, dtype, casting):
            wanted = f"a conversion that is {casting!r}"
            raise TypeError(f"astype: dtype: got {dtype} for {self.dtype}, expected {wanted}")
        of = standard().astype
        found = of(self, dtype) if copy is True else of(self, dtype, copy=copy)
        return found if order == "K" else functions().in_order(found, "astype", order)

    def view(self, dtype=None) -> Array:
        """Return a view; with `dtype`, of the bytes as elements of it, along the last dimension."""
        return self[...] if dtype is None else functions().viewed(self, dtype)

    @property
    def flat(self):
        """The elements in C order, to be read, iterated over and assigned."""
        return functions().Flat(self)

    @flat.setter
    def flat(self, values):
        functions().Flat(self)[...] = values

    @property
    def base(self):
        """The owner of the memory: another array, or an object of another library; else None."""
        return (<Buffer>self).owner

    @property
    def flags(self):
        """The layout: `flags.c_contiguous`, `flags["F_CONTIGUOUS"]` and others."""
        return functions().Flags(self, not (<Buffer>self).is_read_only)

    def put(self, indices, values, mode="raise"):
        """Write values, which are repeated if they are fewer, at positions in C order.

        Positions out of range wrap or are clipped with `mode` "wrap" or "clip".
        """
        functions().put(self, indices, values, mode)

    # ---- Each element ------------------------------------------------------------------------

    @property
    def real(self) -> Array:
        """The real parts, as a view."""
        return functions().part(self, 0)

    @property
    def imag(self) -> Array:
        """The imaginary parts, as a view; zeros, of real numbers."""
        return functions().part(self, 1)

    @real.setter
    def real(self, values):
        functions().part(self, 0)[...] = values

    @imag.setter
    def imag(self, values):
        if self.dtype.kind != "c":
            raise TypeError(f"cuplug.Array: imag: got {self.dtype}, expected complex numbers")
        functions().part(self, 1)[...] = values

    def conjugate(self) -> Array:
        """Return `conj`."""
        return self.conj()

    def byteswap(self, inplace=False) -> Array:
        """Return the elements with their bytes in the reverse order, in new memory or in place."""
        return functions().byteswapped(self, inplace)

    def conj(self) -> Array:
        """Return the complex conjugate of each element."""
        return standard().conj(self)

    def round(self, decimals: int = 0, out: Array | None = None) -> Array:
        """Return each element rounded to so many decimals, halves to even."""
        return into(out, functions().rounded(self, decimals))

    def clip(self, min=None, max=None, out: Array | None = None) -> Array:
        """Return elements in the range from `min` to `max`, in the array's dtype."""
        return into(out, standard().clip(self, min, max))

    # ---- Shapes ------------------------------------------------------------------------------

    def reshape(self, *shape, copy: bool | None = None, order: str = "C") -> Array:
        """Return the elements, in C order or another one, in another shape: a view if possible."""
        wanted = one_or_several(shape)
        if order == "C" or not functions().is_reversed(self, "reshape", order):
            return standard().reshape(self, wanted, copy=copy)
        turned = tuple(wanted)[::-1] if isinstance(wanted, Iterable) else (wanted,)
        return standard().reshape(self.transpose(), turned, copy=copy).transpose()

    def ravel(self, order: str = "C") -> Array:
        """Return the elements, in C order or another one, as a contiguous line: a view if it is."""
        whole = self if order == "C" else functions().in_memory_order(self, order)
        line = whole.reshape(-1, order=order)
        return line if line.flags.c_contiguous else functions().copied(line)

    def flatten(self, order: str = "C") -> Array:
        """Return a copy of the elements, in C order or another one, in one dimension."""
        whole = self if order == "C" else functions().in_memory_order(self, order)
        return whole.reshape(-1, copy=True, order=order)

    def squeeze(self, axis=None) -> Array:
        """Return a view without dimensions of size 1, all of them by default."""
        if axis is None or (self.ndim == 0 and axis in (0, -1)):
            axis = tuple([k for k, n in enumerate(self.shape) if n == 1])
        return standard().squeeze(self, axis)

    def transpose(self, *axes) -> Array:
        """Return a view with the dimensions in another order, in reverse by default."""
        reverse = axes in ((), (None,))
        return functions().permute_dims(
            self, range(self.ndim)[::-1] if reverse else one_or_several(axes)
        )

    def swapaxes(self, axis1: int, axis2: int) -> Array:
        """Return a view with two dimensions exchanged."""
        return functions().exchanged(self, axis1, axis2)

    def repeat(self, repeats, axis: int | None = None) -> Array:
        """Return each element, or each part along a dimension, several times."""
        return standard().repeat(self, repeats, axis=axis)

    def take(
        self, indices, axis: int | None = None, out: Array | None = None, mode: str = "raise"
    ) -> Array:
        """Return the elements at positions, counted in C order or along a dimension.

        Positions out of range wrap or are clipped with `mode` "wrap" or "clip".
        """
        whole = self.ravel() if axis is None or (self.ndim == 0 and axis in (0, -1)) else self
        places = standard().asarray(indices, device=self.device)
        if mode != "raise":
            n = whole.shape[functions().axis_of("take", axis or 0, whole.ndim)]
            places = functions().within("take", places, n, mode)
        return into(out, standard().take(whole, places, axis=axis))

    def choose(self, choices, out: Array | None = None, mode: str = "raise") -> Array:
        """Return elements of several arrays; each element is the number of one of these."""
        return standard().choose(self, choices, out, mode)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        """Return diagonals of two dimensions, as a view."""
        return standard().diagonal(self, offset, axis1, axis2)

    def compress(self, condition, axis: int | None = None) -> Array:
        """Return parts along a dimension, or elements in C order, for which a condition holds."""
        return standard().compress(condition, self, axis)

    # ---- All elements, or those along dimensions -----------------------------------------------

    def sum(
        self, axis=None, dtype=None, out: Array | None = None, keepdims=False, initial=None,
        where=True,
    ) -> Array:
        """Return the sum of `initial` and the elements that the mask `where` selects."""
        of, dtype = reducing("sum", initial, where), dtype_for(self, dtype, out)
        return into(out, of(self, axis=axis, dtype=dtype, keepdims=keepdims))

    def prod(
        self, axis=None, dtype=None, out: Array | None = None, keepdims=False, initial=None,
        where=True,
    ) -> Array:
        """Return the product; arguments as of `sum`."""
        of, dtype = reducing("prod", initial, where), dtype_for(self, dtype, out)
        return into(out, of(self, axis=axis, dtype=dtype, keepdims=keepdims))

    def mean(
        self, axis=None, dtype=None, out: Array | None = None, keepdims=False, *, where=True
    ) -> Array:
        """Return the arithmetic mean of the elements that the mask `where` selects."""
        x = self if dtype is None else functions().in_floats("mean", self, dtype)
        of = reducing("mean", None, where)
        return into(out, of(x, axis=axis, keepdims=keepdims))

    def var(
        self, axis=None, dtype=None, out: Array | None = None, ddof: float = 0, keepdims=False, *,
        where=True, correction: float | None = None,
    ) -> Array:
        """Return the variance, of n - ddof degrees of freedom; `correction` is another name."""
        x = self if dtype is None else functions().in_floats("var", self, dtype)
        of, ddof = reducing("var", None, where), ddof if correction is None else correction
        return into(out, of(x, axis=axis, correction=ddof, keepdims=keepdims))

    def std(
        self, axis=None, dtype=None, out: Array | None = None, ddof: float = 0, keepdims=False, *,
        where=True, correction: float | None = None,
    ) -> Array:
        """Return the standard deviation; arguments as of `var`."""
        x = self if dtype is None else functions().in_floats("std", self, dtype)
        of, ddof = reducing("std", None, where), ddof if correction is None else correction
        return into(out, of(x, axis=axis, correction=ddof, keepdims=keepdims))

    def max(
        self, axis=None, out: Array | None = None, keepdims=False, initial=None, where=True
    ) -> Array:
        """Return the maximum of `initial` and the elements that the mask `where` selects."""
        return into(out, reducing("max", initial, where)(self, axis=axis, keepdims=keepdims))

    def min(
        self, axis=None, out: Array | None = None, keepdims=False, initial=None, where=True
    ) -> Array:
        """Return the minimum; arguments as of `max`."""
        return into(out, reducing("min", initial, where)(self, axis=axis, keepdims=keepdims))

    def any(self, axis=None, out: Array | None = None, keepdims=False, *, where=True) -> Array:
        """Return whether any element that the mask `where` selects is not 0."""
        return into(out, reducing("any", None, where)(self, axis=axis, keepdims=keepdims))

    def all(self, axis=None, out: Array | None = None, keepdims=False, *, where=True) -> Array:
        """Return whether no element that the mask `where` selects is 0."""
        return into(out, reducing("all", None, where)(self, axis=axis, keepdims=keepdims))

    def argmax(self, axis=None, out: Array | None = None, keepdims=False) -> Array:
        """Return the index of the first maximum."""
        return into(out, standard().argmax(self, axis=axis, keepdims=keepdims))

    def argmin(self, axis=None, out: Array | None = None, keepdims=False) -> Array:
        """Return the index of the first minimum."""
        return into(out, standard().argmin(self, axis=axis, keepdims=keepdims))

    def ptp(self, axis=None, out: Array | None = None, keepdims=False) -> Array:
        """Return the difference between the maximum and the minimum."""
        return into(out, standard().ptp(self, axis, keepdims=keepdims))

    def dot(self, other: Array) -> Array:
        """Return the sums of products over the last dimension and the other's second last."""
        return standard().dot(self, other)

    def trace(
        self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype=None, out: Array | None = None
    ) -> Array:
        """Return the sums of `diagonal`."""
        return into(out, standard().trace(self, offset, axis1, axis2, dtype))

    # ---- In order ----------------------------------------------------------------------------

    def cumsum(self, axis: int | None = None, dtype=None, out: Array | None = None) -> Array:
        """Return the sums of the elements up to each one, in C order by default."""
        whole, axis = (self.ravel(), 0) if axis is None else (self, axis)
        return into(out, as_out(standard().cumulative_sum(whole, axis=axis, dtype=dtype), out))

    def cumprod(self, axis: int | None = None, dtype=None, out: Array | None = None) -> Array:
        """Return the products of the elements up to each one, in C order by default."""
        whole, axis = (self.ravel(), 0) if axis is None else (self, axis)
        return into(out, as_out(standard().cumulative_prod(whole, axis=axis, dtype=dtype), out))

    def sort(self, axis: int = -1, kind=None, *, descending=False, stable=True):
        """Sort the elements in place; NaN is larger than all numbers.

        All kinds of NumPy give the order of the stable one.
        """
        check_kind("sort", kind)
        check_writable(self, "sort")
        functions().assign(self, standard().sort(self, axis=axis, descending=descending))

    def argsort(self, axis: int | None = -1, kind=None, *, descending=False, stable=True) -> Array:
        """Return the indices that sort the elements stably."""
        check_kind("argsort", kind)
        whole, along = (self.ravel(), 0) if axis is None or self.ndim == 0 else (self, axis)
        return standard().argsort(whole, axis=along, descending=descending)

    def partition(self, kth, axis: int | None = -1):
        """Sort the elements in place, which puts the elements of rank `kth` in their positions."""
        check_writable(self, "partition")
        functions().assign(self, standard().partition(self, kth, axis))

    def argpartition(self, kth, axis: int | None = -1) -> Array:
        """Return the positions of `partition`."""
        return standard().argpartition(self, kth, axis)

    def searchsorted(self, v, side: str = "left", sorter: Array | None = None) -> Array:
        """Return the positions at which elements would be inserted into this ascending array."""
        values = standard().asarray(v, device=self.device)
        return standard().searchsorted(self, values, side=side, sorter=sorter)

    def nonzero(self) -> tuple[Array, ...]:
        """Return the positions of elements that are not 0, an array for each dimension."""
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


cdef object one_or_several(tuple given):
    """Return the numbers, which may also be passed as one sequence."""
    return given[0] if len(given) == 1 and isinstance(given[0], Iterable) else given


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
