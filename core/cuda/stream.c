/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for streams, and their order by events, which are cached. */
#include "cuda/stream.h"

#include "base/status.h"
#include "cuda/driver.h"
#include "cuda/gpus.h"

#include <pthread.h>
#include <stdlib.h>

/* ---- Streams under capture ------------------------------------------------------------------- */

static int exchange(CUstreamCaptureMode mode) {
  if (cuplug__driver_ready()) cuplug__driver.cuThreadExchangeStreamCaptureMode(&mode);
  return (int)mode;
}

int cuplug__capture_allow_unsafe(void) { return exchange(CUPLUG__CAPTURE_RELAXED); }

void cuplug__capture_restore(const int *mode) { exchange((CUstreamCaptureMode)*mode); }

int cuplug__capture_query(void *stream, int *is_captured) {
  CUstreamCaptureStatus capture = 0;
  int code = cuplug__driver.cuStreamIsCapturing(stream, &capture);
  *is_captured = !code && capture;
  return code;
}

/* 1 if exactly one of two streams is captured: then no event can order them, and the code that
 * launches the graph must. */
static int capture_parts(void *a, void *b, int *parted) {
  int a_is_captured, b_is_captured;
  int code = cuplug__capture_query(a, &a_is_captured);
  int b_code = cuplug__capture_query(b, &b_is_captured);
  *parted = a_is_captured != b_is_captured;
  return *parted ? 0 : code ? code : b_code;
}

/* ---- Order ----------------------------------------------------------------------------------- */

#define N_KEPT 4 /* events of each GPU; threads that find none make one */

static _Atomic(CUevent) kept[CUPLUG__MAX_GPUS][N_KEPT];

int cuplug__stream_synchronize(void *stream, cuplug_error *error) {
  return cuplug__cuda_check(error, cuplug__driver.cuStreamSynchronize(stream),
                            "waiting for a stream");
}

static int take_event(int32_t device, CUevent *event) {
  for (int k = 0; k < N_KEPT; k++) {
    *event = atomic_exchange_explicit(&kept[device][k], NULL, memory_order_acquire);
    if (*event) return 0;
  }
  return cuplug__driver.cuEventCreate(event, CUPLUG__EVENT_NO_TIMING);
}

/* It may be recorded again at once: waits use its state at their start. */
static void keep_event(int32_t device, CUevent event) {
  for (int k = 0; k < N_KEPT; k++) {
    CUevent none = NULL;
    if (atomic_compare_exchange_strong_explicit(&kept[device][k], &none, event,
                                                memory_order_release, memory_order_relaxed))
      return;
  }
  cuplug__driver.cuEventDestroy(event);
}

static int order(int32_t device, void *waiting, void *stream) {
  CUevent event;
  int code = take_event(device, &event);
  if (code) return code;
  code = cuplug__driver.cuEventRecord(event, stream);
  if (!code) code = cuplug__driver.cuStreamWaitEvent(waiting, event, 0);
  keep_event(device, event);
  return code;
}

/* Orders them whether captured or not: a stream that waits for a captured one is part of the
 * capture from then on. */
static int order_streams(int32_t device, void *waiting, void *stream, cuplug_error *error) {
  return cuplug__cuda_check(error, order(device, waiting, stream), "ordering two streams");
}

int cuplug__stream_wait(int32_t device, void *waiting, void *stream, cuplug_error *error) {
  int parted;
  if (waiting == stream) return CUPLUG_OK;
  int code = capture_parts(waiting, stream, &parted);
  if (parted) return CUPLUG_OK;
  if (!code) code = order(device, waiting, stream);
  return cuplug__cuda_check(error, code, "ordering two streams");
}

/* ---- Second streams -------------------------------------------------------------------------- */

/* The pool has as many streams as calls have used at the same time. They are never destroyed. */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cuplug__second *idle[CUPLUG__MAX_GPUS]; /* under the lock */

static int create(int32_t device, cuplug__second **second, cuplug_error *error) {
  CUPLUG__RELAXED mode = cuplug__capture_allow_unsafe();
  CUstream stream = NULL;
  cuplug__second *fresh = calloc(1, sizeof *fresh);
  if (!fresh) return cuplug__no_memory(error, "making a second stream");
  const int code = cuplug__driver.cuStreamCreate(&stream, CUPLUG__STREAM_NON_BLOCKING);
  if (code) {
    free(fresh);
    return cuplug__cuda_fail(error, code, "making a second stream");
  }
  fresh->stream = stream;
  fresh->device = device;
  *second = fresh;
  return CUPLUG_OK;
}

/* A forked stream stays in the capture until that ends, and suits only calls on that stream. */
static int suits(const cuplug__second *second, const void *stream) {
  int is_captured;
  if (cuplug__capture_query(second->stream, &is_captured)) return 0;
  return !is_captured || second->forked_from == stream;
}

static cuplug__second *take_idle(int32_t device, const void *stream) {
  pthread_mutex_lock(&lock);
  cuplug__second **at = &idle[device];
  while (*at && !suits(*at, stream)) at = &(*at)->next;
  cuplug__second *found = *at;
  if (found) *at = found->next;
  pthread_mutex_unlock(&lock);
  return found;
}

static void release(cuplug__second *second) {
  pthread_mutex_lock(&lock);
  second->next = idle[second->device];
  idle[second->device] = second;
  pthread_mutex_unlock(&lock);
}

int cuplug__second_fork(int32_t device, void *stream, cuplug__second **second,
                        cuplug_error *error) {
  int status = CUPLUG_OK;
  if (!*second && !(*second = take_idle(device, stream))) status = create(device, second, error);
  if (status) return status;
  (*second)->forked_from = stream;
  return order_streams(device, (*second)->stream, stream, error);
}

int cuplug__second_join(cuplug__second *second, void *stream, cuplug_error *error) {
  const int status = order_streams(second->device, stream, second->stream, error);
  release(second);
  return status;
}
