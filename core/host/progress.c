/* SPDX-License-Identifier: Apache-2.0 */
#include "host/progress.h"

#include "host/wait.h"

/* Shorter transfers end before anyone could see a report; and a caller that takes a lock to report,
 * as Python does, delays the transfer less often. */
#define PERIOD_NS 100000000

void cuplug__progress_tracker_start(cuplug__progress_tracker *tracker, cuplug_progress *progress,
                                    void *user, uint64_t total_bytes) {
  *tracker =
      (cuplug__progress_tracker){.progress = progress, .user = user, .total_bytes = total_bytes};
  if (progress) tracker->next_ns = cuplug__now_ns() + PERIOD_NS;
}

/* Bytes that are transferred again, after memory had run out, count once. */
int cuplug__progress_tracker_add(cuplug__progress_tracker *w, uint64_t bytes, cuplug_error *error) {
  if (!w || !w->progress) return CUPLUG_OK;
  const uint64_t left = w->total_bytes - w->done_bytes;
  w->done_bytes += bytes < left ? bytes : left;
  const int64_t now = cuplug__now_ns();
  if (now < w->next_ns) return CUPLUG_OK;
  w->next_ns = now + PERIOD_NS;
  w->reported = 1;
  return w->progress(w->user, w->done_bytes, w->total_bytes, error);
}

int cuplug__progress_tracker_end(cuplug__progress_tracker *w, cuplug_error *error) {
  return w->reported ? w->progress(w->user, w->total_bytes, w->total_bytes, error) : CUPLUG_OK;
}
