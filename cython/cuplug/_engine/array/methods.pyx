# SPDX-License-Identifier: Apache-2.0
"""Functions of arrays that NumPy and CuPy have as methods, by the names that they have there."""

from cuplug._engine.array.arithmetic cimport functions

import sys
from collections.abc import Iterable
from contextlib import suppress

from numpy import can_cast

from cuplug._engine import provider


cdef class Methods(Arithmetic):
    """What is asked of arrays by a dot: all is computed by `cuplug.array_api`."""

    @property
    def __array_priority__(self):
        """Above NumPy's: dask and others ask the first array for what joins all.

        Dask asks before it joins blocks or divides sums, and then knows cuplug's arrays.
        """
        if "dask.array" in sys.modules:
            with suppress(ImportError):  # of a dask that is older than what the module needs
                provider("dask types")
        return 100.0

    # ---- Values ------------------------------------------------------------------------------

    def item(self):
        """Return the only element as a number of Python's."""
        if self.size != 1:
            raise ValueError(f"cuplug.Array: item: seen shape {self.shape}, wanted one element")
        return self.numpy().item()

    def tolist(self):
        """Return the elements as numbers of Python's, in lists of lists."""
        return self.numpy().tolist()

    def tobytes(self):
        """Return the bytes of the elements in C order."""
        return self.numpy().tobytes()

    def copy(self):
        """Return a new array of the same elements, in C order."""
        return functions().copied(self)

    def fill(self, value):
        """Set all elements to a number."""
        self[...] = value

    def astype(self, dtype, copy=True):
        """Return the elements in a dtype; itself, where it has that and `copy` is false."""
        of = standard().astype
        return of(self, dtype) if copy is True else of(self, dtype, copy=copy)

    # ---- Each element ------------------------------------------------------------------------

    @property
    def real(self):
        """The real parts, as a view."""
        return functions().part(self, 0)

    @property
    def imag(self):
        """The imaginary parts, as a view; zeros, of real numbers."""
        return functions().part(self, 1)

    def conj(self):
        """Return the complex conjugate of each element."""
        return standard().conj(self)

    def round(self, decimals=0, out=None):
        """Return each element rounded to so many decimals, halves to even."""
        return into(out, functions().rounded(self, decimals))

    def clip(self, min=None, max=None, out=None):
        """Return elements in the range from `min` to `max`, in the array's dtype."""
        return into(out, standard().clip(self, min, max))

    # ---- Shapes ------------------------------------------------------------------------------

    def reshape(self, *shape, copy=None):
        """Return the elements in C order in another shape: a view unless that cannot be."""
        return standard().reshape(self, one_or_several(shape), copy=copy)

    def ravel(self):
        """Return the elements in C order in one dimension: a view unless that cannot be."""
        return standard().reshape(self, (-1,))

    def flatten(self):
        """Return a copy of the elements in C order in one dimension."""
        return standard().reshape(self, (-1,), copy=True)

    def squeeze(self, axis=None):
        """Return a view without dimensions of size 1, all of them by default."""
        if axis is None:
            axis = tuple([k for k, n in enumerate(self.shape) if n == 1])
        return standard().squeeze(self, axis)

    def transpose(self, *axes):
        """Return a view with the dimensions in another order, in reverse by default."""
        reverse = axes in ((), (None,))
        return functions().permute_dims(
            self, range(self.ndim)[::-1] if reverse else one_or_several(axes)
        )

    def swapaxes(self, axis1, axis2):
        """Return a view with two dimensions exchanged."""
        return functions().exchanged(self, axis1, axis2)

    def repeat(self, repeats, axis=None):
        """Return each element, or each part along a dimension, several times."""
        return standard().repeat(self, repeats, axis=axis)

    def take(self, indices, axis=None):
        """Return the elements at positions, counted in C order or along a dimension."""
        whole = self.ravel() if axis is None else self
        return standard().take(whole, standard().asarray(indices, device=self.device), axis=axis)

    # ---- All elements, or those along dimensions -----------------------------------------------

    def sum(self, axis=None, dtype=None, out=None, keepdims=False):
        """Return the sum."""
        return into(out, standard().sum(self, axis=axis, dtype=dtype, keepdims=keepdims))

    def prod(self, axis=None, dtype=None, out=None, keepdims=False):
        """Return the product."""
        return into(out, standard().prod(self, axis=axis, dtype=dtype, keepdims=keepdims))

    def mean(self, axis=None, dtype=None, out=None, keepdims=False):
        """Return the arithmetic mean."""
        x = converted("mean", self, dtype)
        return into(out, standard().mean(x, axis=axis, keepdims=keepdims))

    def var(self, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, correction=None):
        """Return the variance, of n - ddof degrees of freedom; `correction` is another name."""
        x, ddof = converted("var", self, dtype), ddof if correction is None else correction
        return into(out, standard().var(x, axis=axis, correction=ddof, keepdims=keepdims))

    def std(self, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, correction=None):
        """Return the standard deviation; arguments as of `var`."""
        x, ddof = converted("std", self, dtype), ddof if correction is None else correction
        return into(out, standard().std(x, axis=axis, correction=ddof, keepdims=keepdims))

    def max(self, axis=None, out=None, keepdims=False):
        """Return the greatest element."""
        return into(out, standard().max(self, axis=axis, keepdims=keepdims))

    def min(self, axis=None, out=None, keepdims=False):
        """Return the least element."""
        return into(out, standard().min(self, axis=axis, keepdims=keepdims))

    def any(self, axis=None, out=None, keepdims=False):
        """Return whether any element is not 0."""
        return into(out, standard().any(self, axis=axis, keepdims=keepdims))

    def all(self, axis=None, out=None, keepdims=False):
        """Return whether no element is 0."""
        return into(out, standard().all(self, axis=axis, keepdims=keepdims))

    def argmax(self, axis=None, out=None, keepdims=False):
        """Return the position of the first greatest element."""
        return into(out, standard().argmax(self, axis=axis, keepdims=keepdims))

    def argmin(self, axis=None, out=None, keepdims=False):
        """Return the position of the first least element."""
        return into(out, standard().argmin(self, axis=axis, keepdims=keepdims))

    # ---- In order ----------------------------------------------------------------------------

    def cumsum(self, axis=None, dtype=None, out=None):
        """Return the sums of the elements up to each one, in C order by default."""
        whole, axis = (self.ravel(), 0) if axis is None else (self, axis)
        return into(out, standard().cumulative_sum(whole, axis=axis, dtype=dtype))

    def cumprod(self, axis=None, dtype=None, out=None):
        """Return the products of the elements up to each one, in C order by default."""
        whole, axis = (self.ravel(), 0) if axis is None else (self, axis)
        return into(out, standard().cumulative_prod(whole, axis=axis, dtype=dtype))

    def sort(self, axis=-1, *, descending=False):
        """Put the elements in order, in place; NaN is larger than all numbers."""
        functions().assign(self, standard().sort(self, axis=axis, descending=descending))

    def argsort(self, axis=-1, *, descending=False):
        """Return the positions of the elements in order, of equal ones the first one first."""
        return standard().argsort(self, axis=axis, descending=descending)

    def nonzero(self):
        """Return the positions of elements that are not 0, an array for each dimension."""
        return standard().nonzero(self)


cdef object standard():
    """`cuplug.array_api`, imported when something is computed."""
    return functions().standard


cdef object one_or_several(tuple given):
    """Numbers, or the sequence of them in place of the first."""
    return given[0] if len(given) == 1 and isinstance(given[0], Iterable) else given


cdef object converted(str function, object x, object dtype):
    if dtype is None:
        return x
    result = x.astype(dtype, False)
    if result.dtype.kind in "biu":
        raise TypeError(f"{function}: dtype: seen {result.dtype}, wanted one of floats")
    return result


cdef object into(object out, object result):
    """A result, in the array that was given for it, if one was."""
    if out is None:
        return result
    if not isinstance(out, Methods) or out.shape != result.shape:
        seen = f"shape {out.shape}" if isinstance(out, Methods) else type(out).__name__
        raise TypeError(f"cuplug.Array: out: seen {seen}, wanted a cuplug.Array of {result.shape}")
    if not can_cast(result.dtype, out.dtype, "same_kind"):
        wanted = f"an array that holds {result.dtype}"
        raise TypeError(f"cuplug.Array: out: seen elements of {out.dtype}, wanted {wanted}")
    functions().assign(out, result)
    return out
