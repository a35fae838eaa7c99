/* SPDX-License-Identifier: Apache-2.0 */
/* The pool has the same number of streams as calls have used one at the same time. They are never
 * destroyed. */
#include "cuda/second.h"

#include "base/status.h"
#include "cuda/capture.h"
#include "cuda/driver.h"
#include "cuda/error.h"
#include "cuda/gpus.h"
#include "cuda/stream.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cuplug__second *idle[CUPLUG__MAX_GPUS]; /* under the lock */

static int create(int32_t device, cuplug__second **second, cuplug_error *error) {
  CUPLUG__RELAXED mode = cuplug__capture_relax();
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

/* One that was forked stays in the capture until that ends: until then it suits calls on the same
 * stream only. */
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
  return cuplug__stream_order(device, (*second)->stream, stream, error);
}

int cuplug__second_join(cuplug__second *second, void *stream, cuplug_error *error) {
  const int status = cuplug__stream_order(second->device, stream, second->stream, error);
  release(second);
  return status;
}
