# SPDX-License-Identifier: Apache-2.0
"""Streams from callers: their handles, their order, their capture, and the current stream in `with`
blocks.
"""

from contextvars import ContextVar

from libc.stdint cimport int32_t

from cuplug._engine.base.core cimport cuplug_error, cuplug_order_streams, cuplug_query_stream
from cuplug._engine.base.status cimport raise_error


cdef enum:
    LEGACY = 1  # the legacy default stream's handle; NULL means no stream here


has_blocks = False
# The innermost block (GPU, handle, owner, objects of a graph or None), and the enclosing one.
cdef object chosen = ContextVar("cuplug_stream", default=None)


cdef void *parse_stream(str function, object stream) except? NULL:
    if stream is None:
        return NULL
    try:
        handle = handle_of(stream)
    except (AttributeError, TypeError, ValueError) as error:
        seen = type(stream).__name__
        raise TypeError(
            f"{function}: stream: got {seen}, expected a valid __cuda_stream__: {error}"
        ) from None
    if not isinstance(handle, int) or isinstance(handle, bool):
        raise TypeError(
            f"{function}: stream: got {type(stream).__name__}, expected an object with "
            "__cuda_stream__, a stream of PyTorch or CuPy, or a handle as an int"
        )
    if not 0 <= handle < 1 << 64:
        raise ValueError(f"{function}: stream: got {handle}, expected the handle of a CUDA stream")
    return <void *><size_t>(handle or LEGACY)


cdef object handle_of(object stream):
    if hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        version, handle = protocol() if callable(protocol) else protocol
        if version != 0:
            raise ValueError(f"got version {version}, expected 0")
        return handle
    # CuPy's, or a named tuple with only a `ptr`, which programs pass to CuPy's launches. Other
    # objects of CuPy, such as events, also have a `ptr`.
    if hasattr(stream, "begin_capture") or getattr(stream, "_fields", None) == ("ptr",):
        return getattr(stream, "ptr", stream)
    return getattr(stream, "cuda_stream", stream)


cdef int refuse_capture(str function, void *stream, str wanted) except -1:
    cdef cuplug_error error
    cdef int32_t device = -1, is_captured = 0
    if cuplug_query_stream(stream, &device, &is_captured, &error):
        raise_error(&error)
    if is_captured:
        got = "one that a CUDA graph captures"
        raise ValueError(f"{function}: stream: got {got}, expected {wanted}")
    return 0


cdef int order_streams(int32_t device, void *waiting, void *stream) except -1:
    cdef cuplug_error error
    if cuplug_order_streams(device, waiting, stream, &error):
        return raise_error(&error)
    return 0


cdef object block_of(int32_t device):
    """Return the innermost block of a GPU; None without one."""
    block = chosen.get() if has_blocks else None
    while block is not None and block[0] != device:
        block = block[4]
    return block


cdef void *work_stream(int32_t device) except? NULL:
    if not has_blocks:
        return NULL
    block = block_of(device)
    return NULL if block is None else <void *><size_t>block[1]


cdef void *memory_stream(int32_t device) except? NULL:
    return NULL if in_graph(device) else work_stream(device)


cdef object stream_owner(int32_t device):
    block = block_of(device)
    return None if block is None or in_graph(device) else block[2]


cdef bint in_graph(int32_t device) except -1:
    block = block_of(device)
    return block is not None and block[3] is not None


cdef int hold(int32_t device, object memory) except -1:
    if in_graph(device):
        block_of(device)[3].append(memory)
    return 0


cdef int enter_block(int32_t device, void *stream, object owner, list held) except -1:
    global has_blocks
    has_blocks = True
    chosen.set((device, <size_t>stream, owner, held, chosen.get()))
    return 0


cdef int leave_block() except -1:
    chosen.set(chosen.get()[4])
    return 0
