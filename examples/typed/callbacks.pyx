# SPDX-License-Identifier: Apache-2.0
"""Functions that SciPy calls by their address, without Python objects: scipy.LowLevelCallable.

    slope = numpy.array([0.5])
    bent = LowLevelCallable.from_cython(callbacks, "bent", slope.ctypes.data_as(c_void_p))
    scipy.integrate.quad(bent, -1, 1)
    scipy.ndimage.generic_filter(image, LowLevelCallable.from_cython(callbacks, "median"), size=3)

SciPy calls on after an error, so each function first checks whether there has been one.
"""

from cpython.exc cimport PyErr_Occurred
from libc.stdint cimport intptr_t
from libc.stdlib cimport free, malloc

from cuplug.typed.leaky_relu cimport at, leaky_relu
from cuplug.typed.sort cimport sort


cdef api double bent(double x, void *slope) except? -1:
    """Return leaky_relu(x), for quad. `slope` is the address of one double."""
    cdef double result = -1
    if PyErr_Occurred():
        return -1
    leaky_relu(at(&x), at(&result), (<double *>slope)[0])
    return result


cdef api int median(double *window, intptr_t n, double *result, void *unused) except 0:
    """Set `result` to the middle one of the n elements in order, for generic_filter."""
    cdef double *ordered
    if PyErr_Occurred():
        return 0
    ordered = <double *>malloc(n * sizeof(double))
    if ordered == NULL:
        raise MemoryError()
    try:
        sort(at(window, n), at(ordered, n))
        result[0] = ordered[n // 2]
    finally:
        free(ordered)
    return 1
