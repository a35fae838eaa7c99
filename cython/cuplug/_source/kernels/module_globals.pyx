# SPDX-License-Identifier: Apache-2.0
"""Variables of compiled modules in GPU memory."""

from cuplug._engine.base.numpy_api cimport PyArray_DATA, PyArrayObject
from cuplug._engine.host.progress cimport copy_with_progress

import numpy


class Global:
    """A `__device__` or `__constant__` variable: set from NumPy, read back, passed to kernels.

    It exists until the process exits.

    Attributes
    ----------
    name : str
    data_ptr : int
        Its address on the GPU.
    device : int
        The GPU's number.
    dtype : numpy.dtype
    shape : tuple of int
    """

    name: str
    data_ptr: int
    device: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def __init__(
        self, name: str, data_ptr: int, device: int, dtype: np.dtype[Any], shape: tuple[int, ...]
    ):
        self.name = name
        self.data_ptr = data_ptr
        self.device = device
        self.dtype = dtype
        self.shape = shape

    def __reduce__(self):
        raise TypeError(f"{self.name}: its memory is of this process; pickle a copy of it, numpy()")

    def __repr__(self):
        return f"<global {self.name}, {self.dtype}, shape {self.shape}, on cuda:{self.device}>"

    @property
    def nbytes(self) -> int:
        """Bytes of the variable."""
        return self.dtype.itemsize * int(numpy.prod(self.shape, dtype=object))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.data_ptr, False),
            "strides": None,
            "stream": 1,
            "version": 3,
        }

    def set(self, values):
        """Copy values in, broadcast to the shape, after the work on the default stream.

        NumPy arrays must have the variable's dtype. Numbers and lists are converted, except from
        floats to integers and similar losses.
        """
        is_array = isinstance(values, numpy.ndarray)
        seen = values.dtype if is_array else self.dtype
        if not is_array and not self.dtype.fields:
            seen = numpy.asarray(values).dtype
        if is_array and seen != self.dtype or loses(seen, self.dtype):
            raise TypeError(f"{self.name}: got dtype {seen}, expected {self.dtype}")
        values = numpy.asarray(values, self.dtype)
        host = numpy.array(numpy.broadcast_to(values, self.shape), order="C")
        copy(self, host, False)

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return a copy as a NumPy array, after the work on the default stream."""
        host = numpy.empty(self.shape, self.dtype)
        copy(self, host, True)
        return host


cdef bint loses(seen, wanted):
    """Bools, integers, real and complex numbers: each kind holds the preceding ones."""
    order = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
    return order.get(seen.kind, 0) > order.get(wanted.kind, 3)


cdef int copy(object variable, object host, bint to_host) except -1:
    cdef void *address = <void *><size_t>variable.data_ptr
    cdef void *data = PyArray_DATA(<PyArrayObject *>host)
    return copy_with_progress(
        "global", variable.device, to_host, data if to_host else address,
        address if to_host else data, host.nbytes, NULL
    )
