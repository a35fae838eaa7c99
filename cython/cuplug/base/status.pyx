# SPDX-License-Identifier: Apache-2.0
"""Error records of the core -> exceptions."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.string cimport strcpy

cimport cuplug.base.core as core

from cuplug.errors import EXCEPTIONS, CudaError


cdef extern from *:
    """
    static __thread void *cuplug_pending;
    static void set_pending(void *exception) { cuplug_pending = exception; }
    """
    void *cuplug_pending  # an exception, owned, between raise_later and raise_error
    void set_pending(void *exception)


cdef void drop_raised() noexcept:
    Py_XDECREF(<PyObject *>cuplug_pending)
    set_pending(NULL)


cdef int raise_later(object exception, core.cuplug_error *error) noexcept:
    drop_raised()
    Py_INCREF(exception)
    set_pending(<void *><PyObject *>exception)
    error.status = core.CUPLUG_ERROR_PLUGIN
    strcpy(error.message, b"an exception was raised")
    return core.CUPLUG_ERROR_PLUGIN


cdef int raise_error(const core.cuplug_error *error) except -1 with gil:
    if cuplug_pending != NULL:
        exception = <object>cuplug_pending
        drop_raised()
        raise exception
    message = (<const char *>error.message).decode("utf-8", "replace")
    name = core.cuplug_status_name(error.status)
    exception = EXCEPTIONS[name.decode()] if name != NULL else RuntimeError
    if exception is CudaError:
        raise CudaError(message, error.cuda_code)
    raise exception(message)
