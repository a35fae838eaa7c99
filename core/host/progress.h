/* SPDX-License-Identifier: Apache-2.0 */
/* The progress of a long transfer, reported to the caller periodically; the caller may end it. */
#ifndef CUPLUG_CORE_HOST_PROGRESS_H
#define CUPLUG_CORE_HOST_PROGRESS_H

#include <cuplug/host.h>

typedef struct cuplug__progress_tracker {
  cuplug_progress *progress; /* NULL: nobody watches */
  void *user;
  uint64_t done_bytes, total_bytes;
  int64_t next_ns; /* when to report again */
  int reported;
} cuplug__progress_tracker;

void cuplug__progress_tracker_start(cuplug__progress_tracker *tracker, cuplug_progress *progress,
                                    void *user, uint64_t total_bytes);
/* Counts bytes that have arrived. Returns the result of the caller's function, if it was time to
 * call it; `tracker` may be NULL. */
int cuplug__progress_tracker_add(cuplug__progress_tracker *tracker, uint64_t bytes,
                                 cuplug_error *error);
/* Everything has arrived: reports it if there was an earlier report. */
int cuplug__progress_tracker_end(cuplug__progress_tracker *tracker, cuplug_error *error);

#endif
