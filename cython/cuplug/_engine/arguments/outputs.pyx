# SPDX-License-Identifier: Apache-2.0
"""Arrays made for a call: its outputs, like its first array, and contiguous copies of inputs."""

import sys

from cpython.buffer cimport PyObject_CheckBuffer
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from cuplug._engine.arguments.inputs cimport empty_numpy, read_argument
from cuplug._engine.array.array cimport Array, empty_like_tensor
from cuplug._engine.array.buffer cimport is_contiguous, is_on_gpu
from cuplug._engine.base.capsules cimport HostArray
from cuplug._engine.base.core cimport (
    CUPLUG_ARGUMENT_ARRAY,
    CUPLUG_ARGUMENT_LIST,
    CUPLUG_CPU,
    CUPLUG_CUDA,
    CUPLUG_CUDA_HOST,
    CUPLUG_MAX_NDIM,
    CUPLUG_MISALIGNED,
    cuplug_argument,
    cuplug_element_bytes,
    cuplug_tensor,
    cuplug_trim,
)
from cuplug._engine.base.core_call cimport (
    CUPLUG_PARAMETER_ARRAYS,
    cuplug_copy_input,
    cuplug_frame,
    cuplug_parameter,
    cuplug_required_shape,
)
from cuplug._engine.base.dlpack cimport DLPACK_COMPLEX, DLPACK_UINT
from cuplug._engine.base.numpy_api cimport PyArray_DIMS, PyArrayObject
from cuplug._engine.base.numpy_dtypes cimport descr_of_dtype
from cuplug._engine.cuda.streams cimport in_graph, refuse_capture, work_stream
from cuplug._engine.host.blocks cimport is_large
from cuplug._engine.interop.exchange cimport empty_exchange, empty_strided
from cuplug._engine.interop.kinds cimport (
    CUPY,
    DLPACK,
    EXCHANGE,
    NUMPY,
    OWN,
    TORCH,
    array_kind,
    type_of,
)
from cuplug._engine.interop.reading cimport items_of, keep, kind_of, reading
from cuplug._engine.interop.torch_writes cimport count_in_python, count_write

import numpy


cdef object allocate_output(reading *r, cuplug_frame *frame, uint32_t k):
    cdef cuplug_tensor *x = &frame.tensors[k]
    cdef int protocol = r.first_kind.protocol if r.first_kind != NULL else NUMPY
    cdef bint on_gpu
    x.device = frame.home if frame.home.type else frame.device
    on_gpu = x.device.type == CUPLUG_CUDA
    if x.strides != NULL:
        return empty_in_order(r, frame, k)
    if frame.home.type or not on_gpu:
        if protocol == EXCHANGE or protocol == CUPY or protocol == TORCH:
            return empty_via_dlpack(r, protocol, x)
        on_gpu = on_gpu and protocol != NUMPY
    if on_gpu or is_large(x) or protocol == OWN:
        return allocate_named(r, frame, k, on_gpu or protocol == OWN)
    return empty_numpy(x, False)


cdef object empty_in_order(reading *r, cuplug_frame *frame, uint32_t k):
    """Make an output with the strides that the core has set.

    It is created in the order of its dimensions in memory, and transposed.
    """
    cdef cuplug_tensor *x = &frame.tensors[k]
    cdef cuplug_tensor wanted = x[0]
    cdef int64_t shape[CUPLUG_MAX_NDIM]
    cdef int32_t d
    if r.first_kind.is_torch:
        return empty_strided(<object>r.first, x)
    dims = sorted(range(x.ndim), key=lambda d: (-wanted.strides[<int32_t>d], d))
    for d in range(x.ndim):
        shape[d] = wanted.shape[<int32_t>dims[d]]
    x.shape, x.strides = shape, NULL
    try:
        made = allocate_output(r, frame, k)
    finally:
        x.shape, x.strides = wanted.shape, wanted.strides
    return made.transpose([dims.index(d) for d in range(x.ndim)])


cdef object allocate_named(reading *r, cuplug_frame *frame, uint32_t k, bint is_own):
    """Name the output if memory runs out. Separate, because a `try` slows small calls."""
    cdef cuplug_tensor *x = &frame.tensors[k]
    try:
        return empty_cuplug_array(r, frame, x) if is_own else empty_numpy(x, True)
    except MemoryError as error:
        raise MemoryError(f"{place_of(frame, frame.parameter[k])}: {error}") from None


cdef object place_of(const cuplug_frame *frame, uint32_t i):
    """Return the operator and the name of parameter or output i, with which errors begin."""
    operator = (<const char *>frame.signature.name).decode()
    name = (<const char *>frame.signature.parameters[i].name).decode()
    return f"{operator}: {name or 'out'}"


cdef object empty_via_dlpack(reading *r, int protocol, cuplug_tensor *x):
    """Allocate with PyTorch, CuPy or the like. If they run short, cuplug releases its caches."""
    cdef int32_t device = x.device.id
    if x.device.type != CUPLUG_CUDA:
        return empty_exchange(<object>r.first, r.first_kind, x)
    try:
        return empty_on_gpu(r, protocol, x)
    except Exception as error:
        if type(error).__name__ != "OutOfMemoryError":
            raise
    with nogil:
        cuplug_trim(device, NULL, NULL)
    return empty_on_gpu(r, protocol, x)


cdef inline object empty_on_gpu(reading *r, int protocol, cuplug_tensor *x):
    if protocol == CUPY:
        return empty_cupy(<object>r.first, x)
    return empty_exchange(<object>r.first, r.first_kind, x)


cdef object empty_cuplug_array(reading *r, const cuplug_frame *frame, cuplug_tensor *x):
    """Allocate an array of cuplug.

    This is rejected in a capture, except by cuplug's graphs, which retain the memory: other graphs
    may be launched when it belongs to another array.
    """
    cdef void *stream = r.given_stream
    if stream == NULL and is_on_gpu(x):
        stream = work_stream(x.device.id)
    if stream != NULL and not in_graph(x.device.id):
        name = (<const char *>frame.signature.name).decode()
        refuse_capture(name, stream, "an output given with out=")
    return empty_like_tensor(x)


cdef object shape_of(const cuplug_tensor *x):
    return tuple([x.shape[k] for k in range(x.ndim)])


cdef object empty_cupy(object like, cuplug_tensor *x):
    """Allocate from CuPy's pool of the array's GPU, which is made current if necessary."""
    cupy = sys.modules["cupy"]
    descr = descr_of_dtype(x.dtype)
    result = None
    if cupy.cuda.runtime.getDevice() == x.device.id:
        result = cupy.ndarray(shape_of(x), descr)
    else:
        with like.device:
            result = cupy.ndarray(shape_of(x), descr)
    x.data = <void *><size_t>result.data.ptr
    return result


cdef object finish_output(reading *r, const char *name, object output):
    """Convert outputs of cuplug for a library that has only `__dlpack__`."""
    if output is None:
        return None
    try:
        return hand_over(r, output)
    except Exception as error:
        cls = type(<object>r.first).__name__
        raise TypeError(
            f"{name.decode()}: its output could not become an array like {cls}: {error} "
            "(pass one by out=)"
        ) from error


cdef object hand_over(reading *r, object output):
    like = <object>r.first
    if hasattr(like, "__array_namespace__"):
        namespace = like.__array_namespace__()
    else:
        namespace = sys.modules.get(type(like).__module__.partition(".")[0])
    from_dlpack = getattr(namespace, "from_dlpack", None)
    return output if from_dlpack is None else from_dlpack(exported(r, output))


cdef object exported(reading *r, object output):
    cdef cuplug_argument a
    cdef HostArray result
    if not isinstance(output, numpy.ndarray) or output.dtype.isbuiltin == 1:
        return output
    output = numpy.ascontiguousarray(output)
    read_argument(<PyObject *>output, r, &a)
    result = HostArray.__new__(HostArray)
    result.array = output
    result.tensor = a.tensor
    # It outlives the call, which has a copy of the sizes.
    result.tensor.shape = <int64_t *>PyArray_DIMS(<PyArrayObject *>output)
    return result


cdef int copy_arguments(reading *r, cuplug_frame *frame) except -1:
    cdef uint32_t k
    for k in range(frame.n_inputs):
        if frame.copy_mask >> k & 1:
            copy_argument(r, frame, k)
    return 0


cdef int copy_argument(reading *r, const cuplug_frame *frame, uint32_t k) except -1:
    """Copy an input, unless its library has no known way to copy."""
    cdef int64_t shape[64]
    cdef PyObject *obj = NULL
    cdef cuplug_argument *a = argument_of(r, frame, k, &obj)
    cdef int32_t ndim, device_type = a.tensor.device.type
    if device_type == CUPLUG_CPU or device_type == CUPLUG_CUDA_HOST:
        if not frame.unaligned_stride_mask >> k & 1:
            return take_copy(r, a, copy_on_host(frame, k))
    ndim = cuplug_required_shape(frame, k, shape)
    copy = copy_array(<object>obj, tuple([shape[d] for d in range(ndim)]))
    if copy is None:
        return 0
    keep(r, copy)
    return read_argument(<PyObject *>copy, r, a)


cdef int copy_items(reading *r, const cuplug_frame *frame) except -1:
    """Copy arrays of lists as required if they are apart from the frame and only read."""
    cdef uint32_t i, k
    cdef uint64_t address
    cdef cuplug_argument *a
    cdef const cuplug_parameter *x
    cdef PyObject **items
    for i in range(<uint32_t>frame.signature.n_parameters):
        x = &frame.signature.parameters[i]
        if x.kind != CUPLUG_PARAMETER_ARRAYS or x.is_inout:
            continue
        if r.args[i].kind != CUPLUG_ARGUMENT_LIST:
            continue
        items = items_of(&r.args[i])
        for k in range(r.args[i].list.n):
            a = &(<cuplug_argument *>r.args[i].list.items)[k]
            address = <uint64_t>a.tensor.data + a.tensor.byte_offset
            is_aligned = not (a.flags & CUPLUG_MISALIGNED or address & x.address_mask)
            if is_aligned and is_contiguous(&a.tensor):
                continue
            copy = copy_array(<object>items[k], shape_of(&a.tensor))
            if copy is not None:
                keep(r, copy)
                read_argument(<PyObject *>copy, r, a)
    return 0


cdef int count_writes(
    reading *r, const cuplug_frame *frame, uint32_t n_args, bint has_outputs
) except -1:
    cdef uint32_t i, k
    for i in range(n_args):
        if frame.signature.parameters[i].is_inout:
            count_argument(r, frame, i)
    if not has_outputs:
        return 0
    for k in range(frame.n_tensors - frame.n_inputs):
        if r.args[n_args + k].kind == CUPLUG_ARGUMENT_ARRAY:
            i = <uint32_t>frame.signature.n_parameters + k
            count_one_write(r, frame, i, r.objects[n_args + k])
    return 0


cdef int count_argument(reading *r, const cuplug_frame *frame, uint32_t i) except -1:
    cdef uint32_t k
    cdef PyObject **items
    if r.args[i].kind == CUPLUG_ARGUMENT_LIST:
        items = items_of(&r.args[i])
        for k in range(r.args[i].list.n):
            count_one_write(r, frame, i, items[k])
    elif r.args[i].kind == CUPLUG_ARGUMENT_ARRAY:
        count_one_write(r, frame, i, r.objects[i])
    return 0


cdef inline int count_one_write(
    reading *r, const cuplug_frame *frame, uint32_t i, PyObject *obj
) except -1:
    if count_write(obj, r.first_kind):
        return 0
    return count_further_write(r, frame, i, obj)


cdef int count_further_write(
    reading *r, const cuplug_frame *frame, uint32_t i, PyObject *obj
) except -1:
    """Count a write to another type than the first array's, or one that only Python can count."""
    cdef const array_kind *kind = kind_of(r, obj)
    if kind == NULL or not kind.is_torch or count_write(obj, kind):
        return 0
    return count_in_python(<object>obj, kind, place_of(frame, i))


cdef cuplug_argument *argument_of(
    reading *r, const cuplug_frame *frame, uint32_t k, PyObject **obj
) noexcept:
    """Return the argument for input tensor k, and its object: an item if it is a list."""
    cdef uint32_t i = frame.parameter[k], item = 0
    cdef cuplug_argument *items
    if r.args[i].kind != CUPLUG_ARGUMENT_LIST:
        obj[0] = r.objects[i]
        return &r.args[i]
    while k > item and frame.parameter[k - item - 1] == i:
        item += 1
    items = <cuplug_argument *>r.args[i].list.items
    obj[0] = items_of(&r.args[i])[item]
    return &items[item]


cdef object copy_on_host(const cuplug_frame *frame, uint32_t k):
    """Copy elements as bits."""
    cdef int64_t shape[64]
    cdef cuplug_tensor copy = frame.tensors[k]
    cdef Py_ssize_t item_bytes = cuplug_element_bytes(&copy)
    copy.ndim = cuplug_required_shape(frame, k, shape)
    copy.shape = shape
    copy.strides = NULL
    copy.dtype.code = DLPACK_UINT if item_bytes <= 8 else DLPACK_COMPLEX
    copy.dtype.bits = 8 * item_bytes
    copy.dtype.lanes = 1
    try:
        result = empty_numpy(&copy, is_large(&copy))
    except MemoryError:
        raise MemoryError(
            f"{place_of(frame, frame.parameter[k])}: no memory for its C-contiguous copy, of shape "
            f"{shape_of(&copy)}, which is needed since the operator takes no strides"
        ) from None
    with nogil:
        cuplug_copy_input(frame, k, copy.data)
    return result


cdef int take_copy(reading *r, cuplug_argument *a, object copy) except -1:
    """Use the memory of a NumPy array that holds the elements of an array of any library."""
    cdef cuplug_argument copied
    keep(r, copy)
    read_argument(<PyObject *>copy, r, &copied)
    copied.tensor.dtype = a.tensor.dtype
    a[0] = copied
    return 0


cdef object copy_array(object x, tuple wanted):
    """Return a copy by the array's own library; None if no way is known."""
    library = type(x).__module__.partition(".")[0]
    if library == "cupy":
        cupy = sys.modules[library]
        with x.device:
            return cupy.array(cupy.broadcast_to(x, wanted), order="C", copy=True)
    if isinstance(x, Array):
        return x._spread(wanted)
    if PyObject_CheckBuffer(x):
        view = x if isinstance(x, numpy.ndarray) else memoryview(x)
        return numpy.array(numpy.broadcast_to(view, wanted), order="C", copy=True)
    if hasattr(x, "expand") and hasattr(x, "contiguous"):
        copy = x.expand(wanted).contiguous()
        return copy.clone() if copy.data_ptr() == x.data_ptr() else copy
    return None
