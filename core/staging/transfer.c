/* SPDX-License-Identifier: Apache-2.0 */
#include "staging/transfer.h"

#include "base/layout.h"
#include "cuda/driver.h"
#include "cuda/error.h"
#include "cuda/lane.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "host/copies.h"
#include "host/view.h"
#include "host/watch.h"

#include <string.h>

#define N_COPYING 4 /* chunks on their way between arrays and buffers; the DMA has the others */

/* One more helper for each. */
#define BYTES_OF_HELPER ((uint64_t)512 << 10)

/* One copy: chunk i goes through buffer i % N_PINNED of the lane. */
typedef struct transfer {
  cuplug__lane *lane;
  cuplug__host_copy copies[CUPLUG__N_PINNED];
  uint64_t bytes, chunk_bytes, n_chunks;
  uint64_t n_copying; /* at most, at once */
  int n_helpers;
  const cuplug__view *view; /* on the host: its bytes from `first` on */
  uint64_t first;
} transfer;

/* Enough chunks to keep all buffers busy, but none so small that starting its DMA counts. */
static int plan(transfer *t, cuplug__lane *lane, const cuplug__view *view, uint64_t first,
                uint64_t bytes, cuplug_error *error) {
  const uint64_t unit = CUPLUG__PINNED_SMALL;
  int status = cuplug__lane_pin(lane, bytes, error);
  if (status) return status;
  uint64_t wanted = (bytes / CUPLUG__N_PINNED + unit - 1) / unit * unit;
  t->lane = lane;
  t->view = view;
  t->first = first;
  t->bytes = bytes;
  t->chunk_bytes = wanted ? cuplug__least(wanted, lane->pinned_bytes) : unit;
  t->n_chunks = (bytes - 1) / t->chunk_bytes + 1;
  t->n_copying = bytes < CUPLUG__TEAM_BYTES ? 1 : N_COPYING;
  t->n_helpers = (int)cuplug__least(1 + bytes / BYTES_OF_HELPER, CUPLUG__MAX_COPY_THREADS);
  memset(t->copies, 0, sizeof t->copies);
  return CUPLUG_OK;
}

static uint64_t bytes_of(const transfer *t, uint64_t i) {
  return cuplug__least(t->chunk_bytes, t->bytes - i * t->chunk_bytes);
}

/* In the view. */
static uint64_t place_of(const transfer *t, uint64_t i) { return t->first + i * t->chunk_bytes; }

static char *buffer_of(const transfer *t, uint64_t i) {
  return t->lane->pinned + i % CUPLUG__N_PINNED * t->lane->pinned_bytes;
}

static void *event_of(const transfer *t, uint64_t i) {
  return t->lane->events[i % CUPLUG__N_PINNED];
}

static CUdeviceptr device_address(const transfer *t, const void *pointer, uint64_t i) {
  return (CUdeviceptr)(uintptr_t)pointer + i * t->chunk_bytes;
}

/* Both wait until the DMA is done that used the buffer last, and begin the copy to or from it. */
static int begin_filling(transfer *t, uint64_t i) {
  int code = cuplug__driver.cuEventSynchronize(event_of(t, i));
  if (code) return code;
  if (t->n_copying > 1)
    cuplug__host_copy_read(&t->copies[i % CUPLUG__N_PINNED], t->view, place_of(t, i),
                           bytes_of(t, i), buffer_of(t, i), t->n_helpers);
  else
    cuplug__view_read(t->view, place_of(t, i), bytes_of(t, i), buffer_of(t, i));
  return 0;
}

static int begin_writing(transfer *t, uint64_t i) {
  int code = cuplug__driver.cuEventSynchronize(event_of(t, i));
  if (code) return code;
  if (t->n_copying > 1)
    cuplug__host_copy_write(&t->copies[i % CUPLUG__N_PINNED], t->view, place_of(t, i),
                            bytes_of(t, i), buffer_of(t, i), t->n_helpers);
  else
    cuplug__view_write(t->view, place_of(t, i), bytes_of(t, i), buffer_of(t, i));
  return 0;
}

static void end(transfer *t, uint64_t i) {
  cuplug__host_copy_end(&t->copies[i % CUPLUG__N_PINNED]);
}

static int send(transfer *t, uint64_t i, void *to) {
  int code = cuplug__driver.cuMemcpyHtoDAsync(device_address(t, to, i), buffer_of(t, i),
                                              bytes_of(t, i), t->lane->stream);
  return code ? code : (int)cuplug__driver.cuEventRecord(event_of(t, i), t->lane->stream);
}

static int request(transfer *t, uint64_t i, const void *from) {
  int code = cuplug__driver.cuMemcpyDtoHAsync(buffer_of(t, i), device_address(t, from, i),
                                              bytes_of(t, i), t->lane->stream);
  return code ? code : (int)cuplug__driver.cuEventRecord(event_of(t, i), t->lane->stream);
}

/* After an error workers may still be at it, and a DMA be in flight that no event covers. */
static int finish(transfer *t, int code, int status, const char *doing, cuplug_error *error) {
  if (!code && !status) return CUPLUG_OK;
  for (uint64_t i = 0; i < CUPLUG__N_PINNED; i++) end(t, i);
  cuplug__driver.cuStreamSynchronize(t->lane->stream);
  return code ? cuplug__cuda_fail(error, code, doing) : status;
}

/* ---- By the driver --------------------------------------------------------------------------- */

int cuplug__driver_copy(int to_host, void *to, const void *from, uint64_t bytes, void *stream,
                        cuplug_error *error) {
  int code =
      to_host ? cuplug__driver.cuMemcpyDtoHAsync(to, (CUdeviceptr)(uintptr_t)from, bytes, stream)
              : cuplug__driver.cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)to, from, bytes, stream);
  return cuplug__cuda_check(error, code, to_host ? "copying to the host" : "copying to the device");
}

/* Pinned memory needs no buffers; few bytes are in one sooner than it is asked about. */
static int is_for_driver(const cuplug__view *view, uint64_t first, uint64_t bytes) {
  return bytes >= CUPLUG__ASKED_BYTES && cuplug__view_is_contiguous(view) &&
         cuplug__is_pinned(view->data + first, bytes);
}

/* ---- Either way ------------------------------------------------------------------------------ */

int cuplug__to_device(cuplug__lane *lane, void *to, const cuplug__view *from, uint64_t first,
                      uint64_t bytes, cuplug__watch *watch, cuplug_error *error) {
  transfer t;
  uint64_t n_begun = 0, n_sent = 0;
  int code = 0;
  int status;
  if (!bytes) return CUPLUG_OK;
  if (is_for_driver(from, first, bytes)) {
    status = cuplug__driver_copy(0, to, from->data + first, bytes, lane->stream, error);
    return status ? status : cuplug__watch_add(watch, bytes, error);
  }
  status = plan(&t, lane, from, first, bytes, error);
  if (status) return status;
  while (!code && !status && n_sent < t.n_chunks) {
    if (n_begun < t.n_chunks && n_begun - n_sent < t.n_copying) {
      code = begin_filling(&t, n_begun++);
    } else {
      end(&t, n_sent);
      code = send(&t, n_sent, to);
      if (!code) status = cuplug__watch_add(watch, bytes_of(&t, n_sent), error);
      n_sent++;
    }
  }
  return finish(&t, code, status, "copying to the device", error);
}

/* The DMA runs ahead as far as there are buffers. */
int cuplug__to_host(cuplug__lane *lane, const cuplug__view *to, uint64_t first, const void *from,
                    uint64_t bytes, cuplug__watch *watch, cuplug_error *error) {
  transfer t;
  uint64_t n_requested = 0, n_begun = 0, n_done = 0;
  int code = 0;
  int status;
  if (!bytes) return CUPLUG_OK;
  if (is_for_driver(to, first, bytes)) {
    status = cuplug__driver_copy(1, to->data + first, from, bytes, lane->stream, error);
    if (!status) status = cuplug__stream_synchronize(lane->stream, error);
    return status ? status : cuplug__watch_add(watch, bytes, error);
  }
  status = plan(&t, lane, to, first, bytes, error);
  if (status) return status;
  while (!code && !status && n_done < t.n_chunks) {
    if (n_requested < t.n_chunks && n_requested - n_done < CUPLUG__N_PINNED) {
      code = request(&t, n_requested++, from);
    } else if (n_begun < n_requested && n_begun - n_done < t.n_copying) {
      code = begin_writing(&t, n_begun++);
    } else {
      end(&t, n_done);
      status = cuplug__watch_add(watch, bytes_of(&t, n_done++), error);
    }
  }
  return finish(&t, code, status, "copying to the host", error);
}
