# SPDX-License-Identifier: Apache-2.0
"""Python objects -> arguments of the core: the choice of a reader, and NumPy's arrays."""

from cpython.list cimport PyList_Check, PyList_CheckExact
from cpython.number cimport PyNumber_Index
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_Check, PyTuple_CheckExact, PyTuple_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint32_t

from cuplug._engine.array.array cimport Array
from cuplug._engine.base.dlpack cimport DLPACK_COMPLEX
from cuplug._engine.base.numpy_dtypes cimport N_BUILTIN, builtin_table, dtype_of_descr
from cuplug._engine.interop.exchange cimport read_dlpack, read_exchange, read_torch, read_tvm
from cuplug._engine.base.core cimport (
    CUPLUG_ARGUMENT_ARRAY,
    CUPLUG_ARGUMENT_HANDLE,
    CUPLUG_ARGUMENT_LIST,
    CUPLUG_BYTE_SWAPPED,
    CUPLUG_CPU,
    CUPLUG_CUDA,
    CUPLUG_CUDA_MANAGED,
    CUPLUG_MISALIGNED,
    CUPLUG_READ_ONLY,
    cuplug_argument,
    cuplug_device,
    cuplug_dtype,
    cuplug_element_bytes,
    cuplug_tensor,
)
from cuplug._engine.host.blocks cimport empty_array
from cuplug._engine.interop.interfaces cimport read_buffer, read_cuda_interface, read_cupy
from cuplug._engine.interop.kinds cimport (
    CUDA_INTERFACE,
    CUPY,
    DLPACK,
    EXCHANGE,
    NUMPY,
    OWN,
    SPEC,
    TORCH,
    array_kind,
    cuplug_load_kind,
    cuplug_store_kind,
    numpy_kind,
    type_of,
)
from cuplug._engine.interop.libtorch cimport drop_strides, is_traced, read_tensor
from cuplug._engine.base.numpy_api cimport *
from cuplug._engine.interop.reading cimport (
    N_STORED,
    copy_layout,
    divide_strides,
    items_of,
    keep,
    kind_of,
    arbitrary_code_ran,
    reading,
    set_other,
    set_unreadable,
    store,
    store_copy,
)
from cuplug._engine.arguments.handle cimport Handle
from cuplug._engine.arguments.scalars cimport read_exact_scalar, read_numpy_scalar, read_scalar
from cuplug._engine.interop.stream_order cimport add_current_stream
from cuplug._engine.interop.torch cimport check_views

import numpy

from cuplug._engine.base.dtypes import DTYPES

_import_array()

cdef extern from "Python.h":
    PyObject *PyTuple_GET_ITEM(tuple x, Py_ssize_t k)

cdef extern from *:
    """
    #define CUPLUG_PLAIN_NDIM 4
    static inline __attribute__((always_inline)) int cuplug_read_plain(
        PyObject *obj, const cuplug_dtype *dtypes, int n_dtypes, cuplug_argument *a,
        int64_t *room, const int64_t *last_room) {
      if (!PyArray_CheckExact(obj) || room > last_room) return 0;
      PyArrayObject *x = (PyArrayObject *)obj;
      const PyArray_Descr *descr = PyArray_DESCR(x);
      const npy_intp *sizes = PyArray_DIMS(x);
      const int flags = PyArray_FLAGS(x), in_order = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED;
      const unsigned type = (unsigned)descr->type_num, ndim = (unsigned)PyArray_NDIM(x);
      unsigned d = 0;
      if (ndim - 1 >= CUPLUG_PLAIN_NDIM || (flags & in_order) != in_order ||
          type >= (unsigned)n_dtypes || !dtypes[type].bits || descr->byteorder == NPY_OPPBYTE)
        return 0;
      a->kind = CUPLUG_ARGUMENT_ARRAY;
      a->flags = flags & NPY_ARRAY_WRITEABLE ? 0 : CUPLUG_READ_ONLY;
      a->tensor.data = PyArray_DATA(x);
      a->tensor.device = (cuplug_device){CUPLUG_CPU, 0};
      a->tensor.ndim = (int32_t)ndim;
      a->tensor.dtype = dtypes[type];
      a->tensor.shape = room;
      a->tensor.strides = NULL;
      a->tensor.byte_offset = 0;
      do room[d] = sizes[d];
      while (++d < ndim);
      return (int)ndim;
    }
    """
    int PLAIN_NDIM "CUPLUG_PLAIN_NDIM"
    # Reads a typical NumPy array: in C order, with one to PLAIN_NDIM dimensions, and a supported
    # dtype in native byte order. Returns its ndim; 0 for other objects.
    int cuplug_read_plain(
        PyObject *obj, const cuplug_dtype *dtypes, int n_dtypes, cuplug_argument *a, int64_t *room,
        const int64_t *last_room
    ) noexcept

cdef object masked_array = None
cdef const cuplug_dtype *dtypes = builtin_table()
cdef array_kind *last_kind = NULL  # for arrays of other libraries than NumPy


cdef int read_argument(PyObject *obj, reading *r, cuplug_argument *a) except -1:
    return read_any(obj, r, a, cuplug_load_kind(&last_kind))


cdef int read_arguments(PyObject *const *objects, uint32_t n, reading *r, uint32_t at) except -1:
    """Read another library's array. Most belong to one library, so the last type is first."""
    cdef uint32_t i
    cdef int ndim
    cdef const array_kind *last = cuplug_load_kind(&last_kind)
    cdef cuplug_argument *to = &r.args[at]
    cdef PyObject **kept = &r.objects[at]
    cdef const int64_t *last_room = r.stored + N_STORED - PLAIN_NDIM
    for i in range(n):
        kept[i] = objects[i]
        ndim = cuplug_read_plain(objects[i], dtypes, N_BUILTIN, &to[i], r.room, last_room)
        if ndim:
            r.room += ndim
            note_ndarray(r, objects[i])
        else:
            read_any(objects[i], r, &to[i], last)
    return 0


cdef int read_keyword(PyObject *obj, reading *r, uint32_t at) except -1:
    """Read one keyword argument, which is mostly not an array."""
    if PyArray_CheckExact(obj):
        return read_arguments(&obj, 1, r, at)
    r.objects[at] = obj
    return read_argument(obj, r, &r.args[at])


cdef int read_any(PyObject *obj, reading *r, cuplug_argument *a, const array_kind *last) except -1:
    if PyArray_CheckExact(obj):
        return read_ndarray(obj, r, a)
    if last != NULL and last.type == type_of(obj):
        return read_array(obj, r, a, last)
    return read_other(obj, r, a)


cdef inline void note_ndarray(reading *r, PyObject *obj) noexcept:
    if r.first == NULL:
        r.first = obj
        r.first_kind = numpy_kind()


cdef int read_other(PyObject *obj, reading *r, cuplug_argument *a) except -1:
    if read_exact_scalar(obj, r, a):
        return 0
    if PyTuple_Check(<object>obj) or PyList_Check(<object>obj):
        return read_list(obj, r, a)
    if type(<object>obj) is Handle:
        a.kind = CUPLUG_ARGUMENT_HANDLE
        a.scalar.handle = (<Handle>obj).handle
        return 0
    return read_by_type(obj, r, a)


cdef int read_list(PyObject *obj, reading *r, cuplug_argument *a) except -1:
    """Read a list without nested lists. Its arguments are followed by their objects."""
    cdef tuple items = tuple(<object>obj)  # which no other code changes
    if not PyTuple_CheckExact(<object>obj):
        keep(r, items)
        if not PyList_CheckExact(<object>obj):
            arbitrary_code_ran(r)
    cdef Py_ssize_t k, n = PyTuple_GET_SIZE(items)
    cdef size_t n_bytes = n * (sizeof(cuplug_argument) + sizeof(PyObject *))
    cdef cuplug_argument *to
    cdef PyObject **objects
    if n > 0x7FFFFFFF:
        return set_other(r, a, f"a list of {n} items")
    to = <cuplug_argument *>store(r, n_bytes // sizeof(int64_t))
    objects = <PyObject **>(to + n)
    for k in range(n):
        objects[k] = PyTuple_GET_ITEM(items, k)
        read_item(objects[k], r, &to[k])
    a.kind = CUPLUG_ARGUMENT_LIST
    a.flags = 0
    a.list.items = to
    a.list.n = <uint32_t>n
    return 0


cdef int read_item(PyObject *obj, reading *r, cuplug_argument *a) except -1:
    if PyTuple_Check(<object>obj) or PyList_Check(<object>obj):
        return set_other(r, a, "a list in a list")
    return read_argument(obj, r, a)


cdef int read_by_type(PyObject *obj, reading *r, cuplug_argument *a) except -1:
    cdef const array_kind *kind
    arbitrary_code_ran(r)
    if PyObject_TypeCheck(obj, &PyGenericArrType_Type):
        return read_numpy_scalar(obj, r, a)
    try:
        kind = kind_of(r, obj)
    except Exception as error:
        return set_unreadable(<object>obj, r, a, error)
    if kind == NULL:
        return read_scalar(obj, r, a)
    if kind.protocol == NUMPY:
        return read_ndarray_subclass(obj, r, a)
    if kind.type != NULL:  # arguments that are not kept have none
        cuplug_store_kind(&last_kind, kind)
    return read_array(obj, r, a, kind)


cdef int read_array(
    PyObject *obj, reading *r, cuplug_argument *a, const array_kind *kind
) except -1:
    read_by_protocol(obj, r, a, kind)
    if a.kind != CUPLUG_ARGUMENT_ARRAY:
        return 0
    if (<size_t>a.tensor.data + a.tensor.byte_offset) & (alignment(&a.tensor) - 1):
        a.flags |= CUPLUG_MISALIGNED
    if kind.is_torch:
        r.has_torch = True
    return note_array(r, obj, kind, a.tensor.device)


cdef int read_by_protocol(
    PyObject *obj, reading *r, cuplug_argument *a, const array_kind *kind
) except -1:
    cdef bint is_plain, is_torch = kind.tensor_place != 0
    if is_torch and (r.has_torch or not is_traced()) and read_tensor(obj, kind.tensor_place, a):
        drop_strides(&a.tensor)
        copy_layout(r, &a.tensor)
        is_plain = a.tensor.strides == NULL and a.tensor.dtype.code != DLPACK_COMPLEX
        return 0 if is_plain else check_views(<object>obj, r, a)
    if kind.protocol == OWN:
        a.kind = CUPLUG_ARGUMENT_ARRAY
        a.flags = CUPLUG_READ_ONLY if (<Array>obj).is_read_only else 0
        a.tensor = (<Array>obj).tensor
        return 0
    if kind.protocol == SPEC:
        return read_spec(<object>obj, r, a)
    if kind.tvm_place and read_tvm(obj, a, kind):
        return 0
    if not kind.tensor_place:  # the queries of plain PyTorch tensors are all C++
        arbitrary_code_ran(r)
    if kind.protocol == EXCHANGE:
        return read_exchange(obj, r, a, kind)
    if kind.protocol == CUPY:
        return read_cupy(obj, r, a, &kind.cupy)
    if kind.protocol == TORCH:
        return read_torch(obj, r, a, kind)
    if kind.protocol == DLPACK:
        return read_dlpack(<object>obj, r, a)
    if kind.protocol == CUDA_INTERFACE:
        return read_cuda_interface(<object>obj, r, a)
    return read_buffer(<object>obj, r, a)


cdef int read_spec(object spec, reading *r, cuplug_argument *a) except -1:
    cdef tuple shape = spec.shape
    cdef Py_ssize_t k, n = PyTuple_GET_SIZE(shape)
    if not r.takes_specs:
        return set_other(r, a, "an ArraySpec, which has no elements (operator.infer takes it)")
    a.tensor.shape = store(r, n)
    for k in range(n):
        a.tensor.shape[k] = PyNumber_Index(shape[k])
    dtype = DTYPES[spec.dtype]
    a.kind = CUPLUG_ARGUMENT_ARRAY
    a.flags = 0
    a.tensor.data = NULL
    a.tensor.device.type = CUPLUG_CPU
    a.tensor.device.id = 0
    a.tensor.ndim = <int32_t>min(n, 0x7FFFFFFF)
    a.tensor.dtype.code = dtype.code
    a.tensor.dtype.bits = 8 * dtype.n_bytes // dtype.n_packed
    a.tensor.dtype.lanes = dtype.n_packed
    a.tensor.strides = NULL
    a.tensor.byte_offset = 0
    return 0


cdef inline size_t alignment(const cuplug_tensor *x) noexcept:
    """Return an element's alignment, in bytes; for complex dtypes, the real part's."""
    cdef size_t n_bytes = x.dtype.bits >> (4 if x.dtype.code == DLPACK_COMPLEX else 3)
    return n_bytes if n_bytes and not n_bytes & (n_bytes - 1) else 1


cdef inline int note_array(
    reading *r, PyObject *obj, const array_kind *kind, cuplug_device device
) except -1:
    if r.first == NULL:
        r.first = obj
        r.first_kind = kind
    if device.type != CUPLUG_CUDA and device.type != CUPLUG_CUDA_MANAGED:
        return 0
    if r.device_kind == NULL:
        r.device_kind = kind
    elif r.device_kind.owner != kind.owner:
        return add_current_stream(r, kind, device.id)
    return 0


cdef int read_ndarray(PyObject *obj, reading *r, cuplug_argument *a) except -1:
    cdef PyArrayObject *x = <PyArrayObject *>obj
    cdef int flags = PyArray_FLAGS(x)
    cdef int in_order = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED
    cdef int type_num = PyArray_DESCR(x).type_num
    cdef cuplug_dtype dtype
    if type_num < N_BUILTIN and dtypes[type_num].bits:
        dtype = dtypes[type_num]
    else:
        dtype = dtype_of_descr(<object>PyArray_DESCR(x))
        if not dtype.bits:
            return set_other(r, a, f"array of dtype {(<object>obj).dtype}")
    a.kind = CUPLUG_ARGUMENT_ARRAY
    a.flags = 0 if flags & NPY_ARRAY_WRITEABLE else CUPLUG_READ_ONLY
    a.tensor.data = PyArray_DATA(x)
    a.tensor.device.type = CUPLUG_CPU
    a.tensor.device.id = 0
    a.tensor.ndim = PyArray_NDIM(x)
    a.tensor.dtype = dtype
    a.tensor.shape = store_copy(r, <int64_t *>PyArray_DIMS(x), a.tensor.ndim)
    a.tensor.strides = NULL
    a.tensor.byte_offset = 0
    if flags & in_order != in_order:
        if not flags & NPY_ARRAY_ALIGNED:
            a.flags |= CUPLUG_MISALIGNED
        divide_strides(r, a, <Py_ssize_t *>PyArray_STRIDES(x), cuplug_element_bytes(&a.tensor))
    if PyArray_ISBYTESWAPPED(x):
        a.flags |= CUPLUG_BYTE_SWAPPED
    if not a.tensor.ndim:
        r.n_scalar_arrays += 1
    note_ndarray(r, obj)
    return 0


cdef int read_ndarray_subclass(PyObject *obj, reading *r, cuplug_argument *a) except -1:
    global masked_array
    if masked_array is None:
        from numpy.ma import MaskedArray as masked_array
    if isinstance(<object>obj, masked_array):
        return set_other(
            r, a, "a masked array, whose mask would be lost (pass x.data or x.filled())"
        )
    view = PyArray_View(<PyArrayObject *>obj, NULL, &PyArray_Type)
    keep(r, view)
    read_argument(<PyObject *>view, r, a)
    if r.first == <PyObject *>view:
        r.first = obj
    return 0


cdef int read_again(reading *r, uint32_t n) except -1:
    cdef uint32_t i, k
    cdef cuplug_argument *items
    r.must_reread = False
    for i in range(n):
        read_borrowed(r.objects[i], r, &r.args[i])
        if r.args[i].kind == CUPLUG_ARGUMENT_LIST:
            items = <cuplug_argument *>r.args[i].list.items
            for k in range(r.args[i].list.n):
                read_borrowed(items_of(&r.args[i])[k], r, &items[k])
    return 0


cdef int read_borrowed(PyObject *obj, reading *r, cuplug_argument *a) except -1:
    """Read current memory and layout of arrays whose readers run no foreign code."""
    cdef const array_kind *kind
    if a.kind != CUPLUG_ARGUMENT_ARRAY:
        return 0
    if PyArray_CheckExact(obj):
        return read_argument(obj, r, a)
    kind = kind_of(r, obj)
    if kind != NULL and kind.protocol == NUMPY:
        return read_ndarray_subclass(obj, r, a)
    return read_array(obj, r, a, kind) if kind != NULL and kind.tensor_place else 0


cdef object empty_numpy(cuplug_tensor *x, bint large):
    result = empty_array(x, large)
    x.data = PyArray_DATA(<PyArrayObject *>result)
    x.device.type = CUPLUG_CPU
    x.device.id = 0
    return result
