# SPDX-License-Identifier: Apache-2.0
"""Calls in a loop without the GIL: the typed function, the C API, and a plain C function; rows in
threads.
"""

from cuplug.typed.relu cimport relu
from cython.parallel cimport prange
from libc.stdint cimport int64_t
from noop_typed cimport at, noop3, view

cdef extern from *:
    """
    #include <cuplug/host.h>

    static int nothing(const float *a, const float *b, const float *c, int64_t n) {
      return (a == 0 || b == 0 || c == 0) && n;
    }
    /* read in each call, so that the compiler cannot look into it */
    static int (*volatile plain_noop)(const float *, const float *, const float *,
                                      int64_t) = nothing;

    static cuplug_argument floats(float *data, int64_t *shape) {
      cuplug_tensor tensor = {.data = data, .ndim = 1, .shape = shape};
      tensor.device.type = CUPLUG_CPU;
      tensor.dtype.code = 2, tensor.dtype.bits = 32, tensor.dtype.lanes = 1;
      return cuplug_array(&tensor);
    }
    """
    ctypedef struct cuplug_operator:
        pass
    ctypedef struct cuplug_argument:
        pass
    ctypedef struct cuplug_error:
        const char *message
    int cuplug_find(const char *name, cuplug_operator **op, cuplug_error *error)
    int cuplug_invoke(cuplug_operator *op, const cuplug_argument *args, unsigned int n_args,
                      const void *options, cuplug_error *error) nogil
    int plain_noop(const float *a, const float *b, const float *c, int64_t n) nogil
    cuplug_argument floats(float *data, int64_t *shape)


def typed(float[::1] a, float[::1] b, float[::1] c, int64_t n):
    """Call the typed function n times, all checks on."""
    cdef int64_t k
    with nogil:
        for k in range(n):
            noop3(view(a), view(b), view(c))


def c_api(float[::1] a, float[::1] b, float[::1] c, int64_t n):
    """Call cuplug_invoke n times with arguments made before, all checks on."""
    cdef int64_t k, size = a.shape[0]
    cdef int status = 0
    cdef cuplug_operator *op = NULL
    cdef cuplug_error error
    cdef cuplug_argument[3] arguments
    arguments[0] = floats(&a[0], &size)
    arguments[1] = floats(&b[0], &size)
    arguments[2] = floats(&c[0], &size)
    if cuplug_find(b"noop.noop3", &op, &error):
        raise LookupError(error.message.decode())
    with nogil:
        for k in range(n):
            status |= cuplug_invoke(op, arguments, 3, NULL, &error)
    if status:
        raise ValueError(error.message.decode())


def plain(float[::1] a, float[::1] b, float[::1] c, int64_t n):
    """Call a C function through a pointer n times; nothing is checked."""
    cdef int64_t k
    cdef int status = 0
    with nogil:
        for k in range(n):
            status |= plain_noop(&a[0], &b[0], &c[0], a.shape[0])
    if status:
        raise ValueError("the function failed")


def rows(const float[:, ::1] x, float[:, ::1] out, int64_t n, int n_threads):
    """Call relu on each row n times, by pointers, in threads."""
    cdef int64_t repeat
    cdef Py_ssize_t k, size = x.shape[1]
    for repeat in range(n):
        for k in prange(x.shape[0], nogil=True, num_threads=n_threads, schedule="static"):
            relu(at(&x[k, 0], size), at(&out[k, 0], size))


def sliced_rows(const float[:, ::1] x, float[:, ::1] out, int64_t n, int n_threads):
    """The same by slices, which threads count."""
    cdef int64_t repeat
    cdef Py_ssize_t k
    for repeat in range(n):
        for k in prange(x.shape[0], nogil=True, num_threads=n_threads, schedule="static"):
            relu(view(x[k]), view(out[k]))
