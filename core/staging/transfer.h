/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between host memory and a device: in chunks through a channel's pinned buffers, shared
 * with the threads of the team, or, of pinned memory, by the driver. */
#ifndef CUPLUG_CORE_STAGING_TRANSFER_H
#define CUPLUG_CORE_STAGING_TRANSFER_H

#include "cuda/channel.h"
#include "host/view.h"

#include <cuplug/host.h>

/* ---- Progress -------------------------------------------------------------------------------- */

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

/* ---- Transfers ------------------------------------------------------------------------------- */

/* For smaller ones, waking threads costs more than it gains. */
#define CUPLUG__TEAM_BYTES ((uint64_t)512 << 10)

/* From this size on, it pays to query whether memory is pinned. */
#define CUPLUG__PIN_QUERY_BYTES ((uint64_t)32 << 10)

/* 1 if these bytes of a view are pinned, which need no buffers; copying few bytes to one is faster
 * than the query. */
int cuplug__is_for_driver(const cuplug__view *view, uint64_t first, uint64_t bytes);

/* On the channel's stream, of the bytes of a view from `first` on. Returns when all have arrived on
 * the host; on the device the last may arrive, and the array be read, later. `tracker`: or NULL. */
int cuplug__transfer(cuplug__channel *channel, int to_host, const cuplug__view *view,
                     uint64_t first, void *device, uint64_t bytes,
                     cuplug__progress_tracker *tracker, cuplug_error *error);

/* By the driver, on a stream that is not captured. May return before all is done. */
int cuplug__driver_copy(int to_host, void *host, void *device, uint64_t bytes, void *stream,
                        cuplug_error *error);

#endif
