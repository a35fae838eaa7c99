# SPDX-License-Identifier: Apache-2.0
"""Copies from one GPU to another, directly if they can access each other."""

from libc.stdint cimport int32_t, uint64_t

from cuplug._engine.base.core cimport cuplug_error
from cuplug._engine.base.runtime cimport cuplug_copy_peer
from cuplug._engine.base.status cimport raise_error
from cuplug._engine.cuda.streams cimport work_stream


def copy_between(int32_t to_gpu, size_t to, int32_t from_gpu, size_t data, uint64_t n_bytes):
    """Copy memory from one GPU to another: after the work on the source's stream, before later work
    on the destination's."""
    cdef cuplug_error error
    cdef int status = cuplug_copy_peer(
        to_gpu, <void *>to, work_stream(to_gpu), from_gpu, <void *>data, work_stream(from_gpu),
        n_bytes, &error
    )
    if status:
        raise_error(&error)
