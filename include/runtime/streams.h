/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events and graphs that Python users create. Streams are as in cuplug_options. Not
 * installed: C programs use CUDA's functions. */
#ifndef CUPLUG_RUNTIME_STREAMS_H
#define CUPLUG_RUNTIME_STREAMS_H

#include <cuplug/host.h>

CUPLUG__BEGIN_C

/* Creates a stream. Unless `is_non_blocking`, it is ordered with the legacy default stream. Lower
 * numbers have higher priority, 0 is the default. [thread-safe] */
CUPLUG_API int cuplug_make_stream(int32_t device, int is_non_blocking, int32_t priority,
                                  void **stream, cuplug_error *error);
/* Queued work still completes. [thread-safe] */
CUPLUG_API int cuplug_free_stream(int32_t device, void *stream, cuplug_error *error);

/* [thread-safe] */
CUPLUG_API int cuplug_make_event(int32_t device, int has_time, void **event, cuplug_error *error);
CUPLUG_API int cuplug_free_event(int32_t device, void *event, cuplug_error *error);
/* [thread-safe] [stream-ordered] */
CUPLUG_API int cuplug_record_event(int32_t device, void *event, void *stream, cuplug_error *error);
CUPLUG_API int cuplug_wait_for_event(int32_t device, void *stream, void *event,
                                     cuplug_error *error);
/* Also raises faults of this thread's earlier calls. [thread-safe] [syncs] */
CUPLUG_API int cuplug_synchronize_event(int32_t device, void *event, cuplug_error *error);
/* Returns 1 if the work on a stream, or before an event (one is NULL), is done. [thread-safe] */
CUPLUG_API int cuplug_query_work(int32_t device, void *stream, void *event, int32_t *is_done,
                                 cuplug_error *error);
/* Returns the time from one event to another. Both have completed. [thread-safe] */
CUPLUG_API int cuplug_elapsed_time(int32_t device, void *start, void *end, float *milliseconds,
                                   cuplug_error *error);

/* Work that is queued on a stream between these two calls becomes a graph, which can be launched
 * any number of times. If `graph` is NULL, it is discarded. [thread-safe] */
CUPLUG_API int cuplug_begin_capture(int32_t device, void *stream, cuplug_error *error);
CUPLUG_API int cuplug_end_capture(int32_t device, void *stream, void **graph, cuplug_error *error);
/* [thread-safe] [stream-ordered] */
CUPLUG_API int cuplug_launch_graph(int32_t device, void *graph, const void *captured_on,
                                   void *stream, cuplug_error *error);
/* Launches in progress still complete. [thread-safe] */
CUPLUG_API int cuplug_free_graph(int32_t device, void *graph, cuplug_error *error);

CUPLUG__END_C
#endif
