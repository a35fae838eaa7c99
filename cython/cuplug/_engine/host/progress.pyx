# SPDX-License-Identifier: Apache-2.0
"""Long transfers: Ctrl-C ends them, and a bar shows their progress."""

from contextvars import ContextVar

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, uint64_t

from cuplug._engine.base.core cimport cuplug_copy_with_progress, cuplug_error
from cuplug._engine.base.status cimport raise_error, raise_later

from cuplug._engine.base.public import public

# The bars of the innermost enclosing `with` block, and those outside it. One object may be entered
# by several threads and tasks at once.
cdef object shown = ContextVar("cuplug_progress", default=None)


cdef int report_progress(
    void *user, uint64_t done_bytes, uint64_t total_bytes, cuplug_error *error
) noexcept with gil:
    cdef watched *w = <watched *>user
    try:
        PyErr_CheckSignals()
        innermost = shown.get()
        if innermost is not None and total_bytes:
            bar = innermost[0]
            if w.task < 0:
                w.task = bar.add_task(w.what.decode(), total=total_bytes)
            bar.update(w.task, completed=done_bytes)
        return 0
    except BaseException as raised:
        return raise_later(raised, error)


cdef int copy_with_progress(
    const char *what, int32_t device, bint to_host, void *to, const void *from_, uint64_t n_bytes,
    void *stream
) except -1:
    cdef cuplug_error error
    cdef watched w
    cdef int status
    w.what = what
    w.task = -1
    with nogil:
        status = cuplug_copy_with_progress(
            device, to_host, to, from_, n_bytes, stream, report_progress, &w, &error
        )
    return raise_error(&error) if status else 0


@public
class progress:
    """Show the progress of long transfers on stderr: `with cuplug.progress(): ...`.

    Offloaded calls on NumPy arrays, `asarray` and `Array.numpy` each get a bar if they take
    longer than 0.1 s. It applies to calls of this thread, or asynchronous task.

    Examples
    --------
    >>> with cuplug.progress():
    ...     y = cuplug.ops.relu(numpy.ones(1 << 20, "float32"))
    """

    def __enter__(self):
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn, TransferSpeedColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(binary_units=True),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
        )
        bar = Progress(*columns, console=Console(stderr=True))
        bar.start()
        shown.set((bar, shown.get()))
        return self

    def __exit__(self, *exception):
        bar, around = shown.get()
        shown.set(around)
        bar.stop()
