# SPDX-License-Identifier: Apache-2.0
# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
# Typed memoryviews and cuplug arrays as arguments of typed functions. There is no module of this
# name: all of this becomes part of the modules that use it.
from libc.stdint cimport int64_t, uint64_t

cimport cuplug
cimport cuplug._memoryviews as _cuplug

cdef extern from "cuplug/view.h" nogil:
    """
    #define CUPLUG_MEMORYVIEW(n, is_strided, x, first)                           \
      cuplug_view_of(CUPLUG_TYPE_AT(first), first, n, (x).shape,                 \
                     (is_strided) ? (x).strides : 0, (ptrdiff_t)sizeof(*(first)), \
                     CUPLUG_MEMORYVIEW_HEAD((x).memview))
    /* Cython requests a writable buffer unless the type is const. It also requests none for the
       arrays that copy() makes, and views of views have the flags of these. */
    #if CYTHON_HEX_VERSION < 0x030100F0
    #define CUPLUG_CYTHON_ARRAY __pyx_array_type
    #else
    #define CUPLUG_CYTHON_ARRAY __pyx_mstate_global->__pyx_array_type
    #endif
    #define CUPLUG_IS_READ_ONLY(owner)                                           \
      (!((owner)->flags & PyBUF_WRITABLE) &&                                     \
       ((owner)->view.readonly ||                                                \
        ((owner)->obj != Py_None && Py_TYPE((owner)->obj) != CUPLUG_CYTHON_ARRAY)))
    #define CUPLUG_MEMORYVIEW_HEAD(owner)                                        \
      (__builtin_expect((PyObject *)(owner) == Py_None || !(owner), 0)           \
           ? (uint64_t)CUPLUG_ARGUMENT_NONE                                      \
           : CUPLUG_ARGUMENT_ARRAY |                                             \
                 (uint64_t)CUPLUG_IS_READ_ONLY(owner) * CUPLUG_READ_ONLY << 32)
    """
    _cuplug.View memoryview_of "CUPLUG_MEMORYVIEW"(int n, bint is_strided, ...)


# Every type that Cython tells apart, some of which C does not: int32_t is `signed int`, NumPy's
# int64_t `signed long long`, and C's int64_t `signed long`.
ctypedef fused Element:
    signed char
    unsigned char
    short
    signed short
    unsigned short
    int
    signed int
    unsigned int
    long
    signed long
    unsigned long
    long long
    signed long long
    unsigned long long
    Py_ssize_t
    ssize_t
    ptrdiff_t
    size_t
    float
    double
    float complex
    double complex

# A number whose kind depends on the dtype of an array.
ctypedef fused Number:
    int64_t
    uint64_t
    double
    double complex

ctypedef fused Vector:
    const Element[::1]
    const Element[:]

ctypedef fused Strided:
    const Element[:]
    const Element[:, :]

ctypedef fused Memoryview:
    const Element[::1]
    const Element[:]
    const Element[:, ::1]
    const Element[:, :]
    cuplug.Array


# A memoryview of one or two dimensions, an Array, or None for no array, as an argument of a typed
# function.
cdef inline _cuplug.View view(Memoryview x) noexcept nogil:
    if Memoryview is cuplug.Array:
        return _cuplug.view_of_array(x)
    elif Memoryview in Vector:
        return memoryview_of(1, Memoryview in Strided, x, &x[0])
    else:
        return memoryview_of(2, Memoryview in Strided, x, &x[0, 0])
