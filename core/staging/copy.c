/* SPDX-License-Identifier: Apache-2.0 */
/* The public copies between the host and a GPU. */
#include "base/layout.h"
#include "base/status.h"
#include "cuda/calls.h"
#include "cuda/gpus.h"
#include "cuda/lane.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "host/copies.h"
#include "host/view.h"
#include "host/watch.h"
#include "staging/transfer.h"

/* On a lane of its own, after what is on the caller's stream. */
static int copy_on_lane(cuplug__lane *lane, int to_host, void *host, void *memory, uint64_t bytes,
                        void *stream, cuplug__watch *watch, cuplug_error *error) {
  cuplug__view view;
  cuplug__view_bytes(&view, host, bytes);
  int status = cuplug__stream_wait(lane->device, lane->stream, CUPLUG__STREAM(stream), error);
  if (!status) status = cuplug__transfer(lane, to_host, &view, 0, memory, bytes, watch, error);
  return status || to_host ? status : cuplug__stream_synchronize(lane->stream, error);
}

/* Pinned memory needs no lane, nor do small copies to the device: the driver has buffers of its
 * own. */
static int is_direct(int to_host, const void *host, uint64_t bytes, void *stream) {
  int is_captured = 0;
  const int is_small = !to_host && bytes < CUPLUG__TEAM_BYTES;
  if (!is_small && (bytes < CUPLUG__ASKED_BYTES || !cuplug__is_pinned(host, bytes))) return 0;
  return !cuplug__capture_query(stream, &is_captured) && !is_captured;
}

/* Of large copies that somebody watches: between two of them a report may come. */
#define WATCHED_BYTES ((uint64_t)64 << 20)

static int copy_directly(int to_host, char *host, char *memory, uint64_t bytes, void *stream,
                         cuplug__watch *watch, cuplug_error *error) {
  int status = CUPLUG_OK;
  for (uint64_t at = 0, n; at < bytes && !status; at += n) {
    n = cuplug__least(bytes - at, WATCHED_BYTES);
    status = cuplug__driver_copy(to_host, host + at, memory + at, n, stream, error);
    if (!status) status = cuplug__stream_synchronize(stream, error);
    if (!status) status = cuplug__watch_add(watch, n, error);
  }
  return status;
}

static int copy(int32_t device, int to_host, void *host, void *memory, uint64_t bytes, void *stream,
                cuplug__watch *watch, cuplug_error *error) {
  cuplug__lane *lane;
  if (is_direct(to_host, host, bytes, CUPLUG__STREAM(stream)))
    return copy_directly(to_host, host, memory, bytes, CUPLUG__STREAM(stream), watch, error);
  int status = cuplug__lane_take(device, &lane, error);
  if (status) return status;
  status = copy_on_lane(lane, to_host, host, memory, bytes, stream, watch, error);
  cuplug__lane_give(lane);
  return status;
}

int cuplug_copy_watched(int32_t device, int to_host, void *to, const void *from, uint64_t bytes,
                        void *stream, cuplug_progress *progress, void *user, cuplug_error *error) {
  cuplug__watch watch;
  cuplug__watch_start(&watch, progress, user, bytes);
  CUPLUG__ENTER_OR_RETURN(device, error);
  CUPLUG__RELAXED mode = cuplug__capture_relax();
  void *source = (void *)(uintptr_t)from;
  int status = copy(device, to_host, to_host ? to : source, to_host ? source : to, bytes, stream,
                    &watch, error);
  if (!status) status = cuplug__watch_end(&watch, error);
  return status ? status : cuplug__calls_check(error);
}

int cuplug_copy_to_device(int32_t device, void *to, const void *from, uint64_t bytes, void *stream,
                          cuplug_error *error) {
  return cuplug_copy_watched(device, 0, to, from, bytes, stream, NULL, NULL, error);
}

int cuplug_copy_to_host(int32_t device, void *to, const void *from, uint64_t bytes, void *stream,
                        cuplug_error *error) {
  return cuplug_copy_watched(device, 1, to, from, bytes, stream, NULL, NULL, error);
}
