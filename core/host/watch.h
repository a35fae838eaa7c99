/* SPDX-License-Identifier: Apache-2.0 */
/* How far a long transfer is, told to the caller now and then; the caller may end it there. */
#ifndef CUPLUG_CORE_HOST_WATCH_H
#define CUPLUG_CORE_HOST_WATCH_H

#include <cuplug/host.h>

typedef struct cuplug__watch {
  cuplug_progress *progress; /* NULL: nobody watches */
  void *user;
  uint64_t done_bytes, total_bytes;
  int64_t next_ns; /* when to report again */
  int reported;
} cuplug__watch;

void cuplug__watch_start(cuplug__watch *watch, cuplug_progress *progress, void *user,
                         uint64_t total_bytes);
/* Counts bytes that have arrived. Returns what the caller's function returned, if it was time to
 * call it; `watch` may be NULL. */
int cuplug__watch_add(cuplug__watch *watch, uint64_t bytes, cuplug_error *error);
/* Everything has arrived: says so where there was a report before. */
int cuplug__watch_end(cuplug__watch *watch, cuplug_error *error);

#endif
