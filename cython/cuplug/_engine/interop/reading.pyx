# SPDX-License-Identifier: Apache-2.0
"""The common parts of all readers: storage of one call, strides, unusable objects."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uint32_t

from cuplug._engine.base.core cimport (
    CUPLUG_ARGUMENT_OTHER,
    CUPLUG_MISALIGNED,
    CUPLUG_UNALIGNED_STRIDES,
    cuplug_argument,
    cuplug_tensor,
)
from cuplug._engine.interop.kinds cimport array_kind, find_kind

from cuplug._engine.interop.unsupported import advice_on, advice_on_tensor

cdef enum:
    N_APART = 2048  # numbers


cdef int divide_strides(
    reading *r, cuplug_argument *a, const Py_ssize_t *strides, Py_ssize_t item_bytes
) except -1:
    """Convert strides in bytes; if one is not a multiple of the element size, require a copy."""
    cdef int k
    cdef int64_t *to = store(r, a.tensor.ndim)
    for k in range(a.tensor.ndim):
        to[k] = strides[k] // item_bytes
        if to[k] * item_bytes != strides[k]:
            a.flags |= CUPLUG_MISALIGNED | CUPLUG_UNALIGNED_STRIDES
    a.tensor.strides = to
    return 0


cdef int64_t *store_apart(reading *r, Py_ssize_t n) except NULL:
    """Reserve memory on the heap, for many arrays at once."""
    cdef Py_ssize_t n_made = max(n, N_APART)
    if r.kept == NULL or n > r.n_apart:
        room = PyBytes_FromStringAndSize(NULL, n_made * sizeof(int64_t))
        keep(r, room)
        r.apart = <int64_t *>PyBytes_AS_STRING(room)
        r.n_apart = n_made
    r.apart += n
    r.n_apart -= n
    return r.apart - n


cdef int copy_layout(reading *r, cuplug_tensor *x) except -1:
    x.shape = store_copy(r, x.shape, x.ndim)
    if x.strides != NULL:
        x.strides = store_copy(r, x.strides, x.ndim)
    return 0


cdef int keep(reading *r, object obj) except -1:
    if r.kept == NULL:
        kept = []
        Py_INCREF(kept)
        r.kept = <PyObject *>kept
        r.n_apart = 0
    (<list>r.kept).append(obj)
    return 0


cdef const array_kind *kind_of(reading *r, PyObject *obj) except? NULL:
    cdef array_kind made
    cdef const array_kind *kind = find_kind(obj, &made)
    if kind != &made:
        return kind
    if made.owner == NULL:
        made.owner = <void *>obj
    copy = PyBytes_FromStringAndSize(<const char *>&made, sizeof(made))
    keep(r, copy)
    return <const array_kind *><const char *><bytes>copy


cdef int set_other(reading *r, cuplug_argument *a, object text) except -1:
    encoded = text.encode("utf-8", "backslashreplace")
    keep(r, encoded)
    a.kind = CUPLUG_ARGUMENT_OTHER
    a.flags = 0
    a.scalar.s = <const char *><bytes>encoded
    return 0


cdef int set_unsupported(reading *r, cuplug_argument *a, tuple found) except -1:
    library, text = found
    keep(r, library)
    if r.handed_to == NULL:
        r.handed_to = <PyObject *>library
    return set_other(r, a, text)


cdef int set_unreadable(object obj, reading *r, cuplug_argument *a, object error) except -1:
    found = advice_on(obj)
    if found is not None:
        return set_unsupported(r, a, found)
    tensor = advice_on_tensor(obj)
    if tensor is not None:
        return set_other(r, a, f"{type(obj).__name__} that cannot be read: it is {tensor}")
    reason = str(error).partition("\n")[0].rstrip(".")
    return set_other(r, a, f"{type(obj).__name__} that cannot be read: {reason}")


cdef int add_stream(reading *r, void *stream) except -1:
    cdef uint32_t k
    for k in range(r.n_streams):
        if r.streams[k] == stream:
            return 0
    if r.n_streams == MAX_STREAMS:
        raise ValueError(f"the arrays of one call are on more than {MAX_STREAMS} streams")
    r.streams[r.n_streams] = stream
    r.n_streams += 1
    return 0
