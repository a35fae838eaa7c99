# SPDX-License-Identifier: Apache-2.0
"""The stream of a call, and its order with the streams of the libraries of its arrays."""

import sys

from libc.stdint cimport int32_t, uint32_t

from cuplug._engine.base.core cimport CUPLUG_CPU, CUPLUG_CUDA, cuplug_error, cuplug_query_stream
from cuplug._engine.base.core_call cimport cuplug_frame
from cuplug._engine.base.status cimport raise_error
from cuplug._engine.cuda.streams cimport order_streams, work_stream
from cuplug._engine.interop.kinds cimport CUDA_INTERFACE, CUPY, EXCHANGE, TORCH, array_kind
from cuplug._engine.interop.reading cimport add_stream, reading
from cuplug._engine.interop.torch cimport torch_stream


cdef object cupy_stream = None


cdef int add_current_stream(reading *r, const array_kind *kind, int32_t device) except -1:
    cdef void *stream = NULL
    current_stream(kind, device, &stream)
    return add_stream(r, stream)


cdef int current_stream(const array_kind *kind, int32_t device, void **stream) except -1:
    """Return a library's current stream; if it has none, the enclosing block's stream."""
    stream[0] = NULL
    if kind.protocol == EXCHANGE:
        return kind.exchange.current_stream(CUPLUG_CUDA, device, stream)
    if kind.protocol == CUPY:
        stream[0] = <void *><size_t>current_cupy_stream(device).ptr
    elif kind.protocol == TORCH:
        stream[0] = torch_stream(device)
    else:
        stream[0] = work_stream(device)
    return 0


cdef object current_cupy_stream(int32_t device):
    global cupy_stream
    if cupy_stream is None:
        cupy_stream = sys.modules["cupy"].cuda.get_current_stream
    return cupy_stream(device)


cdef int enter_given_stream(reading *r, cuplug_frame *frame) except -1:
    """Run on the caller's stream, ordered with the stream that would have been used otherwise."""
    cdef str name = (<const char *>frame.signature.name).decode()
    cdef cuplug_error error
    cdef int32_t device = -1, is_captured = 0
    if frame.home.type == CUPLUG_CPU or frame.device.type == CUPLUG_CPU:
        raise ValueError(
            f"{name}: stream: got one for arrays of the host, expected arrays on a GPU: this call "
            "returns when its work is done"
        )
    if cuplug_query_stream(r.given_stream, &device, &is_captured, &error):
        raise_error(&error)
    if not frame.device.type:  # no arrays: the stream determines the device
        frame.device.type = CUPLUG_CUDA
        frame.device.id = max(device, 0)
    if device >= 0 and device != frame.device.id:
        raise ValueError(
            f"{name}: stream: got one of cuda:{device}, expected one of cuda:{frame.device.id}, "
            "where the call runs"
        )
    if r.device_kind == NULL:
        add_stream(r, work_stream(frame.device.id))  # outputs without inputs are cuplug's arrays
    else:
        add_current_stream(r, r.device_kind, frame.device.id)
    frame.stream = r.given_stream
    return 0


cdef int enter_stream(reading *r, cuplug_frame *frame) except -1:
    cdef int32_t device = frame.device.id if not frame.home.type else frame.home.id
    if r.given_stream != NULL:
        enter_given_stream(r, frame)
    elif r.device_kind.protocol == CUDA_INTERFACE and r.n_streams:
        frame.stream = r.streams[0]
        add_stream(r, work_stream(device))  # outputs are cuplug's arrays
    else:
        current_stream(r.device_kind, device, &frame.stream)
    return wait_for_streams(r, device, frame.stream)


cdef int wait_for_streams(reading *r, int32_t device, void *stream) except -1:
    cdef uint32_t k
    for k in range(r.n_streams):
        if r.streams[k] != stream:
            order_streams(device, stream, r.streams[k])
    return 0


cdef int leave_stream(reading *r, cuplug_frame *frame) except -1:
    cdef uint32_t k
    for k in range(r.n_streams):
        if r.streams[k] != frame.stream:
            order_streams(frame.device.id, r.streams[k], frame.stream)
    return 0
