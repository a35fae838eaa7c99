/* SPDX-License-Identifier: Apache-2.0 */
#include "staging/slices.h"

#include "base/layout.h"
#include "cuda/channel.h"
#include "cuda/driver.h"
#include "cuda/fault.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "entry/entry.h"
#include "host/copies.h"

#include <stdlib.h>

/* Slices on their way: a slot each. Slices in turn go to the channels in turn. */
#define N_CHANNELS 3
#define SLOTS_OF_CHANNEL 4
#define N_SLOTS (N_CHANNELS * SLOTS_OF_CHANNEL)

/* The layout of a slice, array after array, equal in pinned and device memory. */
typedef struct slot {
  cuplug__channel *channel;
  void *event; /* the slice is back in pinned memory */
  char *pinned;
  char *device;
  cuplug_fault *fault;
  cuplug__host_copy copies[CUPLUG_MAX_ARGUMENTS];
} slot;

typedef struct pipeline {
  cuplug__staged_call *staged;
  cuplug__channel *channels[N_CHANNELS];
  void *block; /* device memory of all slots; channel 0's, like shared arrays */
  slot slots[N_SLOTS];
  void *shared[CUPLUG_MAX_ARGUMENTS]; /* device memory of arrays that are not split */
  uint64_t direct_mask;               /* bit k: array k is pinned, and needs no buffers */
  uint64_t buffered_bytes;            /* of a row, of the arrays that are not */
  int n_helpers;
  cuplug__host_copy pages[CUPLUG_MAX_ARGUMENTS]; /* of outputs */
  uint64_t slot_bytes, n_slices;
  uint64_t slice; /* rows of each slice except the last */
  uint64_t offsets[CUPLUG_MAX_ARGUMENTS];
} pipeline;

#define SLICED_BYTES ((uint64_t)1 << 20) /* less, of all arrays together, goes through at once */
#define MIN_SLICES 8
#define MIN_SLOT_BYTES ((uint64_t)512 << 10) /* smaller ones cost more than they overlap */
#define MAX_SLOT_BYTES ((uint64_t)8 << 20)
#define ROWS_UNIT \
  1024 /* slices are multiples where they can be: few bytes lie unaligned on the host */
#define ALIGNMENT 256 /* of arrays in a slot, as of memory from the driver */

_Static_assert(SLOTS_OF_CHANNEL <= CUPLUG__N_PINNED,
               "each slot has an event and a fault record of its channel");

/* Slices at once, at most. */
#define N_FILLING 3 /* from arrays to pinned memory */
#define N_RUNNING 5 /* DMA in, kernel, DMA out */
#define N_WRITING 4 /* from pinned memory to arrays */

_Static_assert(N_FILLING + N_RUNNING + N_WRITING <= N_SLOTS, "each has a slot");

/* ---- The buffers of slices ------------------------------------------------------------------- */

static const cuplug__staged_array *array_of(const pipeline *p, uint32_t k) {
  return &p->staged->arrays[k];
}

static int is_direct(const pipeline *p, uint32_t k) { return p->direct_mask >> k & 1; }

/* Of slice i. */
static uint64_t slice_rows(const pipeline *p, uint64_t i) {
  return cuplug__min(p->slice, p->staged->n_rows - i * p->slice);
}

/* Of slice i of array k; 0 for arrays that are not cut. */
static uint64_t slice_bytes(const pipeline *p, uint64_t i, uint32_t k) {
  const cuplug__staged_array *x = array_of(p, k);
  return x->rows == CUPLUG__DISTINCT_ROWS ? cuplug__staged_array_bytes(x, slice_rows(p, i)) : 0;
}

static uint64_t padding(const cuplug__staged_call *s) { return s->n_arrays * (uint64_t)ALIGNMENT; }

int cuplug__suits_slices(const cuplug__staged_call *s) {
  return s->n_rows >= SLICED_BYTES / s->row_bytes && s->n_rows >= MIN_SLICES &&
         s->row_bytes <= MAX_SLOT_BYTES - padding(s);
}

/* Pinned arrays whose rows follow each other. */
static uint64_t find_direct(const cuplug__staged_call *s) {
  uint64_t mask = 0;
  for (uint32_t k = 0; k < s->n_arrays; k++) {
    const cuplug__staged_array *x = &s->arrays[k];
    const uint64_t bytes = s->n_rows * x->bytes;
    if (x->rows == CUPLUG__DISTINCT_ROWS && x->is_known && cuplug__view_is_contiguous(&x->view) &&
        cuplug__is_pinned(x->view.data + cuplug__staged_array_place(x, s->first_row), bytes))
      mask |= (uint64_t)1 << k;
  }
  return mask;
}

/* The values that are known before there are channels. Small calls have few slices, so that each is
 * worth its launch, and few workers, so that waking them takes less time than they save. */
static void plan(pipeline *p) {
  const cuplug__staged_call *s = p->staged;
  const uint64_t part = s->n_rows * s->row_bytes / MIN_SLICES;
  p->direct_mask = find_direct(s);
  for (uint32_t k = 0; k < s->n_arrays; k++)
    if (s->arrays[k].rows == CUPLUG__DISTINCT_ROWS && !is_direct(p, k))
      p->buffered_bytes += s->arrays[k].bytes;
  p->slot_bytes = cuplug__min(part > MIN_SLOT_BYTES ? part : MIN_SLOT_BYTES, MAX_SLOT_BYTES);
  if (p->slot_bytes < s->row_bytes + padding(s)) p->slot_bytes = s->row_bytes + padding(s);
  p->slot_bytes = (p->slot_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  p->n_helpers = (int)cuplug__min(s->n_rows * p->buffered_bytes / CUPLUG__BYTES_OF_HELPER,
                                  CUPLUG__MAX_COPY_THREADS);
}

/* 0 where the channels have got small buffers only, and a row does not fit. */
static int measure(pipeline *p) {
  const cuplug__staged_call *s = p->staged;
  const uint64_t unit = ROWS_UNIT;
  for (int i = 0; i < N_CHANNELS && p->buffered_bytes; i++)
    p->slot_bytes = cuplug__min(p->slot_bytes,
                                p->channels[i]->pinned_bytes * CUPLUG__N_PINNED / SLOTS_OF_CHANNEL);
  const uint64_t most = (p->slot_bytes - padding(s)) / s->row_bytes;
  if (!most) return 0;
  p->slice = (s->n_rows - 1) / ((s->n_rows - 1) / most + 1) + 1;
  if (p->slice >= unit) p->slice = cuplug__min(most, p->slice + unit - 1) / unit * unit;
  p->n_slices = (s->n_rows - 1) / p->slice + 1;
  return 1;
}

static int acquire_channel(pipeline *p, int i) {
  const cuplug__run *run = p->staged->run;
  int status = cuplug__channel_acquire(run->device.id, &p->channels[i], run->error);
  if (status) return p->channels[i] = NULL, status;
  if (!p->buffered_bytes) return CUPLUG_OK;
  return cuplug__channel_pin(p->channels[i], SLOTS_OF_CHANNEL * p->slot_bytes, run->error);
}

/* Arrays that all slices read are transferred once, on the first channel; others wait for it. */
static int send_shared(pipeline *p) {
  const cuplug__run *run = p->staged->run;
  cuplug__channel *channel = p->channels[0];
  int status = CUPLUG_OK;
  for (uint32_t k = 0; k < p->staged->n_arrays && !status; k++) {
    const cuplug__staged_array *x = array_of(p, k);
    const uint64_t bytes = cuplug__staged_array_bytes(x, p->slice);
    if (!x->is_sent || x->rows == CUPLUG__DISTINCT_ROWS) continue;
    status =
        cuplug__device_allocate(run->device.id, bytes, channel->stream, &p->shared[k], run->error);
    if (!status)
      status = cuplug__transfer(channel, 0, &x->view, 0, p->shared[k], bytes, &p->staged->tracker,
                                run->error);
  }
  /* Slots share the pinned buffers with transfers in progress, and the other channels use the
   * memory of this one. */
  return status ? status : cuplug__stream_synchronize(channel->stream, run->error);
}

/* Offsets are for a slice of `slice` rows. */
static void divide_slots(pipeline *p) {
  uint64_t offset = 0;
  for (uint32_t k = 0; k < p->staged->n_arrays; k++) {
    p->offsets[k] = offset;
    offset += (slice_bytes(p, 0, k) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }
  for (int i = 0; i < N_SLOTS; i++) {
    slot *s = &p->slots[i];
    const int channel = i % N_CHANNELS, place = i / N_CHANNELS;
    s->channel = p->channels[channel];
    s->event = s->channel->events[place];
    s->fault = &s->channel->faults->records[place];
    if (s->channel->pinned) s->pinned = s->channel->pinned + place * p->slot_bytes;
    s->device = (char *)p->block + (uint64_t)i * p->slot_bytes;
  }
}

static int take_all(pipeline *p) {
  const cuplug__run *run = p->staged->run;
  int status = CUPLUG_OK;
  plan(p);
  for (int i = 0; i < N_CHANNELS && !status; i++) status = acquire_channel(p, i);
  if (status || !measure(p)) return status;
  status = cuplug__device_allocate(run->device.id, N_SLOTS * p->slot_bytes, p->channels[0]->stream,
                                   &p->block, run->error);
  if (!status) status = send_shared(p);
  if (!status) divide_slots(p);
  return status;
}

/* Releasing a channel waits for its stream: only then nothing writes to the fault records, or reads
 * the shared arrays. */
static void give(pipeline *p) {
  for (int i = N_CHANNELS - 1; i >= 0; i--) {
    if (!p->channels[i]) continue;
    for (uint32_t k = 0; i == 0 && k < p->staged->n_arrays; k++)
      cuplug__device_free(p->shared[k], p->channels[0]->stream, NULL);
    if (i == 0) cuplug__device_free(p->block, p->channels[0]->stream, NULL);
    cuplug__channel_release(p->channels[i]);
  }
}

/* ---- One slice, step by step ----------------------------------------------------------------- */

static slot *slot_of(pipeline *p, uint64_t i) { return &p->slots[i % N_SLOTS]; }

/* For transfers in one direction. */
static uint64_t bytes_of(const pipeline *p, uint64_t i, uint32_t k, int to_host) {
  const cuplug__staged_array *x = array_of(p, k);
  return (to_host ? x->is_received : x->is_sent) ? slice_bytes(p, i, k) : 0;
}

/* In the whole array. */
static uint64_t first_row_of(const pipeline *p, uint64_t i) {
  return p->staged->first_row + i * p->slice;
}

/* Of the slice's first byte in the view. */
static uint64_t place_of(const pipeline *p, uint64_t i, uint32_t k) {
  return cuplug__staged_array_place(array_of(p, k), first_row_of(p, i));
}

/* Where the DMA finds a slice of array k, or leaves it. */
static char *on_host(const pipeline *p, const slot *s, uint64_t i, uint32_t k) {
  return is_direct(p, k) ? array_of(p, k)->view.data + place_of(p, i, k)
                         : s->pinned + p->offsets[k];
}

/* Between arrays and pinned memory. */
static void begin_copies(pipeline *p, uint64_t i, int to_host) {
  slot *s = slot_of(p, i);
  for (uint32_t k = 0; k < p->staged->n_arrays; k++) {
    const uint64_t bytes = bytes_of(p, i, k, to_host);
    if (bytes && !is_direct(p, k))
      cuplug__host_copy_begin(&s->copies[k], to_host, &array_of(p, k)->view, place_of(p, i, k),
                              bytes, s->pinned + p->offsets[k], p->n_helpers);
  }
}

static void end_copies(pipeline *p, uint64_t i) {
  for (uint32_t k = 0; k < p->staged->n_arrays; k++)
    cuplug__host_copy_end(&slot_of(p, i)->copies[k]);
}

/* Between the host and the device. */
static int exchange(pipeline *p, uint64_t i, int to_host) {
  const slot *s = slot_of(p, i);
  int status = CUPLUG_OK;
  for (uint32_t k = 0; k < p->staged->n_arrays && !status; k++) {
    const uint64_t bytes = bytes_of(p, i, k, to_host);
    if (bytes)
      status = cuplug__driver_copy(to_host, on_host(p, s, i, k), s->device + p->offsets[k], bytes,
                                   s->channel->stream, p->staged->run->error);
  }
  return status;
}

static int call_entry(pipeline *p, uint64_t i) {
  const slot *s = slot_of(p, i);
  cuplug__run *run = p->staged->run;
  void *addresses[CUPLUG_MAX_ARGUMENTS];
  for (uint32_t k = 0; k < p->staged->n_arrays; k++)
    addresses[k] = p->shared[k] ? p->shared[k] : s->device + p->offsets[k];
  cuplug__staged_call_bind_rows(p->staged, slice_rows(p, i), addresses);
  run->stream = s->channel->stream;
  run->fault = s->fault;
  return cuplug__call_entry(run);
}

static int run_slice(pipeline *p, uint64_t i) {
  const cuplug__run *run = p->staged->run;
  const slot *s = slot_of(p, i);
  end_copies(p, i);
  int status = cuplug__prefix_operator_name(run, exchange(p, i, 0));
  if (!status) status = call_entry(p, i);
  if (status) return status;
  status = exchange(p, i, 1);
  if (!status)
    status =
        cuplug__cuda_check(run->error, cuplug__driver.cuEventRecord(s->event, s->channel->stream),
                           "copying to the host");
  return cuplug__prefix_operator_name(run, status);
}

static int begin_writing(pipeline *p, uint64_t i) {
  const cuplug__run *run = p->staged->run;
  const slot *s = slot_of(p, i);
  int code = cuplug__driver.cuEventSynchronize(s->event);
  if (code)
    return cuplug__prefix_operator_name(run,
                                        cuplug__cuda_fail(run->error, code, "waiting for a slice"));
  cuplug__staged_call_offset_fault(p->staged, s->fault, first_row_of(p, i));
  int status = cuplug__fault_take(s->fault, run->overload, run->error);
  if (!status) begin_copies(p, i, 1);
  return status;
}

static int finish(pipeline *p, uint64_t i) {
  uint64_t bytes = 0;
  end_copies(p, i);
  for (uint32_t k = 0; k < p->staged->n_arrays; k++)
    bytes += bytes_of(p, i, k, 0) + bytes_of(p, i, k, 1);
  return cuplug__progress_tracker_add(&p->staged->tracker, bytes, p->staged->run->error);
}

/* ---- All slices ------------------------------------------------------------------------------ */

/* Begins as much as may be under way before it waits for anything; after an error it waits for the
 * workers: the arrays are the caller's again. */
static int run_all(pipeline *p) {
  uint64_t n_filling = 0, n_launched = 0, n_back = 0, n_done = 0; /* so far */
  int status = CUPLUG_OK;
  while (!status && n_done < p->n_slices) {
    if (n_filling < p->n_slices && n_filling - n_launched < N_FILLING &&
        n_filling - n_done < N_SLOTS)
      begin_copies(p, n_filling++, 0);
    else if (n_launched < n_filling && n_launched - n_back < N_RUNNING)
      status = run_slice(p, n_launched++);
    else if (n_back < n_launched && n_back - n_done < N_WRITING)
      status = begin_writing(p, n_back++);
    else
      status = finish(p, n_done++);
  }
  for (uint64_t i = 0; i < N_SLOTS; i++) end_copies(p, i);
  return status;
}

/* Smaller ones come from the C library, which mostly has their pages. */
#define FRESH_BYTES ((uint64_t)2 << 20)

static void begin_pages(pipeline *p) {
  const cuplug__staged_call *s = p->staged;
  for (uint32_t k = s->run->frame->n_inputs; k < s->n_arrays; k++) {
    const cuplug__staged_array *x = &s->arrays[k];
    const uint64_t bytes = cuplug__staged_array_bytes(x, s->n_rows);
    if (bytes_of(p, 0, k, 1) && bytes >= FRESH_BYTES && !is_direct(p, k))
      cuplug__host_pages_begin(&p->pages[k], &x->view, place_of(p, 0, k), bytes);
  }
}

int cuplug__run_slices(cuplug__staged_call *s) {
  pipeline *p = calloc(1, sizeof *p); /* too large for a small stack */
  if (!p) return CUPLUG__NOT_RUN;
  p->staged = s;
  int status = cuplug__prefix_operator_name(s->run, take_all(p));
  if (status == CUPLUG_ERROR_MEMORY || (!status && !p->slice)) {
    cuplug__clear(s->run->error);
    status = CUPLUG__NOT_RUN;
  } else if (!status) {
    begin_pages(p);
    status = run_all(p);
    for (uint32_t k = 0; k < s->n_arrays; k++) cuplug__host_pages_end(&p->pages[k]);
  }
  give(p);
  free(p);
  return status;
}
