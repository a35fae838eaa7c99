# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from cuplug._engine.base.core cimport CUPLUG_MAX_NDIM, cuplug_argument, cuplug_tensor
from cuplug._engine.interop.kinds cimport array_kind


cdef enum:
    MAX_ARGUMENTS = 64
    MAX_READ = 128  # with the outputs, which follow the parameters
    MAX_STREAMS = 8
    N_STORED = 256  # the excess is on the heap: threads may have small stacks

# The arguments of one call while they are read, on the C stack. start_reading prepares it.
ctypedef struct reading:
    const array_kind *first_kind  # of the first array, which outputs resemble; NULL: no array
    PyObject *first  # borrowed
    const array_kind *device_kind  # of the first array on a GPU, whose stream is used
    int n_scalar_arrays  # NumPy arrays without dimensions
    bint has_torch  # a tensor of PyTorch whose writes are counted, outside of traces
    bint must_reread  # arbitrary Python code has run since the arguments were read
    int32_t row  # the overload whose parameter names were used for keywords; -1: any
    bint takes_specs  # descriptions represent arrays: nothing is run
    uint64_t returned  # bit k: optional output k was requested by name
    PyObject *handed_to  # borrowed: the name of the library to which one of the arrays is delegated
    PyObject *kept  # owned: objects that must live until the call ends; NULL or a list
    uint32_t n_streams
    void *streams[MAX_STREAMS]  # of libraries other than the first, to order the call with
    void *given_stream  # the caller's stream; NULL: the first library's current one
    int64_t *room  # the free part of `stored`
    int64_t *apart  # the free part of the heap block that store_apart uses, if `kept` exists
    Py_ssize_t n_apart
    PyObject *objects[MAX_READ]  # borrowed
    cuplug_argument args[MAX_READ]
    int64_t stored[N_STORED]  # shapes and strides in elements


cdef inline void start_reading(reading *r) noexcept:
    r.first_kind = NULL
    r.first = NULL
    r.device_kind = NULL
    r.n_scalar_arrays = 0
    r.has_torch = False
    r.must_reread = False
    r.row = -1
    r.takes_specs = False
    r.returned = 0
    r.handed_to = NULL
    r.kept = NULL
    r.n_streams = 0
    r.given_stream = NULL
    r.room = r.stored


# Foreign code runs, which may change the arrays that were read.
cdef inline void arbitrary_code_ran(reading *r) noexcept:
    if r.first != NULL:
        r.must_reread = True


# An argument of another kind; `text` describes it in error messages.
cdef int set_other(reading *r, cuplug_argument *a, object text) except -1
# An argument that represents an array in a library's program: (name of the library, text).
cdef int set_unsupported(reading *r, cuplug_argument *a, tuple found) except -1
# An argument whose own code raised an exception when it was read.
cdef int set_unreadable(object obj, reading *r, cuplug_argument *a, object error) except -1
cdef int64_t *store_apart(reading *r, Py_ssize_t n) except NULL
# The objects of a list that was read, which are kept until the call ends.
cdef inline PyObject **items_of(const cuplug_argument *a) noexcept:
    return <PyObject **>(<cuplug_argument *>a.list.items + a.list.n)
cdef int divide_strides(
    reading *r, cuplug_argument *a, const Py_ssize_t *strides, Py_ssize_t item_bytes
) except -1
cdef int keep(reading *r, object obj) except -1
# The call's own copy of an array's sizes and strides, which another thread may change while the
# call runs. The number of its dimensions has been checked.
cdef int copy_layout(reading *r, cuplug_tensor *x) except -1
# The kind of an array's type, valid until the call ends; NULL for other types.
cdef const array_kind *kind_of(reading *r, PyObject *obj) except? NULL
# Adds a stream that the call is ordered with.
cdef int add_stream(reading *r, void *stream) except -1


cdef extern from *:
    """
    static inline __attribute__((always_inline)) int64_t *cuplug_copy_numbers(
        int64_t *to, const int64_t *from, int n) {
      for (; n > 0; n--) *to++ = *from++;
      return to;
    }
    """
    # Returns the end of the copy.
    int64_t *cuplug_copy_numbers(int64_t *to, const int64_t *source, int n) noexcept nogil


# Memory for n numbers until the call ends.
cdef inline int64_t *store(reading *r, Py_ssize_t n) except NULL:
    cdef int64_t *room = r.room
    if room + n > r.stored + N_STORED:
        return store_apart(r, n)
    r.room = room + n
    return room


# The same, filled with the sizes or strides of an array.
cdef inline int64_t *store_copy(reading *r, const int64_t *numbers, int ndim) except NULL:
    cdef int64_t *room = r.room
    if room > r.stored + N_STORED - CUPLUG_MAX_NDIM:
        room = store_apart(r, ndim)
        cuplug_copy_numbers(room, numbers, ndim)
    else:
        r.room = cuplug_copy_numbers(room, numbers, ndim)
    return room
