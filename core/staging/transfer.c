/* SPDX-License-Identifier: Apache-2.0 */
#include "staging/transfer.h"

#include "base/layout.h"
#include "base/status.h"
#include "cuda/calls.h"
#include "cuda/channel.h"
#include "cuda/driver.h"
#include "cuda/gpus.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "host/copies.h"
#include "host/jobs.h"
#include "host/view.h"

#define N_COPYING 4 /* chunks on their way between arrays and buffers; the DMA has the others */

/* One copy: chunk i goes through buffer i % N_PINNED of the channel. */
typedef struct transfer {
  cuplug__channel *channel;
  int to_host;
  const cuplug__view *view; /* on the host: its bytes from `first` on */
  uint64_t first, bytes;
  char *device;
  cuplug__progress_tracker *tracker;
  cuplug_error *error;
  uint64_t chunk_bytes, n_chunks;
  uint64_t n_copying; /* at most, at once */
  int n_helpers;
  cuplug__host_copy copies[CUPLUG__N_PINNED];
} transfer;

/* Enough chunks to keep all buffers busy, but none so small that starting its DMA counts. */
static int plan(transfer *t) {
  const uint64_t unit = CUPLUG__PINNED_SMALL;
  int status = cuplug__channel_pin(t->channel, t->bytes, t->error);
  if (status) return status;
  uint64_t wanted = (t->bytes / CUPLUG__N_PINNED + unit - 1) / unit * unit;
  t->chunk_bytes = wanted ? cuplug__min(wanted, t->channel->pinned_bytes) : unit;
  t->n_chunks = (t->bytes - 1) / t->chunk_bytes + 1;
  t->n_copying = t->bytes < CUPLUG__TEAM_BYTES ? 1 : N_COPYING;
  t->n_helpers = (int)cuplug__min(1 + t->bytes / CUPLUG__BYTES_OF_HELPER, CUPLUG__MAX_COPY_THREADS);
  return CUPLUG_OK;
}

static uint64_t bytes_of(const transfer *t, uint64_t i) {
  return cuplug__min(t->chunk_bytes, t->bytes - i * t->chunk_bytes);
}

static char *buffer_of(const transfer *t, uint64_t i) {
  return t->channel->pinned + i % CUPLUG__N_PINNED * t->channel->pinned_bytes;
}

static int check(cuplug_error *error, int code, int to_host) {
  return cuplug__cuda_check(error, code, to_host ? "copying to the host" : "copying to the device");
}

/* Begins the copy between the array and the buffer once the DMA is done that used it last. */
static int begin(transfer *t, uint64_t i) {
  const uint64_t first = t->first + i * t->chunk_bytes, bytes = bytes_of(t, i);
  char *buffer = buffer_of(t, i);
  const int code = cuplug__driver.cuEventSynchronize(t->channel->events[i % CUPLUG__N_PINNED]);
  if (code) return check(t->error, code, t->to_host);
  if (t->n_copying > 1)
    cuplug__host_copy_begin(&t->copies[i % CUPLUG__N_PINNED], t->to_host, t->view, first, bytes,
                            buffer, t->n_helpers);
  else
    cuplug__view_copy(t->view, t->to_host, first, bytes, buffer);
  return CUPLUG_OK;
}

static void end(transfer *t, uint64_t i) {
  cuplug__host_copy_end(&t->copies[i % CUPLUG__N_PINNED]);
}

/* Begins the DMA between the buffer and the device. */
static int exchange(transfer *t, uint64_t i) {
  void *stream = t->channel->stream, *event = t->channel->events[i % CUPLUG__N_PINNED];
  int status = cuplug__driver_copy(t->to_host, buffer_of(t, i), t->device + i * t->chunk_bytes,
                                   bytes_of(t, i), stream, t->error);
  return status ? status : check(t->error, cuplug__driver.cuEventRecord(event, stream), t->to_host);
}

/* ---- By the driver --------------------------------------------------------------------------- */

int cuplug__driver_copy(int to_host, void *host, void *device, uint64_t bytes, void *stream,
                        cuplug_error *error) {
  const CUdeviceptr address = (CUdeviceptr)(uintptr_t)device;
  return check(error,
               to_host ? cuplug__driver.cuMemcpyDtoHAsync(host, address, bytes, stream)
                       : cuplug__driver.cuMemcpyHtoDAsync(address, host, bytes, stream),
               to_host);
}

int cuplug__is_for_driver(const cuplug__view *view, uint64_t first, uint64_t bytes) {
  return bytes >= CUPLUG__PIN_QUERY_BYTES && cuplug__view_is_contiguous(view) &&
         cuplug__is_pinned(view->data + first, bytes);
}

static int copy_directly(const transfer *t) {
  int status = cuplug__driver_copy(t->to_host, t->view->data + t->first, t->device, t->bytes,
                                   t->channel->stream, t->error);
  if (!status && t->to_host) status = cuplug__stream_synchronize(t->channel->stream, t->error);
  return status ? status : cuplug__progress_tracker_add(t->tracker, t->bytes, t->error);
}

/* ---- Either way ------------------------------------------------------------------------------ */

/* Begins as much as it may before it waits. To the host, the DMA comes first, and runs ahead as far
 * as there are buffers; to the device it follows the copies. */
static int run(transfer *t) {
  uint64_t n_requested = t->to_host ? 0 : t->n_chunks, n_begun = 0, n_done = 0;
  int status = CUPLUG_OK;
  while (!status && n_done < t->n_chunks) {
    if (n_requested < t->n_chunks && n_requested - n_done < CUPLUG__N_PINNED) {
      status = exchange(t, n_requested++);
    } else if (n_begun < n_requested && n_begun - n_done < t->n_copying) {
      status = begin(t, n_begun++);
    } else {
      end(t, n_done);
      if (!t->to_host) status = exchange(t, n_done);
      if (!status) status = cuplug__progress_tracker_add(t->tracker, bytes_of(t, n_done), t->error);
      n_done++;
    }
  }
  return status;
}

int cuplug__transfer(cuplug__channel *channel, int to_host, const cuplug__view *view,
                     uint64_t first, void *device, uint64_t bytes,
                     cuplug__progress_tracker *tracker, cuplug_error *error) {
  transfer t = {.channel = channel,
                .to_host = to_host,
                .view = view,
                .first = first,
                .bytes = bytes,
                .device = device,
                .tracker = tracker,
                .error = error};
  if (!bytes) return CUPLUG_OK;
  if (cuplug__is_for_driver(view, first, bytes)) return copy_directly(&t);
  int status = plan(&t);
  if (status) return status;
  status = run(&t);
  if (!status) return CUPLUG_OK;
  /* Workers may still be at it, and a DMA be in flight that no event covers. */
  for (uint64_t i = 0; i < CUPLUG__N_PINNED; i++) end(&t, i);
  cuplug__driver.cuStreamSynchronize(channel->stream);
  return status;
}

/* ---- The public copies ----------------------------------------------------------------------- */

/* Pinned memory needs no channel, nor do small copies to the device: the driver has its own
 * buffers. */
static int is_direct(int to_host, const void *host, uint64_t bytes, void *stream) {
  int is_captured = 0;
  const int is_small = !to_host && bytes < CUPLUG__TEAM_BYTES;
  if (!is_small && (bytes < CUPLUG__PIN_QUERY_BYTES || !cuplug__is_pinned(host, bytes))) return 0;
  return !cuplug__capture_query(stream, &is_captured) && !is_captured;
}

/* For large copies with a tracker: a report may come between two of them. */
#define WATCHED_BYTES ((uint64_t)64 << 20)

static int copy_at_once(int to_host, char *host, char *memory, uint64_t bytes, void *stream,
                        cuplug__progress_tracker *tracker, cuplug_error *error) {
  int status = CUPLUG_OK;
  for (uint64_t at = 0, n; at < bytes && !status; at += n) {
    n = cuplug__min(bytes - at, WATCHED_BYTES);
    status = cuplug__driver_copy(to_host, host + at, memory + at, n, stream, error);
    if (!status) status = cuplug__stream_synchronize(stream, error);
    if (!status) status = cuplug__progress_tracker_add(tracker, n, error);
  }
  return status;
}

/* Otherwise on a channel, after the current work on the caller's stream. */
static int copy(int32_t device, int to_host, void *host, void *memory, uint64_t bytes, void *stream,
                cuplug__progress_tracker *tracker, cuplug_error *error) {
  cuplug__channel *channel;
  cuplug__view view;
  if (is_direct(to_host, host, bytes, stream))
    return copy_at_once(to_host, host, memory, bytes, stream, tracker, error);
  int status = cuplug__channel_acquire(device, &channel, error);
  if (status) return status;
  cuplug__view_bytes(&view, host, bytes);
  status = cuplug__stream_wait(device, channel->stream, stream, error);
  if (!status) status = cuplug__transfer(channel, to_host, &view, 0, memory, bytes, tracker, error);
  if (!status && !to_host) status = cuplug__stream_synchronize(channel->stream, error);
  cuplug__channel_release(channel);
  return status;
}

int cuplug_copy_with_progress(int32_t device, int to_host, void *to, const void *from,
                              uint64_t bytes, void *stream, cuplug_progress *progress, void *user,
                              cuplug_error *error) {
  cuplug__progress_tracker tracker;
  cuplug__progress_tracker_start(&tracker, progress, user, bytes);
  CUPLUG__ENTER_OR_RETURN(device, error);
  CUPLUG__RELAXED mode = cuplug__capture_allow_unsafe();
  void *source = (void *)(uintptr_t)from;
  int status = copy(device, to_host, to_host ? to : source, to_host ? source : to, bytes,
                    CUPLUG__STREAM(stream), &tracker, error);
  if (!status) status = cuplug__progress_tracker_end(&tracker, error);
  return status ? status : cuplug__calls_check(error);
}

int cuplug_copy_to_device(int32_t device, void *to, const void *from, uint64_t bytes, void *stream,
                          cuplug_error *error) {
  return cuplug_copy_with_progress(device, 0, to, from, bytes, stream, NULL, NULL, error);
}

int cuplug_copy_to_host(int32_t device, void *to, const void *from, uint64_t bytes, void *stream,
                        cuplug_error *error) {
  return cuplug_copy_with_progress(device, 1, to, from, bytes, stream, NULL, NULL, error);
}

/* ---- Progress -------------------------------------------------------------------------------- */

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
