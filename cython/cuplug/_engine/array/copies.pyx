# SPDX-License-Identifier: Apache-2.0
"""Copies between arrays and NumPy's."""

from cpython.buffer cimport PyObject_CheckBuffer
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t
from libc.string cimport memcmp, memmove

from cuplug._engine.array.buffer cimport Buffer, check_origin, check_writable
from cuplug._engine.array.buffer cimport is_contiguous, is_on_gpu, n_elements, origin_of
from cuplug._engine.array.layout cimport may_overlap, repeats_elements
from cuplug._engine.base.core cimport CUPLUG_MAX_NDIM, cuplug_element_bytes, cuplug_tensor
from cuplug._engine.base.core_call cimport cuplug_copy_array
from cuplug._engine.base.numpy_api cimport *
from cuplug._engine.cuda.streams cimport memory_stream, parse_stream, refuse_capture, work_stream
from cuplug._engine.host.blocks cimport empty_array, is_large
from cuplug._engine.host.progress cimport copy_with_progress

import numpy

_import_array()


cdef bint WRAPS = numpy.__version__.startswith("1.")  # Python integers that a dtype cannot hold

cdef enum:
    INLINE_CALL_BYTES = 1 << 15  # an operator takes longer to start
    STRIDED_BYTES = 1 << 24  # and copies single elements; larger outputs bypass the caches


cdef bint copy_small(const cuplug_tensor *to, const cuplug_tensor *source) noexcept:
    cdef bint to_packed = is_contiguous(to), from_packed = is_contiguous(source), is_done
    cdef int k
    if to.ndim != source.ndim or memcmp(&to.dtype, &source.dtype, sizeof(to.dtype)):
        return False
    for k in range(to.ndim):
        if to.shape[k] != source.shape[k]:
            return False
    if is_on_gpu(to) or not is_small_copy(source, to_packed and from_packed):
        return False
    if to_packed and from_packed:
        memmove(to.data, source.data, n_elements(to) * cuplug_element_bytes(to))
        return True
    if not (to_packed or from_packed) or may_overlap(to, source) or repeats_elements(to):
        return False
    if n_elements(to) * cuplug_element_bytes(to) <= INLINE_CALL_BYTES:  # the lock takes longer
        return cuplug_copy_array(to, source) != 0
    with nogil:
        is_done = cuplug_copy_array(to, source) != 0
    return is_done


cdef bint runs_with_gil(const cuplug_tensor *x) noexcept:
    return is_small_copy(x, is_contiguous(x))


cdef bint is_small_copy(const cuplug_tensor *x, bint is_plain) noexcept:
    cdef int64_t n_bytes = n_elements(x) * cuplug_element_bytes(x)
    cdef int64_t most = INLINE_CALL_BYTES if is_plain else STRIDED_BYTES
    return (n_bytes <= most or is_across(x)) and x.dtype.lanes == 1 and not is_on_gpu(x)


cdef bint is_across(const cuplug_tensor *x) noexcept:
    """Return whether adjacent elements are apart in C order, so that operators copy twice."""
    cdef int k, last = x.ndim - 1
    if x.strides == NULL or last < 1 or x.strides[last] == 1:
        return False
    for k in range(last):
        if x.strides[k] == 1:
            return True
    return False


cdef object host_values(str name, object x, object descr):
    """Return the result of NumPy for numbers, or for an array of the host."""
    is_array = isinstance(x, (numpy.ndarray, numpy.generic))
    if is_array and type(x) is not numpy.ndarray and isinstance(x, numpy.ma.MaskedArray):
        seen = "a masked array, whose mask would be lost"
        raise TypeError(f"{name}: got {seen}, expected x.data or x.filled()")
    if is_array and descr is not None and x.dtype.kind == "c" and descr.kind in "biuf":
        raise TypeError(f"{name}: got {x.dtype}, expected real numbers for {descr}")
    try:
        if has_only_dlpack(x):
            x = numpy.from_dlpack(x)
        if x is not None and descr is not None and descr.kind in "iu":
            seen = numpy.asarray(x)
            if is_floating(seen.dtype):
                return whole_numbers(seen, descr)
            if WRAPS and isinstance(x, (int, list, tuple)):
                refuse_beyond(seen, descr)
        with numpy.errstate(over="ignore"):
            return numpy.asarray(x, dtype=None if x is None else descr)  # which NumPy takes for NaN
    except (TypeError, ValueError, OverflowError, BufferError, RuntimeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        wanted = "numbers" if descr is None else f"numbers for {descr}"
        seen = type(x).__name__
        raise kind(f"{name}: got {seen}, expected {wanted}, in equal rows: {error}") from error


cdef int refuse_beyond(object x, object descr) except -1:
    """Raise what NumPy 2 raises for Python integers that a dtype cannot hold."""
    if x.dtype.kind in "iu" and x.size:
        limits = numpy.iinfo(descr)
        for number in (int(x.min()), int(x.max())):
            if not limits.min <= number <= limits.max:
                raise OverflowError(f"Python integer {number} out of bounds for {descr}")
    return 0


cdef bint is_floating(object descr):
    return descr.kind == "f" or (descr.kind == "V" and not descr.names and descr.isbuiltin == 2)


cdef object whole_numbers(object x, object descr):
    """Convert floats to integers like `astype`: truncated, NaN as 0, saturated at the limits."""
    limits = numpy.iinfo(descr)
    whole = numpy.trunc(x.astype("float32") if x.dtype.itemsize < 4 else x)
    is_above, is_below = whole >= float(limits.max), whole <= float(limits.min)
    result = numpy.where(is_above | is_below | (whole != whole), 0, whole).astype(descr)
    least, most = descr.type(limits.min), descr.type(limits.max)
    return numpy.where(is_above, most, numpy.where(is_below, least, result))


cdef bint has_only_dlpack(object x):
    """Return whether an array has no protocol that `numpy.asarray` uses."""
    cls = type(x)
    if not hasattr(cls, "__dlpack__") or PyObject_CheckBuffer(x):
        return False
    return not (hasattr(cls, "__array__") or hasattr(x, "__array_interface__"))


cdef object as_numpy_view(Buffer x):
    cdef npy_intp strides[CUPLUG_MAX_NDIM]
    cdef npy_intp n_bytes = x.dtype.itemsize, step = n_bytes
    cdef int k
    if x.tensor.data == NULL:  # of no elements: NumPy would allocate some
        return numpy.empty(x.shape, x.dtype)
    for k in reversed(range(x.tensor.ndim)):
        strides[k] = step if x.tensor.strides == NULL else x.tensor.strides[k] * n_bytes
        step *= x.tensor.shape[k]
    Py_INCREF(x.dtype)
    seen = PyArray_NewFromDescr(
        &PyArray_Type, <PyArray_Descr *>x.dtype, x.tensor.ndim, <npy_intp *>x.tensor.shape, strides,
        x.tensor.data, 0 if x.is_read_only else NPY_ARRAY_WRITEABLE, NULL
    )
    Py_INCREF(x)
    PyArray_SetBaseObject(<PyArrayObject *>seen, <PyObject *>x)
    return seen


cdef void sort_dimensions(const cuplug_tensor *x, int *order) noexcept:
    """Write the dimensions from the outermost to the innermost."""
    cdef int k, at
    for k in range(x.ndim):
        at = k
        while at and x.strides[order[at - 1]] < x.strides[k]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = k


cdef bint has_no_gaps(const cuplug_tensor *x) noexcept:
    cdef int order[CUPLUG_MAX_NDIM]
    cdef int k
    cdef int64_t n = 1
    if is_contiguous(x):
        return True
    sort_dimensions(x, order)
    for k in range(x.ndim - 1, -1, -1):
        if x.shape[order[k]] != 1 and x.strides[order[k]] != n:
            return False
        n *= x.shape[order[k]]
    return True


cdef object in_memory_order(Buffer x):
    """Return an array of the host for the elements as they are in memory, and a view of it as x."""
    cdef cuplug_tensor turned = x.tensor
    cdef int64_t shape[CUPLUG_MAX_NDIM]
    cdef int order[CUPLUG_MAX_NDIM]
    cdef int k
    sort_dimensions(&turned, order)
    for k in range(turned.ndim):
        shape[k] = turned.shape[order[k]]
    turned.shape, turned.strides = shape, NULL
    made = empty_array(&turned, is_large(&turned)).view(x.dtype)
    back = [0] * turned.ndim
    for k in range(turned.ndim):
        back[order[k]] = k
    return made, made.transpose(back)


cdef object to_numpy(Buffer x, object out, object stream):
    """Copy without kernels: x has no gaps."""
    check_out(x, out)
    if not is_on_gpu(&x.tensor):
        if out is None:
            return as_numpy_view(x).copy()
        out[...] = as_numpy_view(x)
        return out
    cdef void *after = parse_stream("numpy", stream)
    if stream is None:
        after = work_stream(x.tensor.device.id)
    if after != NULL:
        refuse_capture("numpy", after, "a stream whose work is done")
    cdef bint is_in_order = is_contiguous(&x.tensor)
    is_direct = out is not None and out.flags.c_contiguous and is_in_order
    if is_direct:
        made = result = out
    elif is_in_order:
        made = result = empty_array(&x.tensor, is_large(&x.tensor)).view(x.dtype)
    else:
        made, result = in_memory_order(x)
    cdef void *to = PyArray_DATA(<PyArrayObject *>made)
    copy_with_progress("numpy", x.tensor.device.id, True, to, x.tensor.data, x.nbytes, after)
    check_origin(x)
    if is_direct or (out is None and is_in_order):
        return result
    if out is None:
        return numpy.ascontiguousarray(result)
    out[...] = result
    return out


cdef int check_out(Buffer x, object out) except -1:
    if out is None:
        return 0
    if not isinstance(out, numpy.ndarray):
        raise TypeError(f"numpy: out: got {type(out).__name__}, expected a NumPy array")
    if (out.shape, out.dtype) != (x.shape, x.dtype):
        seen, wanted = f"{out.dtype} of shape {out.shape}", f"{x.dtype} of shape {x.shape}"
        raise ValueError(f"numpy: out: got {seen}, expected {wanted}")
    if not out.flags.writeable:
        raise ValueError("numpy: out: got a read-only array, expected a writable one")
    return 0


cdef int take_numpy(Buffer x, object values, object stream) except -1:
    cdef void *after = parse_stream("set", stream)
    check_writable(x, "set")
    if not is_on_gpu(&x.tensor):
        as_numpy_view(x)[...] = values
        return 0
    if stream is None:
        after = memory_stream(x.tensor.device.id)
    if after != NULL:
        refuse_capture("set", after, "a stream whose work is done")
    host = numpy.ascontiguousarray(values)
    cdef void *source = PyArray_DATA(<PyArrayObject *>host)
    copy_with_progress("set", x.tensor.device.id, False, x.tensor.data, source, x.nbytes, after)
    if x.owner is None:
        origin_of(x)[0] = 0
    return 0
