# SPDX-License-Identifier: Apache-2.0
"""Error records of the core -> exceptions."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.string cimport strcpy, strlen, strncpy, strstr

cimport cuplug._engine.base.core as core

from cuplug.errors import EXCEPTIONS, CudaError


cdef extern from *:
    """
    #define CUPLUG_PENDING_BYTES 256
    static __thread struct {
      void *exception;                  /* owned, between raise_later and raise_error */
      char text[CUPLUG_PENDING_BYTES];  /* the start of its message in the error record */
    } cuplug_pending;
    static void *pending_exception(void) { return cuplug_pending.exception; }
    static void set_pending(void *exception) { cuplug_pending.exception = exception; }
    static char *pending_text(void) { return cuplug_pending.text; }
    """
    enum:
        CUPLUG_PENDING_BYTES
    void *pending_exception() nogil
    void set_pending(void *exception)
    char *pending_text()

cdef enum:
    MAX_TEXT_BYTES = 3800  # leaves room for the text that the core adds


cdef bint has_raised() noexcept nogil:
    return pending_exception() != NULL


cdef void drop_raised() noexcept with gil:
    cdef PyObject *dropped = <PyObject *>pending_exception()
    set_pending(NULL)
    Py_XDECREF(dropped)


cdef int raise_later(object exception, core.cuplug_error *error) noexcept:
    cdef bytes text = text_of(exception)
    drop_raised()
    Py_INCREF(exception)
    set_pending(<void *><PyObject *>exception)
    strncpy(pending_text(), text, CUPLUG_PENDING_BYTES - 1)
    pending_text()[CUPLUG_PENDING_BYTES - 1] = 0
    error.status = core.CUPLUG_ERROR_PLUGIN
    strcpy(error.message, text)
    return core.CUPLUG_ERROR_PLUGIN


cdef bytes text_of(object exception):
    """Return type and message without null characters, for callers other than Python."""
    try:
        text = f"{type(exception).__name__}: {exception}"
    except BaseException:
        text = f"{type(exception).__name__} (its message cannot be read)"
    return text.encode("utf-8", "replace").replace(b"\0", b"")[:MAX_TEXT_BYTES]


cdef int raise_pending() except -1:
    if pending_exception() == NULL:
        raise RuntimeError("an exception was lost: it was raised on another thread")
    exception = <object>pending_exception()
    drop_raised()
    raise exception


cdef int raise_error(const core.cuplug_error *error) except -1 with gil:
    # The record of a callback that failed in a call from another library, such as XLA, may never
    # arrive here: the stored exception belongs to another record.
    if pending_exception() != NULL:
        if strlen(pending_text()) and strstr(error.message, pending_text()) != NULL:
            return raise_pending()
        drop_raised()
    message = (<const char *>error.message).decode("utf-8", "replace")
    name = core.cuplug_status_name(error.status)
    exception = EXCEPTIONS[name.decode()] if name != NULL else RuntimeError
    if exception is CudaError:
        raise CudaError(message, error.cuda_code)
    raise exception(message)
