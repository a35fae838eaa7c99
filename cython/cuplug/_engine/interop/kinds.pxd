# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject

from cuplug._engine.base.dlpack cimport dlpack_exchange


ctypedef enum protocol:
    NO_ARRAY
    NUMPY
    EXCHANGE  # DLPack's C exchange API
    TORCH  # PyTorch's tensors, if it has no exchange API
    CUPY
    OWN  # an Array
    DLPACK  # __dlpack__
    CUDA_INTERFACE  # __cuda_array_interface__
    BUFFER
    SPEC  # no elements: an ArraySpec

# The attributes by which CuPy's arrays are read.
cdef enum:
    CUPY_DTYPE
    CUPY_SHAPE
    CUPY_STRIDES
    CUPY_IS_CONTIGUOUS
    N_CUPY_OF_ARRAY
    CUPY_POINTER = N_CUPY_OF_ARRAY  # from here on, attributes of the object `data`
    CUPY_DEVICE
    N_CUPY_ATTRIBUTES

ctypedef struct cupy_getters:
    PyObject *memory_type  # the type of `data`; NULL: some attribute has no getter
    PyObject *of[N_CUPY_ATTRIBUTES]

# How objects of one type are read as arrays. Never freed: calls read them without a lock.
ctypedef struct array_kind:
    PyObject *type
    int protocol
    const dlpack_exchange *exchange
    PyObject *requires_grad  # a getset descriptor, or NULL
    int is_torch  # a tensor of PyTorch
    size_t tvm_place  # of tvm-ffi's tensors: the offset of the object's address in them; or 0
    size_t tensor_place  # of PyTorch: the result of find_tensor
    const void *owner  # equal if arrays share one current stream
    cupy_getters cupy


cdef extern from *:
    """
    #define cuplug_type_of(obj) ((PyObject *)Py_TYPE(obj))
    #define cuplug_load_kind(slot) __atomic_load_n((slot), __ATOMIC_ACQUIRE)
    #define cuplug_store_kind(slot, kind) __atomic_store_n((slot), (kind), __ATOMIC_RELEASE)
    """
    PyObject *type_of "cuplug_type_of"(PyObject *obj) noexcept  # Py_TYPE, without references
    array_kind *cuplug_load_kind(array_kind **slot) noexcept nogil
    void cuplug_store_kind(array_kind **slot, const array_kind *kind) noexcept nogil


# Attributes that C code computes are read through that code, in a fraction of the time of a look-up
# by name.
cdef extern from "Python.h":
    ctypedef object (*getter)(PyObject *, void *)

    ctypedef struct PyGetSetDef:
        getter get
        void *closure

    ctypedef struct PyGetSetDescrObject:
        PyGetSetDef *d_getset


# The object of a tensor of tvm-ffi; NULL for a borrowed tensor, and for other objects.
cdef inline void *tvm_object_of(PyObject *obj, const array_kind *kind) noexcept:
    if kind == NULL or not kind.tvm_place:
        return NULL
    return (<void **>(<char *>obj + kind.tvm_place))[0]


# The kind of an array's type; NULL for other types. If the table is full, `made` itself is filled
# and returned.
cdef const array_kind *find_kind(PyObject *obj, array_kind *made) except? NULL
cdef const array_kind *numpy_kind() noexcept
# The descriptor of a class's attribute, borrowed from the class; NULL if it has another kind.
cdef inline PyObject *find_getter(object cls, str name):
    descriptor = getattr(cls, name, None)
    if type(descriptor).__name__ != "getset_descriptor":
        return NULL
    return <PyObject *>descriptor


cdef inline object call_getter(PyObject *descriptor, PyObject *obj):
    cdef PyGetSetDef *definition = (<PyGetSetDescrObject *>descriptor).d_getset
    return definition.get(obj, definition.closure)
