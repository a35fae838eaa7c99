# SPDX-License-Identifier: Apache-2.0
"""Arguments as values of tvm-ffi, its values as Python objects, its errors as exceptions."""

import builtins

from cpython.exc cimport PyErr_Fetch, PyErr_NormalizeException, PyErr_Occurred
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdint cimport int64_t, uint32_t

from cuplug._engine.arguments.outputs cimport finish_output
from cuplug._engine.array.array cimport share_memory
from cuplug._engine.base.core cimport (
    CUPLUG_ARGUMENT_ARRAY,
    CUPLUG_ARGUMENT_BOOL,
    CUPLUG_ARGUMENT_FLOAT,
    CUPLUG_ARGUMENT_INT,
    CUPLUG_ARGUMENT_LIST,
    CUPLUG_ARGUMENT_NONE,
    CUPLUG_ARGUMENT_OTHER,
    CUPLUG_ARGUMENT_STRING,
    CUPLUG_BYTE_SWAPPED,
    CUPLUG_CPU,
    CUPLUG_MISALIGNED,
    CUPLUG_READ_ONLY,
)
from cuplug._engine.interop.kinds cimport (
    NUMPY,
    OWN,
    array_kind,
    cuplug_load_kind,
    cuplug_store_kind,
    find_kind,
    tvm_object_of,
    type_of,
)
from cuplug._engine.interop.reading cimport items_of
from cuplug._engine.modules.abi cimport (
    TVM_ARRAY,
    TVM_BOOL,
    TVM_BYTES,
    TVM_DEVICE,
    TVM_DTYPE,
    TVM_FLOAT,
    TVM_INT,
    TVM_NONE,
    TVM_OBJECT,
    TVM_POINTER,
    TVM_RAW_TEXT,
    TVM_SHAPE,
    TVM_SMALL_BYTES,
    TVM_SMALL_TEXT,
    TVM_TENSOR,
    TVM_TEXT,
    tvm_any,
    tvm_bytes,
    tvm_callable,
    tvm_error,
    tvm_free_tensor,
    tvm_is_shared,
    tvm_make_tensor,
    tvm_object,
    tvm_release,
    tvm_retain,
    tvm_tensor,
    tvm_text,
)
from cuplug._engine.modules.runtime cimport find_global, run_function, runtime

import numpy

from cuplug._engine.base.dtypes import BY_ID
from cuplug.errors import PluginError

cdef enum:
    MAX_ITEMS = 1024  # of a list

cdef array_kind *tensors = NULL  # the kind of tvm-ffi's own tensors, once one was passed


cdef int to_value(
    const cuplug_argument *a, PyObject *obj, reading *r, str name, Py_ssize_t at,
    tvm_any *value
) except -1:
    value.n_small = 0
    value.value.i = 0
    if a.kind == CUPLUG_ARGUMENT_ARRAY:
        return tensor_value(a, obj, r, name, at, value)
    if a.kind == CUPLUG_ARGUMENT_INT:
        value.type = TVM_INT
        value.value.i = a.scalar.i
    elif a.kind == CUPLUG_ARGUMENT_FLOAT:
        value.type = TVM_FLOAT
        value.value.f = a.scalar.f
    elif a.kind == CUPLUG_ARGUMENT_BOOL:
        value.type = TVM_BOOL
        value.value.i = a.scalar.i
    elif a.kind == CUPLUG_ARGUMENT_STRING:
        value.type = TVM_RAW_TEXT
        value.value.p = a.scalar.s
    elif a.kind == CUPLUG_ARGUMENT_NONE:
        value.type = TVM_NONE
    elif a.kind == CUPLUG_ARGUMENT_LIST:
        return list_value(a, r, name, at, value)
    else:
        refuse(a, obj, name, at)
    return 0


cdef int refuse(const cuplug_argument *a, PyObject *obj, str name, Py_ssize_t at) except -1:
    seen = type(<object>obj).__name__
    if a.kind == CUPLUG_ARGUMENT_OTHER and a.scalar.s != NULL:
        seen = a.scalar.s.decode("utf-8", "replace")
    raise TypeError(
        f"{name}: argument {at}: got {seen}, expected an array, an integer of 64 bits, a float, "
        "a bool, a string, None or a list of these"
    )


cdef int tensor_value(
    const cuplug_argument *a, PyObject *obj, reading *r, str name, Py_ssize_t at,
    tvm_any *value
) except -1:
    """A tensor that keeps its array while the module refers to it."""
    cdef tvm_tensor *tensor
    cdef array_kind unknown
    if a.flags:
        refuse_array(a.flags, name, at)
    cdef const array_kind *kind = find_kind(obj, &unknown)
    tensor = <tvm_tensor *>tvm_object_of(obj, kind)
    if tensor != NULL:
        if kind != &unknown:
            cuplug_store_kind(&tensors, kind)
        tvm_retain(&tensor.head)
        value.type = TVM_TENSOR
        value.value.p = tensor
        return 0
    owner = <object>obj
    if r.kept != NULL:
        owner = owner, <object>r.kept
    tensor = tvm_make_tensor(&a.tensor, <void *>owner, drop_owner)
    if tensor == NULL:
        raise MemoryError()
    Py_INCREF(owner)
    value.type = TVM_TENSOR
    value.value.p = tensor
    return 0


cdef bint take_tensors(
    PyObject *const *args, Py_ssize_t n, reading *r, tvm_any *values
) noexcept:
    cdef const array_kind *kind = cuplug_load_kind(&tensors)
    cdef const tvm_tensor *tensor
    cdef Py_ssize_t k
    if kind == NULL or not n:
        return False
    for k in range(n):
        if type_of(args[k]) != kind.type:
            return False
        tensor = <const tvm_tensor *>tvm_object_of(args[k], kind)
        if tensor == NULL or tensor.tensor.device.type != CUPLUG_CPU:
            return False
        values[k].type = TVM_TENSOR
        values[k].n_small = 0
        values[k].value.p = tensor
    r.first, r.first_kind = args[0], kind
    return True


cdef int refuse_array(uint32_t flags, str name, Py_ssize_t at) except -1:
    if flags & CUPLUG_BYTE_SWAPPED:
        seen, wanted = "an array of the other byte order", "native byte order; pass a copy"
    elif flags & CUPLUG_READ_ONLY:
        seen = "a read-only array"
        wanted = "one that may be written (nothing tells what the function writes); pass a copy"
    elif flags & CUPLUG_MISALIGNED:
        seen, wanted = "a misaligned array", "an aligned one; pass a copy"
    else:
        return 0
    raise ValueError(
        f"{name}: argument {at}: got {seen}, expected {wanted}, or describe the function"
    )


cdef void drop_owner(void *self, int what) noexcept nogil:
    if what & 1:
        with gil:
            Py_DECREF(<object>(<tvm_tensor *>self).owner)
    if what & 2:
        tvm_free_tensor(self)


cdef void drop(tvm_any *value) noexcept:
    cdef tvm_tensor *tensor
    if value.type < TVM_OBJECT:
        return
    tensor = <tvm_tensor *>value.value.p
    if tensor.head.deleter == drop_owner and not tvm_is_shared(&tensor.head):
        Py_DECREF(<object>tensor.owner)
        tvm_free_tensor(tensor)
    else:
        tvm_release(&tensor.head)


cdef int call_global(
    const char *name, const tvm_any *args, Py_ssize_t n, tvm_any *result
) except -1:
    cdef tvm_object *function = <tvm_object *>find_global(name)
    cdef int status = run_function(
        function, (<tvm_callable *>function).call, args, <int>n, -1, NULL, result
    )
    tvm_release(function)
    if status:
        raise error_of(name.decode(), status)
    return 0


cdef int list_value(
    const cuplug_argument *a, reading *r, str name, Py_ssize_t at, tvm_any *value
) except -1:
    """Create an array of tvm-ffi with its own library."""
    cdef tvm_any items[MAX_ITEMS]
    cdef Py_ssize_t k, n = 0
    if a.list.n > MAX_ITEMS:
        raise ValueError(
            f"{name}: argument {at}: got a list of {a.list.n}, expected at most {MAX_ITEMS} items"
        )
    try:
        for k in range(a.list.n):
            item = &(<const cuplug_argument *>a.list.items)[k]
            to_value(item, items_of(a)[k], r, name, at, &items[k])
            n += 1
        call_global(b"ffi.Array", items, n, value)
    finally:
        for k in range(n):
            drop(&items[k])
    return 0


cdef object to_object(tvm_any *value, reading *r, str name):
    cdef int kind = value.type
    if kind == TVM_NONE:
        return None
    if kind == TVM_INT:
        return value.value.i
    if kind == TVM_BOOL:
        return value.value.i != 0
    if kind == TVM_FLOAT:
        return value.value.f
    if kind == TVM_SMALL_TEXT:
        return value.value.small[: value.n_small].decode("utf-8")
    if kind == TVM_SMALL_BYTES:
        return <bytes>value.value.small[: value.n_small]
    if kind == TVM_POINTER:
        return <size_t>value.value.p
    if kind == TVM_DTYPE:
        return dtype_of(<const unsigned char *>value.value.small)
    if kind == TVM_DEVICE:
        return device_of(<const int *>value.value.small)
    if kind == TVM_TENSOR:
        return array_of(value, r, name)
    try:
        return object_of(value, r, name)
    finally:
        drop(value)


cdef object dtype_of(const unsigned char *bytes):
    cdef int lanes = bytes[2] | bytes[3] << 8
    dtype = BY_ID.get(bytes[0] << 24 | bytes[1] << 16 | lanes)
    return f"dtype({bytes[0]}, {bytes[1]}, {lanes})" if dtype is None else dtype.name


cdef object device_of(const int *numbers):
    kind = {1: "cpu", 2: "cuda"}.get(numbers[0], f"device{numbers[0]}")
    return kind if numbers[0] == 1 else f"{kind}:{numbers[1]}"


cdef object object_of(tvm_any *value, reading *r, str name):
    cdef const tvm_text *text = <const tvm_text *>value.value.p  # of only the first three types
    cdef const int64_t *sizes
    if value.type == TVM_TEXT:
        return text.text.data[: text.text.n].decode("utf-8")
    if value.type == TVM_BYTES:
        return <bytes>text.text.data[: text.text.n]
    if value.type == TVM_SHAPE:
        sizes = <const int64_t *>text.text.data
        return tuple([sizes[k] for k in range(<Py_ssize_t>text.text.n)])
    if value.type == TVM_ARRAY:
        return items_of_array(value, r, name)
    raise PluginError(
        f"{name}: result: got an object of type {value.type}, expected a tensor, a number, a "
        "string, None or an array of these"
    )


cdef tuple items_of_array(const tvm_any *value, reading *r, str name):
    cdef tvm_any args[2]
    cdef tvm_any item
    cdef int64_t k, n
    args[0] = value[0]
    call_global(b"ffi.ArraySize", args, 1, &item)
    n = item.value.i
    items = []
    for k in range(n):
        args[1].type = TVM_INT
        args[1].n_small = 0
        args[1].value.i = k
        call_global(b"ffi.ArrayGetItem", args, 2, &item)
        items.append(to_object(&item, r, name))
    return tuple(items)


cdef void release_tensor(object capsule) noexcept:
    tvm_release(<tvm_object *>PyCapsule_GetPointer(capsule, NULL))


cdef object array_of(tvm_any *value, reading *r, str name):
    """Return the array that was given, or a view that owns the tensor."""
    cdef tvm_tensor *tensor = <tvm_tensor *>value.value.p
    cdef int protocol = r.first_kind.protocol if r.first_kind != NULL else NUMPY
    if tensor.head.deleter == drop_owner:
        owner = <object>tensor.owner
        drop(value)
        return owner[0] if type(owner) is tuple else owner
    view = share_memory(&tensor.tensor, PyCapsule_New(tensor, NULL, release_tensor))
    if protocol == OWN:
        return view
    if protocol == NUMPY:
        return numpy.asarray(view) if tensor.tensor.device.type == CUPLUG_CPU else view
    return finish_output(r, name.encode(), view)


cdef object error_of(str name, int status):
    cdef tvm_object *raised = NULL
    cdef const tvm_error *error
    if PyErr_Occurred():
        return python_error()
    if runtime.move_error != NULL:
        runtime.move_error(<void **>&raised)
    if raised == NULL:
        return PluginError(f"{name}: the function returned {status} without an error")
    error = <const tvm_error *>raised
    kind = text_of(&error.kind)
    message = text_of(&error.message)
    tvm_release(raised)
    found = getattr(builtins, kind, None)
    if isinstance(found, type) and issubclass(found, Exception):
        try:
            return found(f"{name}: {message}")
        except TypeError:  # such as UnicodeDecodeError, which is not constructed from a text
            pass
    return PluginError(f"{name}: {kind}: {message}")


cdef str text_of(const tvm_bytes *text):
    return text.data[: text.n].decode("utf-8", "replace")


cdef object python_error():
    """Return the exception of a Python function that the module called."""
    cdef PyObject *kind = NULL
    cdef PyObject *value = NULL
    cdef PyObject *trace = NULL
    PyErr_Fetch(&kind, &value, &trace)
    PyErr_NormalizeException(&kind, &value, &trace)
    result = <object>value
    Py_XDECREF(kind)
    Py_XDECREF(value)
    Py_XDECREF(trace)
    return result
