# SPDX-License-Identifier: Apache-2.0
"""Arrays in memory that the host and GPUs can access: pinned and managed."""

from math import prod

from libc.stdint cimport int32_t, int64_t

from cuplug._engine.array.array cimport Array, share_memory
from cuplug._engine.array.buffer cimport n_elements
from cuplug._engine.array.make cimport describe, parse_shape
from cuplug._engine.base.core cimport CUPLUG_CUDA_MANAGED, CUPLUG_MAX_NDIM, cuplug_error
from cuplug._engine.base.core cimport cuplug_element_bytes, cuplug_tensor
from cuplug._engine.base.runtime cimport cuplug_allocate_shared, cuplug_free_shared
from cuplug._engine.base.numpy_dtypes cimport to_descr
from cuplug._engine.base.status cimport raise_error
from cuplug._engine.cuda.placement cimport parse_gpu

import numpy

from cuplug._engine.base.public import public


cdef class SharedMemory:
    """CUDA memory that the host may access."""

    cdef void *data
    cdef int32_t gpu
    cdef bint is_managed
    cdef object n_bytes

    def __cinit__(self, int32_t gpu, bint is_managed, n_bytes):
        cdef cuplug_error error
        self.gpu, self.is_managed, self.n_bytes = gpu, is_managed, n_bytes
        if cuplug_allocate_shared(gpu, is_managed, n_bytes, &self.data, &error):
            raise_error(&error)

    def __dealloc__(self):
        if self.data != NULL:
            cuplug_free_shared(self.gpu, self.is_managed, self.data, NULL)

    @property
    def __array_interface__(self):
        data = <size_t>self.data, False
        return {"shape": (self.n_bytes,), "typestr": "|u1", "data": data, "version": 3}


@public
def empty_pinned(
    shape: int | tuple[int, ...], dtype: str | np.dtype[Any] = "float64", device=None
) -> NDArray[Any]:
    """Make a NumPy array in pinned memory, from and to which GPUs copy directly.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : str or numpy.dtype
        Structured dtypes are also accepted.
    device : str, int or Device, optional
        The GPU whose context allocates it, cuda:0 by default; all GPUs can access it.

    Returns
    -------
    numpy.ndarray
        Uninitialized. Its memory is freed with the last array that shares it.

    Examples
    --------
    >>> x = cuplug.empty_pinned((1 << 20,), "float32", device="cuda")
    """
    descr = to_descr("empty_pinned", dtype)
    if descr.hasobject:
        raise TypeError(f"empty_pinned: dtype: got {descr}, expected numbers or structs")
    sizes = parse_shape("empty_pinned", shape)
    if prod(sizes) * max(descr.itemsize, 1) >= 1 << 63:
        raise ValueError(f"empty_pinned: shape: got {sizes}, expected less than 2^63 bytes")
    like = numpy.broadcast_to(numpy.empty((), descr), sizes)
    memory = SharedMemory(parse_gpu("empty_pinned", device or 0).id, False, like.nbytes)
    return numpy.asarray(memory).view(descr).reshape(like.shape)


@public
def empty_managed(
    shape: int | tuple[int, ...], dtype: str | np.dtype[Any] = "float64", device=None
) -> Array:
    """Make an array in managed memory, which is transferred to the host or the GPU that uses it.

    Parameters
    ----------
    shape, dtype, device
        As for `empty`; the default is cuda:0.

    Returns
    -------
    Array
        On a GPU; `numpy.asarray` of it is a view, made after the work on the array.

    Examples
    --------
    >>> x = cuplug.empty_managed(3, "float32", "cuda:0")
    """
    cdef int64_t sizes[CUPLUG_MAX_NDIM]
    cdef cuplug_tensor x
    cdef SharedMemory memory
    cdef Array result
    describe("empty_managed", shape, dtype, sizes, &x)
    x.device = parse_gpu("empty_managed", device or 0)
    x.device.type = CUPLUG_CUDA_MANAGED
    memory = SharedMemory(x.device.id, True, n_elements(&x) * cuplug_element_bytes(&x))
    x.data = memory.data
    result = share_memory(&x, memory)
    return result
