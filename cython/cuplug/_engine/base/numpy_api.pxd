# SPDX-License-Identifier: Apache-2.0
# NumPy's C API on borrowed pointers: reading an array changes no reference count.
from cpython.object cimport PyObject, PyTypeObject


cdef extern from "Python.h":
    bint PyObject_TypeCheck(PyObject *x, PyTypeObject *type)


cdef extern from "numpy/arrayobject.h":
    ctypedef Py_ssize_t npy_intp

    ctypedef struct PyArray_Descr:
        PyTypeObject *typeobj
        char kind
        char byteorder
        int type_num

    ctypedef struct PyArrayObject:
        pass

    enum:
        NPY_BOOL
        NPY_BYTE
        NPY_UBYTE
        NPY_SHORT
        NPY_USHORT
        NPY_INT
        NPY_UINT
        NPY_LONG
        NPY_ULONG
        NPY_LONGLONG
        NPY_ULONGLONG
        NPY_HALF
        NPY_FLOAT
        NPY_DOUBLE
        NPY_CFLOAT
        NPY_CDOUBLE
        NPY_UINT8
        NPY_UINT16
        NPY_UINT32
        NPY_UINT64
        NPY_COMPLEX128
        NPY_VOID
        NPY_USERDEF
        NPY_ARRAY_C_CONTIGUOUS
        NPY_ARRAY_ALIGNED
        NPY_ARRAY_WRITEABLE

    ctypedef struct PyDataMemAllocator:
        void *ctx
        void *(*malloc)(void *context, size_t n_bytes) noexcept nogil
        void *(*calloc)(void *context, size_t n, size_t item_bytes) noexcept nogil
        void *(*realloc)(void *context, void *memory, size_t n_bytes) noexcept nogil
        void (*free)(void *context, void *memory, size_t n_bytes) noexcept nogil

    ctypedef struct PyDataMem_Handler:
        char name[127]
        unsigned char version
        PyDataMemAllocator allocator

    PyTypeObject PyArray_Type
    PyTypeObject PyGenericArrType_Type
    PyTypeObject PyBoolArrType_Type
    PyTypeObject PyIntegerArrType_Type
    PyTypeObject PyTimedeltaArrType_Type
    PyTypeObject PyFloatingArrType_Type
    PyTypeObject PyComplexFloatingArrType_Type
    bint PyArray_CheckExact(PyObject *x)
    bint PyArray_Check(PyObject *x)
    void *PyArray_DATA(PyArrayObject *x)
    int PyArray_NDIM(PyArrayObject *x)
    npy_intp *PyArray_DIMS(PyArrayObject *x)
    npy_intp *PyArray_STRIDES(PyArrayObject *x)
    int PyArray_FLAGS(PyArrayObject *x)
    int PyArray_ITEMSIZE(PyArrayObject *x)
    PyArray_Descr *PyArray_DESCR(PyArrayObject *x)
    bint PyArray_ISBYTESWAPPED(PyArrayObject *x)
    int _import_array() except -1
    object PyDataMem_SetHandler(object handler)
    PyObject *PyDataMem_DefaultHandler  # a capsule, "mem_handler"
    object PyArray_EMPTY(int ndim, npy_intp *shape, int type_num, int fortran)
    object PyArray_View(PyArrayObject *x, PyArray_Descr *descr, PyTypeObject *type)
    object PyArray_New(
        PyTypeObject *subtype, int ndim, npy_intp *shape, int type_num, npy_intp *strides,
        void *data, int item_bytes, int flags, PyObject *base
    )
    object PyArray_NewFromDescr(
        PyTypeObject *subtype, PyArray_Descr *descr, int ndim, npy_intp *shape, npy_intp *strides,
        void *data, int flags, PyObject *base
    )  # steals a reference to the descr
    int PyArray_SetBaseObject(PyArrayObject *x, PyObject *base) except -1  # and to the base
