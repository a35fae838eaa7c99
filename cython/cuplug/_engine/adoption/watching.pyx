# SPDX-License-Identifier: Apache-2.0
"""The state of library calls on a thread: the lock, and exceptions of callbacks."""

import threading

from cpython.object cimport PyObject
from cpython.pythread cimport (
    PyThread_acquire_lock,
    PyThread_allocate_lock,
    PyThread_release_lock,
    WAIT_LOCK,
)
from cpython.ref cimport Py_DECREF, Py_INCREF

cdef extern from *:
    """
    static _Thread_local int cuplug_watched;      /* calls of libraries on this thread */
    static _Thread_local PyObject *cuplug_raised; /* the exception of a callback in them */
    """
    int cuplug_watched
    PyObject *cuplug_raised


cdef class ThreadLock:
    """A lock that code without Python also takes."""

    def __cinit__(self):
        self.lock = PyThread_allocate_lock()

    def __enter__(self) -> None:
        with nogil:
            PyThread_acquire_lock(self.lock, WAIT_LOCK)

    def __exit__(self, *exception):
        PyThread_release_lock(self.lock)


cdef void watch(int depth) noexcept nogil:
    global cuplug_watched
    cuplug_watched += depth


cdef bint has_pending() noexcept nogil:
    return cuplug_raised != NULL


class Watching:
    """Stores exceptions of callbacks on this thread for `raise_pending`."""

    def __enter__(self) -> None:
        watch(1)

    def __exit__(self, *exception):
        watch(-1)


def keep_error(kind, error: BaseException, trace: TracebackType | None):
    """Store the first error; an error on one of the library's threads is only shown."""
    global cuplug_raised
    if not cuplug_watched:
        threading.excepthook(threading.ExceptHookArgs((kind, error, trace, None)))
    elif cuplug_raised == NULL:
        Py_INCREF(error)
        cuplug_raised = <PyObject *>error


def raise_pending():
    """Raise the exception of a callback on this thread since the last call, if any."""
    global cuplug_raised
    if cuplug_raised == NULL:
        return
    cdef PyObject *raised = cuplug_raised
    cuplug_raised = NULL
    error = <object>raised
    Py_DECREF(error)
    raise error
