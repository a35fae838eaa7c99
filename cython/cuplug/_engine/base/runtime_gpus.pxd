# SPDX-License-Identifier: Apache-2.0
# Declarations of <runtime/gpus.h>, <runtime/streams.h> and <runtime/textures.h>.
from libc.stdint cimport int32_t, uint32_t, uint64_t

from cuplug._engine.base.core cimport cuplug_error

cdef extern from "runtime/streams.h" nogil:
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
    int cuplug_launch_graph(
        int32_t device, void *graph, const void *captured_on, void *stream, cuplug_error *error
    )
    int cuplug_free_graph(int32_t device, void *graph, cuplug_error *error)

cdef extern from "runtime/gpus.h" nogil:
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

    int cuplug_join_origins(
        int32_t device, void *stream, const uint64_t *origins, uint32_t n, uint64_t *origin,
        cuplug_error *error
    )

cdef extern from "runtime/textures.h" nogil:
    ctypedef struct cuplug_texture_form:
        uint64_t sizes[3]
        uint64_t texel_bytes
        int32_t format
        uint32_t n_channels
        int32_t addressing
        int32_t is_linear
        int32_t is_normalized
        int32_t keeps_integers

    ctypedef struct cuplug_texture:
        void *array
        uint64_t reader
        uint64_t writer

    int cuplug_make_texture(
        int32_t device, const cuplug_texture_form *form, cuplug_texture *texture,
        cuplug_error *error
    )
    int cuplug_free_texture(int32_t device, const cuplug_texture *texture, cuplug_error *error)
    int cuplug_copy_texture(
        int32_t device, const cuplug_texture *texture, const cuplug_texture_form *form,
        void *memory, int is_out, void *stream, cuplug_error *error
    )
