# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries through DLPack: its C exchange API, and `__dlpack__`."""

from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New
from cpython.ref cimport Py_XDECREF
from libc.stdint cimport int64_t

from cuplug._engine.base.core cimport (
    CUPLUG_ARGUMENT_ARRAY,
    CUPLUG_CPU,
    CUPLUG_CUDA,
    CUPLUG_CUDA_MANAGED,
    CUPLUG_MAX_NDIM,
    CUPLUG_READ_ONLY,
    cuplug_argument,
    cuplug_tensor,
)
from cuplug._engine.base.dlpack cimport (
    DLPACK_MAJOR,
    DLPACK_READ_ONLY,
    dlpack_exchange,
    dlpack_managed_tensor,
    dlpack_versioned_tensor,
)
from cuplug._engine.interop.kinds cimport TORCH, array_kind, tvm_object_of, type_of
from cuplug._engine.interop.libtorch cimport drop_strides, learn_tensor, read_tensor
from cuplug._engine.interop.reading cimport copy_layout, keep, reading, set_unreadable
from cuplug._engine.interop.torch cimport (
    check_bits,
    check_grad,
    check_memory,
    check_torch,
    empty_like,
    new_strided,
    new_tensor,
)

cdef extern from "Python.h":
    void PyErr_SetString(object type, const char *message)

cdef enum:
    TVM_HEADER_BYTES = 24  # counts, type, deleter

# Numbers of streams in the Array API: the legacy default stream, and none.
LEGACY_STREAM, NOT_ORDERED = 1, -1
NO_SIZES = "its shape is a null pointer, or not of 0 to 64 dimensions"


cdef int read_exchange(
    PyObject *obj, reading *r, cuplug_argument *a, const array_kind *kind
) except -1:
    a.kind = CUPLUG_ARGUMENT_ARRAY
    a.flags = 0
    try:
        if kind.exchange.export_borrowed == NULL:
            read_owned(obj, r, a, kind)
        elif kind.exchange.export_borrowed(<void *>obj, &a.tensor):
            reraise()
    except Exception as error:
        return set_unreadable(<object>obj, r, a, error)
    if not has_sizes(&a.tensor):
        return set_unreadable(<object>obj, r, a, NO_SIZES)
    copy_layout(r, &a.tensor)
    if kind.tensor_place:
        learn_tensor(obj, kind.tensor_place, &a.tensor)
    return check_torch(obj, r, a, kind) if kind.is_torch else 0


cdef inline bint has_sizes(const cuplug_tensor *x) noexcept:
    return 0 <= x.ndim <= CUPLUG_MAX_NDIM and (x.shape != NULL or not x.ndim)


cdef int reraise() except -1:
    """Raise the exception that a C function has set."""
    return -1


cdef int read_owned(
    PyObject *obj, reading *r, cuplug_argument *a, const array_kind *kind
) except -1:
    cdef dlpack_versioned_tensor *managed = NULL
    if kind.exchange.export_managed(<void *>obj, &managed):
        return reraise()
    keep(r, PyCapsule_New(managed, "dltensor_versioned", release))
    a.tensor = managed.tensor
    a.flags = CUPLUG_READ_ONLY if managed.flags & DLPACK_READ_ONLY else 0
    return 0


cdef void release(object capsule) noexcept:
    cdef dlpack_versioned_tensor *managed = <dlpack_versioned_tensor *>PyCapsule_GetPointer(
        capsule, "dltensor_versioned"
    )
    if managed.deleter != NULL:
        managed.deleter(managed)


cdef int read_dlpack(object obj, reading *r, cuplug_argument *a) except -1:
    try:
        capsule = export_capsule(obj)
    except Exception as error:
        return set_unreadable(obj, r, a, error)
    return read_capsule(obj, capsule, r, a)


cdef bint read_tvm(PyObject *obj, cuplug_argument *a, const array_kind *kind) noexcept:
    """Read a tensor of tvm-ffi on the host: a header, then a DLPack tensor that never changes.

    Return False for other objects, and for borrowed tensors, which callbacks receive:
    `__dlpack__` reads these.
    """
    cdef char *found = <char *>tvm_object_of(obj, kind)
    if found == NULL:
        return False
    a.tensor = (<cuplug_tensor *>(found + TVM_HEADER_BYTES))[0]
    a.kind = CUPLUG_ARGUMENT_ARRAY
    a.flags = 0
    return a.tensor.device.type == CUPLUG_CPU and has_sizes(&a.tensor)


cdef int read_torch(
    PyObject *obj, reading *r, cuplug_argument *a, const array_kind *kind
) except -1:
    """Read a tensor of PyTorch without the exchange API. The call runs on its current stream."""
    a.kind = CUPLUG_ARGUMENT_ARRAY
    try:
        check_grad(obj, r, a, kind)
        if a.kind == CUPLUG_ARGUMENT_ARRAY:
            check_bits(<object>obj, r, a)
        if a.kind != CUPLUG_ARGUMENT_ARRAY:
            return 0
        stream = NOT_ORDERED if (<object>obj).is_cuda else None
        capsule = (<object>obj).__dlpack__(stream=stream)
    except Exception as error:
        return set_unreadable(<object>obj, r, a, error)
    read_capsule(<object>obj, capsule, r, a)
    if a.kind == CUPLUG_ARGUMENT_ARRAY:
        a.flags = 0  # no tensor is read-only
        check_memory(obj, r, a)
    if a.kind == CUPLUG_ARGUMENT_ARRAY:
        if kind.tensor_place:
            learn_tensor(obj, kind.tensor_place, &a.tensor)
        drop_strides(&a.tensor)
    return 0


cdef int read_capsule(object obj, object capsule, reading *r, cuplug_argument *a) except -1:
    """Read a capsule. Before DLPack 1, none can be marked read-only: NumPy also assumes that."""
    keep(r, capsule)
    a.kind = CUPLUG_ARGUMENT_ARRAY
    a.flags = 0
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        read_versioned(obj, capsule, r, a)
    elif PyCapsule_IsValid(capsule, "dltensor"):
        a.tensor = (<dlpack_managed_tensor *>PyCapsule_GetPointer(capsule, "dltensor")).tensor
        a.flags = CUPLUG_READ_ONLY
    else:
        return set_unreadable(obj, r, a, "its __dlpack__ gives no capsule of DLPack")
    if a.kind == CUPLUG_ARGUMENT_ARRAY and not has_sizes(&a.tensor):
        return set_unreadable(obj, r, a, NO_SIZES)
    return 0


cdef int read_versioned(object obj, object capsule, reading *r, cuplug_argument *a) except -1:
    cdef dlpack_versioned_tensor *managed = <dlpack_versioned_tensor *>PyCapsule_GetPointer(
        capsule, "dltensor_versioned"
    )
    if managed.version.major != DLPACK_MAJOR:
        return set_unreadable(
            obj, r, a, f"it speaks DLPack {managed.version.major}, expected {DLPACK_MAJOR}"
        )
    a.tensor = managed.tensor
    if managed.flags & DLPACK_READ_ONLY:
        a.flags = CUPLUG_READ_ONLY
    return 0


cdef object export_capsule(object obj):
    """Request a capsule, ordered before work on the legacy default stream.

    The capsule is not consumed. When it is collected, after the call, it frees its contents.
    """
    device_type = obj.__dlpack_device__()[0]
    on_cuda = device_type in (CUPLUG_CUDA, CUPLUG_CUDA_MANAGED)
    stream = LEGACY_STREAM if on_cuda else None
    try:
        return obj.__dlpack__(stream=stream, max_version=(DLPACK_MAJOR, 0))
    except TypeError:
        return obj.__dlpack__(stream=stream)


cdef void set_error(void *context, const char *kind, const char *message) noexcept with gil:
    PyErr_SetString(MemoryError if kind == b"MemoryError" else RuntimeError, message)


cdef object empty_torch(object like, const array_kind *kind, cuplug_tensor *x):
    """Allocate with PyTorch's functions, which are faster on a GPU than its DLPack allocator.

    `record_stream` works on these tensors, unlike on tensors from DLPack.
    """
    cdef cuplug_argument first, made
    borrow(like, kind, &first)
    if same_layout(&first.tensor, x):
        result = empty_like(like)
    else:
        dtype = first.tensor.dtype
        result = new_tensor(like, x, dtype.code == x.dtype.code and dtype.bits == x.dtype.bits)
    borrow(result, kind, &made)
    x.data = <char *>made.tensor.data + made.tensor.byte_offset
    x.device = made.tensor.device
    return result


cdef object empty_old_torch(object like, cuplug_tensor *x):
    """Allocate without the exchange API."""
    result = new_tensor(like, x, False)
    x.data = <void *><size_t>result.data_ptr()
    if x.device.type != CUPLUG_CUDA:  # like may be pinned
        x.device.type = CUPLUG_CPU
        x.device.id = 0
    return result


cdef object empty_strided(object like, cuplug_tensor *x):
    """Make a tensor of PyTorch with the strides of `x`."""
    result = new_strided(like, x)
    x.data = <void *><size_t>result.data_ptr()
    return result


cdef inline int borrow(object array, const array_kind *kind, cuplug_argument *a) except -1:
    if kind.tensor_place and type_of(<PyObject *>array) == kind.type:
        if read_tensor(<PyObject *>array, kind.tensor_place, a):
            return 0
    return reraise() if kind.exchange.export_borrowed(<void *>array, &a.tensor) else 0


cdef bint same_layout(const cuplug_tensor *x, const cuplug_tensor *y) noexcept:
    """Copy between arrays of one dtype and shape; x is C-contiguous."""
    cdef int k
    cdef int64_t stride = 1
    if x.ndim != y.ndim or x.dtype.code != y.dtype.code or x.dtype.bits != y.dtype.bits:
        return False
    for k in range(x.ndim - 1, -1, -1):
        if x.shape[k] != y.shape[k] or (x.strides != NULL and x.strides[k] != stride):
            return False
        stride *= x.shape[k]
    return True


cdef object empty_exchange(object like, const array_kind *kind, cuplug_tensor *x):
    if kind.protocol == TORCH:
        return empty_old_torch(like, x)
    if kind.is_torch and x.device.type == CUPLUG_CUDA and kind.exchange.export_borrowed != NULL:
        return empty_torch(like, kind, x)
    return empty_managed(kind, x)


cdef object empty_managed(const array_kind *kind, cuplug_tensor *x):
    cdef dlpack_versioned_tensor *managed = NULL
    cdef PyObject *array = NULL
    if kind.exchange.allocate(x, &managed, NULL, set_error):
        reraise()
    x.data = <char *>managed.tensor.data + managed.tensor.byte_offset
    x.device = managed.tensor.device
    if kind.exchange.import_managed(managed, <void **>&array):
        reraise()
    result = <object>array
    Py_XDECREF(array)
    return result
