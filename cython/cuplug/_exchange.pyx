# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries through DLPack: its C exchange API, and `__dlpack__`."""

import sys

from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New
from cpython.ref cimport Py_XDECREF
from libc.stdint cimport int64_t, uint32_t

from cuplug._getters cimport call_getter
from cuplug._reading cimport keep, reading, set_other
from cuplug._dlpack cimport (
    DLPACK_BOOL,
    DLPACK_COMPLEX,
    DLPACK_INT,
    DLPACK_MAJOR,
    DLPACK_READ_ONLY,
    DLPACK_UINT,
    dlpack_exchange,
    dlpack_managed_tensor,
    dlpack_versioned_tensor,
)
from cuplug._host cimport (
    CUPLUG_ARGUMENT_ARRAY,
    CUPLUG_CUDA,
    CUPLUG_CUDA_MANAGED,
    CUPLUG_READ_ONLY,
    cuplug_argument,
    cuplug_dtype,
    cuplug_dtype_id,
    cuplug_dtype_name,
    cuplug_tensor,
)
from cuplug._kinds cimport array_kind, type_of
from cuplug._libtorch cimport drop_strides, learn_tensor, read_tensor

cdef extern from "Python.h":
    void PyErr_SetString(object type, const char *message)

cdef dict torch_dtypes = {}  # by type id
cdef object torch_empty_like = None

# The legacy default stream, as the Array API numbers streams.
LEGACY_STREAM = 1


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
    if kind.tensor_place:
        learn_tensor(obj, kind.tensor_place, &a.tensor)
    return check_torch(obj, r, a, kind) if kind.is_torch else 0


cdef inline bint is_integer(const cuplug_tensor *x) noexcept:
    return x.dtype.code in (DLPACK_INT, DLPACK_UINT, DLPACK_BOOL)


cdef int check_torch(
    PyObject *obj, reading *r, cuplug_argument *a, const array_kind *kind
) except -1:
    """What numbers that are no integers can be, and their memory does not tell."""
    if is_integer(&a.tensor):
        return 0
    if kind.requires_grad != NULL:
        grad = call_getter(kind.requires_grad, obj)
    else:
        grad = (<object>obj).requires_grad
    if grad is not False:
        return set_other(
            r, a, f"{type(<object>obj).__name__} that requires grad (pass x.detach())"
        )
    drop_strides(&a.tensor)
    return check_views(<object>obj, r, a)


cdef int check_views(object obj, reading *r, cuplug_argument *a) except -1:
    """Conjugated views are complex; negated ones are every other number of such a view."""
    if a.tensor.dtype.code == DLPACK_COMPLEX:
        if obj.is_conj():
            return set_other(r, a, "a conjugated view (pass x.resolve_conj())")
    elif a.tensor.strides == NULL or is_integer(&a.tensor):
        return 0
    if obj.is_neg():
        return set_other(r, a, "a negated view (pass x.resolve_neg())")
    return 0


cdef int reraise() except -1:
    """The exception that a C function has set."""
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


cdef int set_unreadable(object obj, reading *r, cuplug_argument *a, object error) except -1:
    reason = str(error).partition("\n")[0]
    return set_other(r, a, f"{type(obj).__name__} that cannot be read: {reason}")


cdef int read_dlpack(object obj, reading *r, cuplug_argument *a) except -1:
    try:
        capsule = export_capsule(obj)
    except Exception as error:
        return set_unreadable(obj, r, a, error)
    keep(r, capsule)
    a.kind = CUPLUG_ARGUMENT_ARRAY
    a.flags = 0
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        return read_versioned(obj, capsule, r, a)
    if not PyCapsule_IsValid(capsule, "dltensor"):
        return set_unreadable(obj, r, a, "its __dlpack__ gives no capsule of DLPack")
    a.tensor = (<dlpack_managed_tensor *>PyCapsule_GetPointer(capsule, "dltensor")).tensor
    return 0


cdef int read_versioned(object obj, object capsule, reading *r, cuplug_argument *a) except -1:
    cdef dlpack_versioned_tensor *managed = <dlpack_versioned_tensor *>PyCapsule_GetPointer(
        capsule, "dltensor_versioned"
    )
    if managed.version.major != DLPACK_MAJOR:
        return set_unreadable(
            obj, r, a, f"it speaks DLPack {managed.version.major}, wanted {DLPACK_MAJOR}"
        )
    a.tensor = managed.tensor
    if managed.flags & DLPACK_READ_ONLY:
        a.flags = CUPLUG_READ_ONLY
    return 0


cdef object export_capsule(object obj):
    """Ask for a capsule, ordered before work on the legacy default stream.

    The capsule is not consumed: it frees what it holds when it is collected, after the call.
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
    """By PyTorch's functions: on a GPU faster than its DLPack allocator.

    And `record_stream` works on these tensors, as it does not on those from DLPack.
    """
    cdef cuplug_argument first, made
    borrow(like, kind, &first)
    if same_layout(&first.tensor, x):
        result = empty_like(like)
    else:
        shape = tuple([x.shape[k] for k in range(x.ndim)])
        dtype = first.tensor.dtype
        if dtype.code == x.dtype.code and dtype.bits == x.dtype.bits:
            result = like.new_empty(shape)
        else:
            result = like.new_empty(shape, dtype=torch_dtype(x.dtype))
    borrow(result, kind, &made)
    x.data = <char *>made.tensor.data + made.tensor.byte_offset
    x.device = made.tensor.device
    return result


cdef inline int borrow(object array, const array_kind *kind, cuplug_argument *a) except -1:
    if kind.tensor_place and type_of(<PyObject *>array) == kind.type:
        if read_tensor(<PyObject *>array, kind.tensor_place, a):
            return 0
    return reraise() if kind.exchange.export_borrowed(<void *>array, &a.tensor) else 0


cdef bint same_layout(const cuplug_tensor *x, const cuplug_tensor *y) noexcept:
    """Of one dtype and shape, and x is C-contiguous."""
    cdef int k
    cdef int64_t stride = 1
    if x.ndim != y.ndim or x.dtype.code != y.dtype.code or x.dtype.bits != y.dtype.bits:
        return False
    for k in range(x.ndim - 1, -1, -1):
        if x.shape[k] != y.shape[k] or (x.strides != NULL and x.strides[k] != stride):
            return False
        stride *= x.shape[k]
    return True


cdef object empty_like(object x):
    global torch_empty_like
    if torch_empty_like is None:
        torch_empty_like = sys.modules["torch"].empty_like
    return torch_empty_like(x)


cdef object torch_dtype(cuplug_dtype dtype):
    cdef uint32_t k = 0
    cdef uint32_t type_id = dtype.code << 24 | dtype.bits << 16 | dtype.lanes
    found = torch_dtypes.get(type_id)
    if found is None:
        while cuplug_dtype_name(k) != NULL and cuplug_dtype_id(k) != type_id:
            k += 1
        found = getattr(sys.modules["torch"], cuplug_dtype_name(k).decode())
        torch_dtypes[type_id] = found
    return found


cdef object empty_exchange(object like, const array_kind *kind, cuplug_tensor *x):
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
