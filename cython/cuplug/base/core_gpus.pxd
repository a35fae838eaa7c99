# SPDX-License-Identifier: Apache-2.0
# Declarations of <internal/gpus.h> and <internal/streams.h>.
from libc.stdint cimport int32_t, uint64_t

from cuplug.base.core cimport cuplug_error

cdef extern from "internal/gpus.h" nogil:
    int cuplug_query_attribute(
        int32_t device, int32_t attribute, int32_t *value, int32_t *is_known, cuplug_error *error
    )
    int cuplug_allocate_shared(
        int32_t device, int is_managed, uint64_t n_bytes, void **pointer, cuplug_error *error
    )
    int cuplug_free_shared(
        int32_t device, int is_managed, void *pointer, cuplug_error *error
    )
    int cuplug_copy_peer(
        int32_t to_device, void *to, void *waiting, int32_t from_device, const void *from_,
        void *stream, uint64_t n_bytes, cuplug_error *error
    )

cdef extern from "internal/streams.h" nogil:
    int cuplug_make_stream(
        int32_t device, int is_non_blocking, int32_t priority, void **stream, cuplug_error *error
    )
    int cuplug_free_stream(int32_t device, void *stream, cuplug_error *error)
    int cuplug_make_event(int32_t device, int has_time, void **event, cuplug_error *error)
    int cuplug_free_event(int32_t device, void *event, cuplug_error *error)
    int cuplug_record_event(int32_t device, void *event, void *stream, cuplug_error *error)
    int cuplug_wait_for_event(int32_t device, void *stream, void *event, cuplug_error *error)
    int cuplug_synchronize_event(int32_t device, void *event, cuplug_error *error)
    int cuplug_query_work(
        int32_t device, void *stream, void *event, int32_t *is_done, cuplug_error *error
    )
    int cuplug_elapsed_time(
        int32_t device, void *start, void *end, float *milliseconds, cuplug_error *error
    )
    int cuplug_begin_capture(int32_t device, void *stream, cuplug_error *error)
    int cuplug_end_capture(int32_t device, void *stream, void **graph, cuplug_error *error)
    int cuplug_launch_graph(int32_t device, void *graph, void *stream, cuplug_error *error)
    int cuplug_free_graph(int32_t device, void *graph, cuplug_error *error)
