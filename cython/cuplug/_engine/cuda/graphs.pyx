# SPDX-License-Identifier: Apache-2.0
"""Graphs: the work of a block, captured once and launched many times."""

from libc.stdint cimport int32_t

from cuplug._engine.base.core cimport cuplug_error
from cuplug._engine.base.runtime cimport (
    cuplug_begin_capture,
    cuplug_end_capture,
    cuplug_free_graph,
    cuplug_launch_graph,
)
from cuplug._engine.base.status cimport raise_error
from cuplug._engine.cuda.events cimport Stream
from cuplug._engine.cuda.placement cimport parse_gpu
from cuplug._engine.cuda.streams cimport enter_block, leave_block, parse_stream, work_stream

from cuplug._engine.base.public import public


cdef class Graph:
    """Graph(device=None)\n--\n
    A CUDA graph: `with graph: y = relu(x, ...)` captures the work of the block on cuplug's arrays.

    Nothing of it runs in the block. `graph.launch()` runs all of it, any number of times, on the
    same arrays with their current contents. The graph keeps new outputs of the block; keep the
    inputs alive yourself. Calls on arrays of the host, and copies from it, are not part of a graph:
    they run at once.

    Parameters
    ----------
    device : str, int or Device, optional
        A GPU; the default is cuda:0.

    Attributes
    ----------
    stream : Stream
        The captured stream: pass it to functions that require `stream=`.

    Examples
    --------
    >>> x = cuplug.empty(4, "float32", device="cuda")
    >>> graph = cuplug.Graph("cuda")
    >>> with graph:
    ...     y = cuplug.ops.relu(x)
    >>> graph.launch()
    """

    cdef void *graph
    cdef int32_t device
    cdef list held  # the memory of outputs
    cdef readonly Stream stream
    cdef object __weakref__

    def __init__(self, device=None):
        self.device = parse_gpu("Graph", 0 if device is None else device).id
        # Work on the legacy default stream continues while this one is captured.
        self.stream = Stream(self.device, non_blocking=True)

    def __dealloc__(self):
        if self.graph != NULL:
            cuplug_free_graph(self.device, self.graph, NULL)

    def __repr__(self):
        return f"<graph of cuda:{self.device}{'' if self.graph != NULL else ', nothing captured'}>"

    def __reduce__(self):
        raise TypeError("Graph: it is of this process and cannot be pickled")

    def __enter__(self):
        cdef cuplug_error error
        if self.graph != NULL:
            raise ValueError("Graph: got one that was captured, expected a new one")
        if cuplug_begin_capture(self.device, self.stream.stream, &error):
            raise_error(&error)
        self.held = []
        enter_block(self.device, self.stream.stream, self.stream, self.held)
        return self

    def __exit__(self, kind, *exception):
        cdef cuplug_error error
        cdef void **wanted = &self.graph if kind is None else NULL
        leave_block()
        if cuplug_end_capture(self.device, self.stream.stream, wanted, &error) and kind is None:
            raise_error(&error)

    def launch(self, stream=None):
        """Run the captured work.

        Parameters
        ----------
        stream : as in calls of operators, optional
            The stream to run on. The default is the stream of the enclosing `with` block, otherwise
            the legacy default stream, with which work on cuplug's arrays is ordered.

        Examples
        --------
        >>> x, y = [cuplug.asarray([-1.0, 2.0], device="cuda") for k in range(2)]
        >>> with cuplug.Graph("cuda") as graph:
        ...     y = cuplug.ops.relu(x, out=y)
        >>> graph.launch()
        >>> print(y)
        [0. 2.]
        """
        cdef cuplug_error error
        cdef void *on = parse_stream("Graph", stream)
        if stream is None:
            on = work_stream(self.device)
        if self.graph == NULL:
            raise ValueError("Graph: got one without work, expected `with graph: ...` before")
        if cuplug_launch_graph(self.device, self.graph, self.stream.stream, on, &error):
            raise_error(&error)


public(Graph)
