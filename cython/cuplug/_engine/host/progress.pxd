# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int32_t, uint64_t

from cuplug._engine.base.core cimport cuplug_error


# A long transfer in progress.
ctypedef struct watched:
    const char *what
    int task  # of the display; -1: not shown yet

# Receives the core's reports; `user` is a `watched`. Handles signals, such as Ctrl-C, and shows
# progress.
cdef int report_progress(
    void *user, uint64_t done_bytes, uint64_t total_bytes, cuplug_error *error
) noexcept with gil
# Copies between the host and a GPU, after the work on `stream`; NULL: the legacy default stream.
cdef int copy_with_progress(
    const char *what, int32_t device, bint to_host, void *to, const void *from_, uint64_t n_bytes,
    void *stream
) except -1
