# SPDX-License-Identifier: Apache-2.0
"""Copies and views of the elements of an array, in other memory, dtypes and shapes."""

from cuplug._engine.array.arithmetic cimport functions
from cuplug._engine.array.buffer cimport Buffer, is_contiguous, is_on_gpu
from cuplug._engine.array.copies cimport host_values, take_numpy
from cuplug._engine.array.layout cimport repeats_elements

from collections.abc import Iterable

from numpy import can_cast


cdef class Values(Arithmetic):
    """Attributes and methods that copy, view or write elements, or change dtype and shape."""

    def get(self, *, out: NDArray[Any] | None = None, stream=None) -> NDArray[Any]:
        """Copy to a NumPy array: the method `numpy` under its name in CuPy and PyCUDA.

        Examples
        --------
        >>> cuplug.asarray([1.0, 2.0]).get()
        array([1., 2.])
        """
        return self.numpy(out=out, stream=stream)

    def set(self, values, *, stream=None):
        """Copy an array of the host, of the same shape, into this one, converted to its dtype.

        Parameters
        ----------
        values : array_like
            Anything that numpy.asarray accepts.
        stream : as in calls of operators, optional
            The copy is made after the work on it.

        Examples
        --------
        >>> x = cuplug.empty(2)
        >>> x.set([3, 4])
        >>> print(x)
        [3. 4.]
        """
        host = host_values("set: values", values, self.dtype)
        if host.shape != self.shape:
            raise ValueError(f"set: values: got shape {host.shape}, expected {self.shape}")
        if repeats_elements(&self.tensor):
            raise ValueError("set: got an array whose elements share memory, expected a copy of it")
        if is_contiguous(&self.tensor) or not is_on_gpu(&self.tensor):
            take_numpy(self, host, stream)
        else:
            functions().assign(self, functions().asarray(host, device=self.device))

    def to_device(self, device, /, *, stream=None) -> Array:
        """Return the array on a device, "cpu" or "cuda:1": itself if it is on that device.

        Examples
        --------
        >>> x = cuplug.asarray([1.0, 2.0])
        >>> x.to_device("cpu").device
        cuplug.Device('cpu')
        """
        return functions().asarray(self, device=device)

    def item(self, *index):
        """Return one element as a number of Python: the only one, or by its number or position.

        Examples
        --------
        >>> cuplug.asarray([3, 4]).item(1)
        4
        """
        found = functions().element(self, index) if index else self
        if found.size != 1:
            raise ValueError(f"cuplug.Array: item: got shape {self.shape}, expected one element")
        return found.numpy().item()

    def tolist(self):
        """Return the elements as numbers of Python, in lists of lists.

        Examples
        --------
        >>> cuplug.asarray([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
        """
        return self.numpy().tolist()

    def tobytes(self, order: str = "C") -> bytes:
        """Return the bytes of the elements, in C order or another one.

        Examples
        --------
        >>> cuplug.asarray([65, 66], dtype="uint8").tobytes()
        b'AB'
        """
        line = self if order == "C" else self.ravel(order)
        return line.numpy().tobytes()

    def copy(self, order: str = "C") -> Array:
        """Return a new array of the same elements, in C order or, for "F", in Fortran's.

        Examples
        --------
        >>> cuplug.asarray([[1.0, 2.0], [3.0, 4.0]]).copy("F").strides
        (8, 16)
        """
        if order != "C" and functions().is_reversed(self, "copy", order):
            return functions().copied(self.transpose()).transpose()
        return functions().copied(self)

    def fill(self, value):
        """Set all elements to a number.

        Examples
        --------
        >>> x = cuplug.empty(3)
        >>> x.fill(2)
        >>> print(x)
        [2. 2. 2.]
        """
        self[...] = value

    def astype(self, dtype, copy=True, *, casting="unsafe", order: str = "K") -> Array:
        """Return the elements in a dtype; the array itself if it has it and `copy` is false.

        Conversions that `casting`, as of `numpy.can_cast`, rules out raise TypeError. `order`
        is that of the elements in memory: "C", "F", or by default their own.

        Examples
        --------
        >>> print(cuplug.asarray([1.5, -2.5]).astype("int32"))
        [ 1 -2]
        """
        if casting != "unsafe" and not can_cast(self.dtype, dtype, casting):
            wanted = f"a conversion that is {casting!r}"
            raise TypeError(f"astype: dtype: got {dtype} for {self.dtype}, expected {wanted}")
        of = functions().standard.astype
        found = of(self, dtype) if copy is True else of(self, dtype, copy=copy)
        return found if order == "K" else functions().in_order(found, "astype", order)

    def view(self, dtype=None) -> Array:
        """Return a view; with `dtype`, of the bytes as elements of it, along the last dimension.

        Examples
        --------
        >>> print(cuplug.asarray([1.0], dtype="float32").view("uint16"))
        [    0 16256]
        """
        return self[...] if dtype is None else functions().viewed(self, dtype)

    @property
    def flat(self):
        """The elements in C order, to be read, iterated over and assigned.

        Examples
        --------
        >>> float(cuplug.asarray([[1.0, 2.0], [3.0, 4.0]]).flat[2])
        3.0
        """
        return functions().Flat(self)

    @flat.setter
    def flat(self, values):
        functions().Flat(self)[...] = values

    @property
    def base(self):
        """The owner of the memory: another array, or an object of another library; else None.

        Examples
        --------
        >>> x = cuplug.empty(3)
        >>> x[1:].base is x
        True
        """
        return (<Buffer>self).owner

    @property
    def flags(self):
        """The layout: `flags.c_contiguous`, `flags["F_CONTIGUOUS"]` and others.

        Examples
        --------
        >>> cuplug.empty((2, 3)).T.flags.c_contiguous
        False
        """
        return functions().Flags(self, not (<Buffer>self).is_read_only)

    def put(self, indices, values, mode="raise"):
        """Write values, which are repeated if they are fewer, at positions in C order.

        Positions out of range wrap or are clipped with `mode` "wrap" or "clip".

        Examples
        --------
        >>> x = cuplug.asarray([[1, 2], [3, 4]])
        >>> x.put([0, 3], [7, 8])
        >>> print(x.ravel())
        [7 2 3 8]
        """
        functions().put(self, indices, values, mode)

    @property
    def real(self) -> Array:
        """The real parts, as a view.

        Examples
        --------
        >>> print(cuplug.asarray([1 + 2j, 3 - 4j]).real)
        [1. 3.]
        """
        return functions().part(self, 0)

    @property
    def imag(self) -> Array:
        """The imaginary parts, as a view; zeros, of real numbers.

        Examples
        --------
        >>> print(cuplug.asarray([1 + 2j, 3 - 4j]).imag)
        [ 2. -4.]
        """
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
        """Return `conj`.

        Examples
        --------
        >>> print(cuplug.asarray([1 + 2j]).conjugate())
        [1.-2.j]
        """
        return self.conj()

    def byteswap(self, inplace=False) -> Array:
        """Return the elements with their bytes in the reverse order, in new memory or in place.

        Examples
        --------
        >>> print(cuplug.asarray([1, 2], dtype="int16").byteswap())
        [256 512]
        """
        return functions().byteswapped(self, inplace)

    def conj(self) -> Array:
        """Return the complex conjugate of each element.

        Examples
        --------
        >>> print(cuplug.asarray([1 + 2j]).conj())
        [1.-2.j]
        """
        return functions().standard.conj(self)

    # ---- Shapes ------------------------------------------------------------------------------

    def reshape(self, *shape, copy: bool | None = None, order: str = "C") -> Array:
        """Return the elements, in C order or another one, in another shape: a view if possible.

        Examples
        --------
        >>> cuplug.empty((2, 6)).reshape(3, -1).shape
        (3, 4)
        """
        wanted = one_or_several(shape)
        if order == "C" or not functions().is_reversed(self, "reshape", order):
            return functions().standard.reshape(self, wanted, copy=copy)
        turned = tuple(wanted)[::-1] if isinstance(wanted, Iterable) else (wanted,)
        return functions().standard.reshape(self.transpose(), turned, copy=copy).transpose()

    def ravel(self, order: str = "C") -> Array:
        """Return the elements, in C order or another one, as a contiguous line: a view if it is.

        Examples
        --------
        >>> print(cuplug.asarray([[1, 2], [3, 4]]).ravel("F"))
        [1 3 2 4]
        """
        whole = self if order == "C" else functions().in_memory_order(self, order)
        line = whole.reshape(-1, order=order)
        return line if line.flags.c_contiguous else functions().copied(line)

    def flatten(self, order: str = "C") -> Array:
        """Return a copy of the elements, in C order or another one, in one dimension.

        Examples
        --------
        >>> print(cuplug.asarray([[1, 2], [3, 4]]).flatten())
        [1 2 3 4]
        """
        whole = self if order == "C" else functions().in_memory_order(self, order)
        return whole.reshape(-1, copy=True, order=order)

    def squeeze(self, axis=None) -> Array:
        """Return a view without dimensions of size 1, all of them by default.

        Examples
        --------
        >>> cuplug.empty((1, 3, 1)).squeeze().shape
        (3,)
        """
        if axis is None or (self.ndim == 0 and axis in (0, -1)):
            axis = tuple([k for k, n in enumerate(self.shape) if n == 1])
        return functions().standard.squeeze(self, axis)

    def transpose(self, *axes) -> Array:
        """Return a view with the dimensions in another order, in reverse by default.

        Examples
        --------
        >>> cuplug.empty((2, 3, 4)).transpose(1, 0, 2).shape
        (3, 2, 4)
        """
        reverse = axes in ((), (None,))
        return functions().permute_dims(
            self, range(self.ndim)[::-1] if reverse else one_or_several(axes)
        )

    def swapaxes(self, axis1: int, axis2: int) -> Array:
        """Return a view with two dimensions exchanged.

        Examples
        --------
        >>> cuplug.empty((2, 3, 4)).swapaxes(0, 2).shape
        (4, 3, 2)
        """
        return functions().exchanged(self, axis1, axis2)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        """Return diagonals of two dimensions, as a view.

        Examples
        --------
        >>> print(cuplug.asarray([[1, 2], [3, 4]]).diagonal())
        [1 4]
        """
        return functions().standard.diagonal(self, offset, axis1, axis2)

    def repeat(self, repeats, axis: int | None = None) -> Array:
        """Return each element, or each part along a dimension, several times.

        Examples
        --------
        >>> print(cuplug.asarray([1, 2]).repeat(2))
        [1 1 2 2]
        """
        return functions().standard.repeat(self, repeats, axis=axis)

    def compress(self, condition, axis: int | None = None) -> Array:
        """Return parts along a dimension, or elements in C order, for which a condition holds.

        Examples
        --------
        >>> print(cuplug.asarray([1, 2, 3]).compress([True, False, True]))
        [1 3]
        """
        return functions().standard.compress(condition, self, axis)


cdef object one_or_several(tuple given):
    """Return the numbers, which may also be passed as one sequence."""
    return given[0] if len(given) == 1 and isinstance(given[0], Iterable) else given
