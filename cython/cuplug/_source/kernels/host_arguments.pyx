# SPDX-License-Identifier: Apache-2.0
"""NumPy arrays as arguments of kernels: copied to the GPU, back, or both."""

from libc.stdint cimport int32_t, uint64_t

from cuplug._engine.base.numpy_dtypes cimport dtype_of_descr
from cuplug._engine.base.core cimport cuplug_dtype
from cuplug._engine.base.numpy_api cimport PyArray_DATA, PyArrayObject
from cuplug._source.kernels.parameters cimport POINTER, UNKNOWN, check_pointee, launch_state, place
from cuplug._source.kernels.parameters cimport refuse
from cuplug._engine.cuda.memory cimport allocate
from cuplug._engine.host.progress cimport copy_with_progress

import numpy

from cuplug._engine.base.public import public
cdef enum:
    # for strided arrays; if the exact test takes more work, they count as sharing memory
    MOST_WORK = 10_000


cdef class Staged:
    """Staged(array)\n--\n
    A NumPy array that a launch copies to the GPU, back, or both."""

    def __init__(self, array):
        self.copies_in = not isinstance(self, Out)
        self.copies_out = not isinstance(self, In)
        if not self.copies_out:
            array = numpy.asanyarray(array)
        name = type(self).__name__
        if not isinstance(array, numpy.ndarray):
            raise TypeError(f"{name}: got {type(array).__name__}, expected a NumPy array")
        check_array(name, array, self.copies_out)
        self.array = array

    def __reduce__(self):
        return type(self), (self.array,)

    def __repr__(self):
        return f"cuplug.{type(self).__name__}({self.array!r})"


@public
class In(Staged):
    """A host array that a kernel reads: `kernel[grid, block](cuplug.In(x))`.

    Parameters
    ----------
    array : array_like

    Examples
    --------
    >>> source = "__global__ void twice(const float *x, float *y)"
    >>> source += "{ y[threadIdx.x] = 2 * x[threadIdx.x]; }"
    >>> twice = cuplug.compile(source, device="cuda")["twice"]
    >>> y = numpy.empty(3, "float32")
    >>> twice[1, 3](cuplug.In(numpy.float32([1, 2, 3])), cuplug.Out(y))
    >>> y
    array([2., 4., 6.], dtype=float32)
    """


@public
class Out(Staged):
    """A host array that a kernel writes. Elements that the kernel does not write are undefined.

    The launch returns after the array is written.

    Parameters
    ----------
    array : numpy.ndarray
        Writable; it may have strides.

    Examples
    --------
    >>> source = "__global__ void count(int *y) { y[threadIdx.x] = threadIdx.x; }"
    >>> y = numpy.empty(3, "int32")
    >>> cuplug.compile(source, device="cuda")["count"][1, 3](cuplug.Out(y))
    >>> y
    array([0, 1, 2], dtype=int32)
    """


@public
class InOut(Staged):
    """A host array that a kernel reads and writes.

    The launch returns after the array is written.

    Parameters
    ----------
    array : numpy.ndarray
        Writable; it may have strides.

    Examples
    --------
    >>> source = "__global__ void add(float *x) { x[threadIdx.x] += 1; }"
    >>> add = cuplug.compile(source, device="cuda")["add"]
    >>> x = numpy.float32([1, 2, 3])
    >>> add[1, 3](cuplug.InOut(x))
    >>> x
    array([2., 3., 4.], dtype=float32)
    """


cdef int check_array(str where, array, bint is_written) except -1:
    if is_written and not array.flags.writeable:
        raise ValueError(f"{where}: got a read-only array, expected one that can be written")
    if is_written and not array.flags.forc and shares_elements(array):
        raise ValueError(
            f"{where}: got an array whose elements share memory, expected one with memory for each "
            "element; pass a copy"
        )
    if array.dtype.hasobject or not array.dtype.isnative:
        raise TypeError(
            f"{where}: got dtype {array.dtype}, expected numbers or structs, in native byte order"
        )
    if type(array) is not numpy.ndarray and isinstance(array, numpy.ma.MaskedArray):
        raise TypeError(
            f"{where}: got a masked array, whose mask would be lost, expected x.data or x.filled()"
        )
    return 0


cdef bint shares_elements(array):
    """Return whether each dimension's stride exceeds the extent of the narrower ones."""
    steps = sorted([(abs(step), n) for step, n in zip(array.strides, array.shape) if n != 1])
    reach = array.itemsize
    for step, n in steps if array.size else ():
        if step < reach:
            return True
        reach += step * (n - 1)
    return False


cdef int check_staged(
    launch_state *state, Py_ssize_t k, uint64_t code, object array
) except -1:
    cdef cuplug_dtype dtype
    cdef uint64_t size = code >> 40
    if code & 15 == UNKNOWN:
        return 0
    if code & 15 != POINTER:
        return refuse(state, k, code, array)
    if array.dtype.fields:
        if size and size != array.dtype.itemsize:
            return refuse(state, k, code, array)
        return 0
    dtype = dtype_of_descr(array.dtype)
    if not dtype.bits:
        return refuse(state, k, code, array)
    return check_pointee(state, k, code, array, dtype, array.nbytes)


cdef Block stage(
    Staged staged, launch_state *state, Py_ssize_t k, uint64_t code, int32_t device, void *stream
):
    cdef Block block = Block.__new__(Block)
    cdef void *data
    # another thread may have changed it
    check_array(place(state, k), staged.array, staged.copies_out)
    check_staged(state, k, code, staged.array)
    block.target = staged.array if staged.copies_out else None
    if staged.copies_in or staged.array.flags.c_contiguous:
        block.host = numpy.ascontiguousarray(staged.array)
    else:
        block.host = numpy.empty(staged.array.shape, staged.array.dtype)
    block.position = k
    data = PyArray_DATA(<PyArrayObject *>block.host)
    try:
        allocate(block, device, block.host.nbytes, stream)
    except MemoryError as error:
        raise MemoryError(f"{place(state, k)}: {error}") from None
    if staged.copies_in:
        copy_with_progress(
            state.name_text, device, False, block.data, data, block.host.nbytes, stream
        )
    return block


cdef int check_targets(launch_state *state, list blocks) except -1:
    cdef Block first, second
    written = [block for block in blocks if (<Block>block).target is not None]
    for k in range(len(written)):
        second = written[k]
        for first in written[:k]:
            if numpy.may_share_memory(first.target, second.target, max_work=MOST_WORK):
                raise ValueError(
                    f"{place(state, second.position)}: got memory of argument "
                    f"{first.position + 1}, expected another array: each is copied back alone"
                )
    return 0


cdef int unstage(Block block, const char *name) except -1:
    cdef void *data
    if block.target is None:
        return 0
    data = PyArray_DATA(<PyArrayObject *>block.host)
    copy_with_progress(
        name, block.gpu, True, data, block.data, block.host.nbytes, block.stream
    )
    if block.host is not block.target:
        block.target[...] = block.host.reshape(block.target.shape)
    return 0
