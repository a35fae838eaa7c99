/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for streams, their order, and their behavior under capture. */
#ifndef CUPLUG_CORE_CUDA_STREAM_H
#define CUPLUG_CORE_CUDA_STREAM_H

#include <cuplug/host.h>

/* The legacy default stream by its explicit name, for callers that pass NULL. */
#define CUPLUG__STREAM(stream) ((stream) ? (stream) : (void *)1)
/* Handles up to this one name a default stream of whichever GPU is current. */
#define CUPLUG__LAST_DEFAULT_STREAM 2

/* Waits for a stream, or orders two, unless exactly one is captured. The device was entered. */
int cuplug__stream_synchronize(void *stream, cuplug_error *error);
int cuplug__stream_wait(int32_t device, void *waiting, void *stream, cuplug_error *error);
/* ---- Streams under capture ------------------------------------------------------------------- */

/* Allocating, loading or waiting would invalidate a graph capture in progress in this process,
 * unless this thread's mode is relaxed meanwhile. Declares the mode that is restored at the end of
 * the block: CUPLUG__RELAXED mode = cuplug__capture_allow_unsafe(); nothing without the driver.
 */
#define CUPLUG__RELAXED __attribute__((unused, cleanup(cuplug__capture_restore))) int
int cuplug__capture_allow_unsafe(void);
void cuplug__capture_restore(const int *mode);
/* 1 if work put on a stream becomes part of a graph. Return the driver's code: the legacy stream
 * cannot be queried while a stream that it waits for is captured. */
int cuplug__capture_query(void *stream, int *is_captured);
/* ---- Second streams -------------------------------------------------------------------------- */

/* Work concurrent with a call's stream, after its earlier and before its later work. The device has
 * been entered in every call. */

typedef struct cuplug__second {
  void *stream;
  int32_t device;
  void *forked_from; /* the stream it was ordered after most recently */
  struct cuplug__second *next;
} cuplug__second;

/* Orders *second after the work on `stream`. If NULL, it is acquired from the device's pool. */
int cuplug__second_fork(int32_t device, void *stream, cuplug__second **second, cuplug_error *error);
/* Makes `stream` wait for it, and releases it: its work may still be queued. */
int cuplug__second_join(cuplug__second *second, void *stream, cuplug_error *error);

#endif
