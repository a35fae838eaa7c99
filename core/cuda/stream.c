/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for streams, and their order by events, which are kept for the next time. */
#include "cuda/stream.h"

#include "cuda/capture.h"
#include "cuda/driver.h"
#include "cuda/error.h"
#include "cuda/gpus.h"

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

/* It may be recorded anew at once: those that wait for it wait for what it was when they began. */
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

int cuplug__stream_order(int32_t device, void *waiting, void *stream, cuplug_error *error) {
  return cuplug__cuda_check(error, order(device, waiting, stream), "ordering two streams");
}

int cuplug__stream_wait(int32_t device, void *waiting, void *stream, cuplug_error *error) {
  int parted;
  if (waiting == stream) return CUPLUG_OK;
  int code = cuplug__capture_parts(waiting, stream, &parted);
  if (parted) return CUPLUG_OK;
  if (!code) code = order(device, waiting, stream);
  return cuplug__cuda_check(error, code, "ordering two streams");
}
