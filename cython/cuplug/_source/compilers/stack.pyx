# SPDX-License-Identifier: Apache-2.0
"""Calls of compilers on a stack that is large enough."""

import contextvars
from _thread import allocate_lock

from libc.stddef cimport size_t


cdef extern from "<pthread.h>" nogil:
    ctypedef unsigned long pthread_t
    ctypedef struct pthread_attr_t:
        pass
    pthread_t pthread_self()
    int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes)
    int pthread_attr_getstack(const pthread_attr_t *attributes, void **start, size_t *n_bytes)
    int pthread_attr_destroy(pthread_attr_t *attributes)


# NVRTC and Python's frames take more than 100 KB for a small source.
cdef enum:
    ENOUGH_BYTES = 512 << 10
STACK_BYTES = 8 << 20  # for threads that only compile
_lock = allocate_lock()  # `threading.stack_size` applies to all threads


cdef bint has_enough() except -1:
    """Returns 1 if enough of the stack is left, or if the amount is unknown."""
    cdef pthread_attr_t attributes
    cdef void *start = NULL
    cdef size_t n_bytes = 0
    if pthread_getattr_np(pthread_self(), &attributes):
        return True
    failed = pthread_attr_getstack(&attributes, &start, &n_bytes)
    pthread_attr_destroy(&attributes)
    # A coroutine has its own stack at another address: the difference is then large or wraps
    # around.
    cdef size_t left = <size_t>&start - <size_t>start
    return failed or ENOUGH_BYTES <= left <= n_bytes


def on_large_stack(function: Callable[..., _T], *args) -> _T:
    """Call a function, on a new thread if little of this thread's stack is left."""
    if has_enough():
        return function(*args)
    import threading  # nearly all calls end above

    outcome = []

    def call():
        try:
            outcome.append(context.run(function, *args))
        except BaseException as error:
            outcome[:] = None, error

    context = contextvars.copy_context()
    thread = threading.Thread(target=call, name="cuplug compiler", daemon=True)
    with _lock:
        usual = threading.stack_size(STACK_BYTES)
        try:
            thread.start()
        finally:
            threading.stack_size(usual)
    thread.join()
    if len(outcome) > 1:
        raise outcome[1]
    return outcome[0]
