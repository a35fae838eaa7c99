# SPDX-License-Identifier: Apache-2.0
"""The stream of a call, and its order with the streams of other libraries."""

import sys

from libc.stdint cimport int32_t, uint32_t

from cuplug._host cimport CUPLUG_CUDA, cuplug_error, cuplug_frame, cuplug_order_streams
from cuplug._kinds cimport CUDA_INTERFACE, CUPY, EXCHANGE, array_kind
from cuplug._reading cimport MAX_STREAMS, reading
from cuplug._status cimport raise_error


cdef object cupy_stream = None


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


cdef int add_current_stream(reading *r, const array_kind *kind, int32_t device) except -1:
    cdef void *stream = NULL
    current_stream(kind, device, &stream)
    return add_stream(r, stream)


cdef int current_stream(const array_kind *kind, int32_t device, void **stream) except -1:
    """What a library works on now: the legacy default stream where it does not say."""
    stream[0] = NULL
    if kind.protocol == EXCHANGE:
        return kind.exchange.current_stream(CUPLUG_CUDA, device, stream)
    if kind.protocol == CUPY:
        stream[0] = <void *><size_t>current_cupy_stream(device).ptr
    return 0


cdef object current_cupy_stream(int32_t device):
    global cupy_stream
    if cupy_stream is None:
        cupy_stream = sys.modules["cupy"].cuda.get_current_stream
    return cupy_stream(device)


cdef int enter_stream(reading *r, cuplug_frame *frame) except -1:
    cdef uint32_t k
    if r.device_kind.protocol == CUDA_INTERFACE and r.n_streams:
        frame.stream = r.streams[0]
    else:
        current_stream(r.device_kind, frame.home.id, &frame.stream)
    for k in range(r.n_streams):
        if r.streams[k] != frame.stream:
            order(frame.home.id, frame.stream, r.streams[k])
    return 0


cdef int leave_stream(reading *r, cuplug_frame *frame) except -1:
    cdef uint32_t k
    for k in range(r.n_streams):
        if r.streams[k] != frame.stream:
            order(frame.home.id, r.streams[k], frame.stream)
    return 0


cdef int order(int32_t device, void *waiting, void *stream) except -1:
    cdef cuplug_error error
    if cuplug_order_streams(device, waiting, stream, &error):
        return raise_error(&error)
    return 0
