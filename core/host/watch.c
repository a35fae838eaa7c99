/* SPDX-License-Identifier: Apache-2.0 */
#include "host/watch.h"

#include <time.h>

/* Shorter transfers are over before anyone could look; a caller that takes a lock to be told, as
 * Python does, holds the transfer up less often. */
#define PERIOD_US 100000

static int64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void cuplug__watch_start(cuplug__watch *watch, cuplug_progress *progress, void *user,
                         uint64_t total_bytes) {
  *watch = (cuplug__watch){.progress = progress, .user = user, .total_bytes = total_bytes};
  if (progress) watch->next_us = now_us() + PERIOD_US;
}

/* Bytes that travel again, after memory had run out, count once. */
int cuplug__watch_add(cuplug__watch *w, uint64_t bytes, cuplug_error *error) {
  if (!w || !w->progress) return CUPLUG_OK;
  const uint64_t left = w->total_bytes - w->done_bytes;
  w->done_bytes += bytes < left ? bytes : left;
  int64_t now = now_us();
  if (now < w->next_us) return CUPLUG_OK;
  w->next_us = now + PERIOD_US;
  w->reported = 1;
  return w->progress(w->user, w->done_bytes, w->total_bytes, error);
}

int cuplug__watch_end(cuplug__watch *w, cuplug_error *error) {
  return w->reported ? w->progress(w->user, w->total_bytes, w->total_bytes, error) : CUPLUG_OK;
}
