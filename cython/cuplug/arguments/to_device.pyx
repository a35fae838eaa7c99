# SPDX-License-Identifier: Apache-2.0
"""Arrays of any library as cuplug's own in GPU memory."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF

from cuplug.arguments.inputs cimport read_argument
from cuplug.arrays.kinds cimport BUFFER, DEVICE_ARRAY, NUMPY, array_kind
from cuplug.arrays.reading cimport kind_of, reading, start_reading
from cuplug.arrays.stream_order cimport add_current_stream, wait_for_streams
from cuplug.base.core cimport (
    CUPLUG_ARGUMENT_ARRAY,
    CUPLUG_ARGUMENT_OTHER,
    CUPLUG_BYTE_SWAPPED,
    CUPLUG_CUDA,
    CUPLUG_CUDA_MANAGED,
    CUPLUG_READ_ONLY,
    cuplug_argument,
    cuplug_device,
    cuplug_tensor,
)
from cuplug.base.numpy_dtypes cimport descr_of_dtype
from cuplug.cuda.device_array cimport DeviceArray, copy_to_device, share_memory, to_descr
from cuplug.cuda.placement cimport parse_gpu

from cuplug.base.public import public


@public
def asarray(x, dtype=None, device=None):
    """Make a `DeviceArray` of an array: a copy where it is on the host.

    Parameters
    ----------
    x : array
        Of the host: anything that numpy.asarray takes; elements of the other byte order are
        converted to the machine's. On a GPU, of any library: it must be C-contiguous and writable.
        Its memory is shared, and kept; a `DeviceArray` is returned itself.
    dtype : str or numpy.dtype, optional
        What arrays of the host are converted to. Those on a GPU must have it.
    device : str, int or device, optional
        A GPU. Without it that of `x`, and "cuda" for arrays of the host. A `DeviceArray` is copied
        to another one through the host.

    Returns
    -------
    DeviceArray

    Raises
    ------
    TypeError, ValueError
        Elements of no dtype that a device array can have, or of another one than `dtype`; a device
        that is no GPU; an array on another GPU, strided, or read-only.
    MemoryError, CudaError
        As for `empty`.
    """
    cdef reading r
    cdef const array_kind *kind
    descr = None if dtype is None else to_descr("asarray", dtype)
    place = None if device is None else parse_gpu("asarray", device).id
    start_reading(&r)
    try:
        kind = kind_of(&r, <PyObject *>x)
        if kind != NULL and kind.protocol != NUMPY and kind.protocol != BUFFER:
            shared = read_device_array(&r, x, kind, descr, place)
            if shared is not None:
                return shared
    finally:
        Py_XDECREF(r.kept)
    if isinstance(x, DeviceArray):
        x = x.numpy()
    return copy_to_device(x, descr, parse_gpu("asarray", "cuda" if device is None else device))


cdef object read_device_array(
    reading *r, object x, const array_kind *kind, object descr, object place
):
    """An array on a GPU; None for what is to be copied."""
    cdef cuplug_argument a
    read_argument(<PyObject *>x, r, &a)
    if a.kind == CUPLUG_ARGUMENT_OTHER:
        raise TypeError(f"asarray: x: seen {(<const char *>a.scalar.s).decode()}, wanted an array")
    if a.kind != CUPLUG_ARGUMENT_ARRAY or not is_on_gpu(&a.tensor):
        return None
    check_dtype(&a, descr)
    if kind.protocol == DEVICE_ARRAY:
        return x if place is None or place == a.tensor.device.id else None
    if place is not None and place != a.tensor.device.id:
        raise ValueError(
            f"asarray: x: seen an array on cuda:{a.tensor.device.id}, wanted one on the host or on "
            f"cuda:{place}: move it with its own library"
        )
    check_layout(&a)
    add_current_stream(r, kind, a.tensor.device.id)
    wait_for_streams(r, a.tensor.device.id, NULL)
    return share_memory(&a.tensor, (x, <object>r.kept if r.kept != NULL else None))


cdef bint is_on_gpu(const cuplug_tensor *x) noexcept:
    return x.device.type == CUPLUG_CUDA or x.device.type == CUPLUG_CUDA_MANAGED


cdef int check_dtype(const cuplug_argument *a, object descr) except -1:
    if a.flags & CUPLUG_BYTE_SWAPPED:
        raise TypeError("asarray: x: seen a byte-swapped array, wanted native byte order")
    seen = descr_of_dtype(a.tensor.dtype)
    if descr is not None and descr.newbyteorder("=") != seen:
        raise TypeError(
            f"asarray: x: seen {seen} on a GPU, wanted {descr}: convert it with its own library"
        )
    return 0


cdef int check_layout(const cuplug_argument *a) except -1:
    cdef const cuplug_tensor *x = &a.tensor
    if a.flags & CUPLUG_READ_ONLY:
        raise ValueError("asarray: x: seen a read-only array, wanted a writable one: copy it first")
    if x.strides != NULL and not is_contiguous(x):
        raise ValueError(
            "asarray: x: seen an array on a GPU that is not C-contiguous, wanted a C-contiguous "
            "one: copy it with its own library"
        )
    return 0


cdef bint is_contiguous(const cuplug_tensor *x) noexcept:
    cdef int k
    cdef object stride = 1
    for k in range(x.ndim):
        if not x.shape[k]:
            return True
    for k in range(x.ndim - 1, -1, -1):
        if x.shape[k] != 1 and x.strides[k] != stride:
            return False
        stride *= x.shape[k]
    return True
