# SPDX-License-Identifier: Apache-2.0
"""Streams and events that the caller creates."""

from libc.stdint cimport INT32_MAX, INT32_MIN, int32_t

from cuplug._engine.base.core cimport cuplug_error, cuplug_query_stream, cuplug_synchronize
from cuplug._engine.base.runtime cimport (
    cuplug_elapsed_time,
    cuplug_free_event,
    cuplug_free_stream,
    cuplug_make_event,
    cuplug_make_stream,
    cuplug_query_work,
    cuplug_record_event,
    cuplug_synchronize_event,
    cuplug_wait_for_event,
)
from cuplug._engine.base.status cimport raise_error
from cuplug._engine.cuda.placement cimport parse_gpu
from cuplug._engine.cuda.streams cimport enter_block, leave_block, order_streams, parse_stream
from cuplug._engine.cuda.streams cimport work_stream

from operator import index

from cuplug._engine.base.public import public


cdef class Stream:
    """Stream(device=None, *, non_blocking=False, priority=0)\n--\n
    A stream of a GPU: its work runs in order, concurrently with other streams.

    In `with stream:`, calls and launches on cuplug arrays use it, and new arrays belong to it.
    All functions with `stream=`, also in other libraries, take it by `__cuda_stream__`.

    CUDA orders its work with the legacy default stream, which cuplug's arrays use otherwise: each
    waits for earlier work on the other. Two such streams run concurrently; `wait` orders them.

    Parameters
    ----------
    device : str, int or Device, optional
        A GPU; the default is cuda:0.
    non_blocking : bool
        If True, it is not ordered with the legacy default stream: the ordering is up to you.
    priority : int
        Lower numbers run first; the default, 0, is the lowest priority.

    Attributes
    ----------
    device : int
        The GPU's number.
    handle : int
        The CUstream.

    Examples
    --------
    >>> x = cuplug.empty(4, "float32", device="cuda")
    >>> with cuplug.Stream("cuda") as stream:
    ...     y = cuplug.ops.relu(x)
    >>> stream.synchronize()
    """

    def __init__(self, device=None, *, non_blocking=False, priority: int = 0):
        cdef cuplug_error error
        cdef int32_t gpu = parse_gpu("Stream", 0 if device is None else device).id
        number = index(priority)
        if not INT32_MIN <= number <= INT32_MAX:
            raise ValueError(f"Stream: priority: got {priority}, expected a number such as -1")
        if self.stream != NULL:
            raise TypeError("Stream: __init__: got an existing stream, expected a new one")
        if cuplug_make_stream(gpu, bool(non_blocking), number, &self.stream, &error):
            raise_error(&error)
        self.device, self.is_own = gpu, True

    def __dealloc__(self):
        if self.is_own:
            cuplug_free_stream(self.device, self.stream, NULL)

    def __repr__(self):
        return f"<stream {self.handle:#x} of cuda:{self.device}>"

    def __reduce__(self):
        raise TypeError("Stream: it is of this process and cannot be pickled")

    @property
    def handle(self) -> int:
        """The CUstream as an int.

        Examples
        --------
        >>> cuplug.Stream("cuda").handle > 0
        True
        """
        return <size_t>self.stream

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle

    def __enter__(self):
        enter_block(self.device, self.stream, self, None)
        return self

    def __exit__(self, *exception):
        leave_block()

    @property
    def done(self) -> bool:
        """True if all work on it is done.

        Examples
        --------
        >>> stream = cuplug.Stream("cuda")
        >>> stream.synchronize()
        >>> stream.done
        True
        """
        return is_done(self.device, self.stream, NULL)

    def synchronize(self):
        """Wait for its work, and raise the errors of asynchronous calls.

        Examples
        --------
        >>> with cuplug.Stream("cuda") as stream:
        ...     y = cuplug.ops.relu(cuplug.empty(4, device="cuda"))
        >>> stream.synchronize()
        """
        cdef cuplug_error error
        cdef int status
        with nogil:
            status = cuplug_synchronize(self.device, self.stream, 0, &error)
        if status:
            raise_error(&error)

    def record(self, Event event=None) -> Event:
        """Record an event, or a new one, after the work that is on the stream; return it.

        Examples
        --------
        >>> event = cuplug.Stream("cuda").record()
        >>> event.synchronize()
        """
        cdef Event recorded = Event(self.device) if event is None else event
        recorded.record(self)
        return recorded

    def wait(self, other):
        """Make later work on this stream wait.

        Parameters
        ----------
        other : Event, or stream as in calls of operators
            A recorded event, or a stream, whose current work is waited for.

        Examples
        --------
        >>> first, second = cuplug.Stream("cuda"), cuplug.Stream("cuda")
        >>> second.wait(first.record())
        """
        cdef cuplug_error error
        if not isinstance(other, Event):
            order_streams(self.device, self.stream, parse_stream("wait", other))
        elif cuplug_wait_for_event(self.device, self.stream, (<Event>other).event, &error):
            raise_error(&error)


public(Stream)


@public
def stream(stream=None, device=None) -> Stream:
    """Return a stream for a `with` block: a new one, or the stream of another library.

    Parameters
    ----------
    stream : object with __cuda_stream__, stream of PyTorch or CuPy, or int, optional
        The stream to wrap. It is used as it is, and kept alive.
    device : str, int or Device, optional
        The GPU of a new stream or of a default stream; cuda:0 by default.

    Examples
    --------
    >>> x = cuplug.empty(4, "float32", device="cuda")
    >>> with cuplug.stream(device="cuda"):
    ...     y = cuplug.ops.relu(x)
    """
    cdef Stream wrapped
    cdef cuplug_error error
    cdef int32_t found = -1, is_captured = 0
    if stream is None:
        return Stream(device)
    wrapped = Stream.__new__(Stream)
    wrapped.stream = parse_stream("stream", stream)
    if cuplug_query_stream(wrapped.stream, &found, &is_captured, &error):
        raise_error(&error)
    gpu = parse_gpu("stream", max(found, 0) if device is None else device).id
    if found not in (-1, gpu):
        raise ValueError(f"stream: stream: got one of cuda:{found}, expected one of cuda:{gpu}")
    wrapped.device, wrapped.owner = gpu, stream
    return wrapped


cdef class Event:
    """Event(device=None, *, timing=True)\n--\n
    A point in the work on a stream: wait for it, or measure the time between two.

    Parameters
    ----------
    device : str, int or Device, optional
        A GPU; the default is cuda:0.
    timing : bool
        If False, it does not measure time, which is faster.

    Examples
    --------
    >>> begin, end = cuplug.Event("cuda"), cuplug.Event("cuda")
    >>> begin.record()
    <event 0x... of cuda:0>
    """

    def __init__(self, device=None, *, timing=True):
        cdef cuplug_error error
        cdef int32_t gpu = parse_gpu("Event", 0 if device is None else device).id
        if self.event != NULL:
            raise TypeError("Event: __init__: got an existing event, expected a new one")
        if cuplug_make_event(gpu, bool(timing), &self.event, &error):
            raise_error(&error)
        self.device, self.has_time = gpu, bool(timing)

    def __dealloc__(self):
        if self.event != NULL:
            cuplug_free_event(self.device, self.event, NULL)

    def __repr__(self):
        return f"<event {self.handle:#x} of cuda:{self.device}>"

    def __reduce__(self):
        raise TypeError("Event: it is of this process and cannot be pickled")

    @property
    def handle(self) -> int:
        """The CUevent as an int.

        Examples
        --------
        >>> cuplug.Event("cuda").handle > 0
        True
        """
        return <size_t>self.event

    def record(self, stream=None) -> Self:
        """Record the work that is now on a stream. The default is the stream of the enclosing
        `with` block, otherwise the legacy default stream. Returns the event.

        Examples
        --------
        >>> event = cuplug.Event("cuda").record(cuplug.Stream("cuda"))
        >>> event.synchronize()
        """
        cdef cuplug_error error
        cdef void *on = parse_stream("Event", stream)
        if stream is None:
            on = work_stream(self.device)
        if cuplug_record_event(self.device, self.event, on, &error):
            raise_error(&error)
        self.is_recorded = True
        return self

    @property
    def done(self) -> bool:
        """True if the work before it is done.

        Examples
        --------
        >>> event = cuplug.Event("cuda").record()
        >>> event.synchronize()
        >>> event.done
        True
        """
        return is_done(self.device, NULL, self.event)

    def synchronize(self):
        """Wait for the work before it, and raise the errors of asynchronous calls.

        Examples
        --------
        >>> event = cuplug.Event("cuda").record()
        >>> event.synchronize()
        """
        cdef cuplug_error error
        cdef int status
        with nogil:
            status = cuplug_synchronize_event(self.device, self.event, &error)
        if status:
            raise_error(&error)

    def elapsed_time(self, Event end not None) -> float:
        """Return the milliseconds from this event to a later one.

        Both must be recorded, and `end` must be complete.

        Examples
        --------
        >>> begin, end = cuplug.Event("cuda"), cuplug.Event("cuda")
        >>> begin = begin.record()
        >>> y = cuplug.ops.relu(cuplug.empty(1000, device="cuda"))
        >>> end.record().synchronize()
        >>> begin.elapsed_time(end) >= 0
        True
        """
        cdef cuplug_error error
        cdef float milliseconds = 0
        for event in (self, end):
            if not ((<Event>event).is_recorded and (<Event>event).has_time):
                raise ValueError(
                    f"elapsed_time: got {event!r}, expected a recorded event with timing=True"
                )
        if cuplug_elapsed_time(self.device, self.event, end.event, &milliseconds, &error):
            raise_error(&error)
        return milliseconds


public(Event)


cdef bint is_done(int32_t device, void *stream, void *event) except -1:
    cdef cuplug_error error
    cdef int32_t done = 0
    if cuplug_query_work(device, stream, event, &done, &error):
        raise_error(&error)
    return done != 0
