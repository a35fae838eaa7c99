# SPDX-License-Identifier: Apache-2.0
"""Streams and events of one's own."""

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
    A stream of a GPU: work that is done in order, beside that of other streams.

    In `with stream:` the calls and launches on cuplug's arrays go to it, and new arrays are of it.
    Everything that takes `stream=` takes it, those of other libraries too, by `__cuda_stream__`.

    Work on it is ordered with that on the legacy default stream, where cuplug's arrays are
    otherwise, as CUDA does it: each waits for what was put on the other before. Two such streams
    run side by side; `wait` orders them.

    Parameters
    ----------
    device : str, int or Device, optional
        A GPU; cuda:0 without.
    non_blocking : bool
        Not ordered with the legacy default stream: that is left to you.
    priority : int
        Lower numbers go first; 0 is the usual one, and the lowest priority.

    Attributes
    ----------
    device : int
        The GPU's number.
    handle : int
        The CUstream.
    """

    def __init__(self, device=None, *, non_blocking=False, priority=0):
        cdef cuplug_error error
        cdef int32_t gpu = parse_gpu("Stream", 0 if device is None else device).id
        number = index(priority)
        if not INT32_MIN <= number <= INT32_MAX:
            raise ValueError(f"Stream: priority: got {priority}, expected a number such as -1")
        if self.stream != NULL:
            raise TypeError("Stream: it is made, expected a new one")
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
    def handle(self):
        """The CUstream as an int."""
        return <size_t>self.stream

    def __cuda_stream__(self):
        return 0, self.handle

    def __enter__(self):
        enter_block(self.device, self.stream, self, None)
        return self

    def __exit__(self, *exception):
        leave_block()

    @property
    def done(self):
        """Whether all work on it is done."""
        return is_done(self.device, self.stream, NULL)

    def synchronize(self):
        """Wait for its work, and raise what asynchronous calls found."""
        cdef cuplug_error error
        cdef int status
        with nogil:
            status = cuplug_synchronize(self.device, self.stream, 0, &error)
        if status:
            raise_error(&error)

    def record(self, Event event=None):
        """Record an event, or a new one, behind the work that is on the stream; return it."""
        cdef Event recorded = Event(self.device) if event is None else event
        recorded.record(self)
        return recorded

    def wait(self, other):
        """Have later work on this stream wait.

        Parameters
        ----------
        other : Event, or stream as in calls of operators
            What was recorded, or what is on the stream now.
        """
        cdef cuplug_error error
        if not isinstance(other, Event):
            order_streams(self.device, self.stream, parse_stream("wait", other))
        elif cuplug_wait_for_event(self.device, self.stream, (<Event>other).event, &error):
            raise_error(&error)


public(Stream)


@public
def stream(stream=None, device=None):
    """Return a stream for a `with` block: a new one, or that of another library.

    Parameters
    ----------
    stream : object with __cuda_stream__, stream of PyTorch or CuPy, or int, optional
        Kept, and used as it is.
    device : str, int or Device, optional
        The GPU, of a new stream or a default one; cuda:0 without.
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
    A point in the work on a stream: to wait for it, and to measure time between two.

    Parameters
    ----------
    device : str, int or Device, optional
        A GPU; cuda:0 without.
    timing : bool
        Without it, it tells no time, which is faster.
    """

    def __init__(self, device=None, *, timing=True):
        cdef cuplug_error error
        cdef int32_t gpu = parse_gpu("Event", 0 if device is None else device).id
        if self.event != NULL:
            raise TypeError("Event: it is made, expected a new one")
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
    def handle(self):
        """The CUevent as an int."""
        return <size_t>self.event

    def record(self, stream=None):
        """Stand behind the work that is now on a stream; without one on that of the `with` block
        around, else on the legacy default stream. Returns the event."""
        cdef cuplug_error error
        cdef void *on = parse_stream("Event", stream)
        if stream is None:
            on = work_stream(self.device)
        if cuplug_record_event(self.device, self.event, on, &error):
            raise_error(&error)
        self.is_recorded = True
        return self

    @property
    def done(self):
        """Whether the work before it is done."""
        return is_done(self.device, NULL, self.event)

    def synchronize(self):
        """Wait for the work before it, and raise what asynchronous calls found."""
        cdef cuplug_error error
        cdef int status
        with nogil:
            status = cuplug_synchronize_event(self.device, self.event, &error)
        if status:
            raise_error(&error)

    def elapsed_time(self, Event end not None):
        """Return the milliseconds from this event to a later one.

        Both have been recorded, and `end` was waited for.
        """
        cdef cuplug_error error
        cdef float milliseconds = 0
        for event in (self, end):
            if not ((<Event>event).is_recorded and (<Event>event).has_time):
                wanted = "expected one that was recorded, made with timing=True"
                raise ValueError(f"elapsed_time: got {event!r}, {wanted}")
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
