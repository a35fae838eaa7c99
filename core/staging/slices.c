/* SPDX-License-Identifier: Apache-2.0 */
#include "staging/slices.h"

#include "base/layout.h"
#include "cuda/driver.h"
#include "cuda/error.h"
#include "cuda/fault.h"
#include "cuda/lane.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "entry/entry.h"
#include "entry/run.h"
#include "host/copies.h"
#include "host/watch.h"
#include "staging/parcel.h"
#include "staging/transfer.h"

#include <stdlib.h>

#define MIN_SLICES 8
#define ROWS_UNIT \
  1024 /* slices are multiples where they can be: few bytes lie unaligned on the host */
#define ALIGNMENT 256 /* of arrays in a slot, as of memory from the driver */

/* Slices on their way: a slot each. Slices in turn go to the lanes in turn. */
#define N_LANES 3
#define SLOTS_OF_LANE 4
#define N_SLOTS (N_LANES * SLOTS_OF_LANE)
#define N_FILLING 3 /* from arrays to pinned memory; at most, like the next */
#define N_RUNNING 5 /* DMA in, kernel, DMA out */
#define N_WRITING 4 /* from pinned memory to arrays */

_Static_assert(N_FILLING + N_RUNNING + N_WRITING <= N_SLOTS, "each has a slot");
_Static_assert(SLOTS_OF_LANE <= CUPLUG__N_PINNED, "each slot has an event of its lane");

/* Where a slice lies, array behind array, in pinned and alike in device memory. */
typedef struct slot {
  cuplug__lane *lane;
  void *event; /* the slice is back in pinned memory */
  char *pinned;
  char *device;
  cuplug_fault *fault;
  cuplug__host_copy copies[CUPLUG_MAX_ARGUMENTS];
} slot;

typedef struct pipeline {
  cuplug__shipment *shipment;
  cuplug__watch *watch;
  cuplug__lane *lanes[N_LANES];
  void *blocks[N_LANES]; /* device memory */
  slot slots[N_SLOTS];
  void *shared[CUPLUG_MAX_ARGUMENTS]; /* device memory of what is not cut; lane 0's */
  uint64_t slot_bytes, n_slices;
  uint64_t slice; /* rows of each slice but the last */
  uint64_t offsets[CUPLUG_MAX_ARGUMENTS];
} pipeline;

static uint64_t padding(const cuplug__shipment *s) { return s->n_parcels * (uint64_t)ALIGNMENT; }

int cuplug__is_worth_slicing(const cuplug__shipment *s) {
  const uint64_t slot_bytes = CUPLUG__N_PINNED * CUPLUG__PINNED_LARGE / SLOTS_OF_LANE;
  return s->n_rows >= CUPLUG__SLICED_BYTES / s->row_bytes && s->n_rows >= MIN_SLICES &&
         s->row_bytes <= slot_bytes - padding(s);
}

/* ---- One slice, step by step ----------------------------------------------------------------- */

static slot *slot_of(pipeline *p, uint64_t i) { return &p->slots[i % N_SLOTS]; }

static uint64_t n_rows_of(const pipeline *p, uint64_t i) {
  return cuplug__least(p->slice, p->shipment->n_rows - i * p->slice);
}

static const cuplug__parcel *parcel_of(const pipeline *p, uint32_t k) {
  return &p->shipment->parcels[k];
}

/* Of slice i of array k; 0 for arrays that are not cut. */
static uint64_t bytes_of(const pipeline *p, uint64_t i, uint32_t k) {
  const cuplug__parcel *x = parcel_of(p, k);
  return x->rows == CUPLUG__OWN_ROWS ? cuplug__parcel_bytes(x, n_rows_of(p, i)) : 0;
}

static uint64_t bytes_there(const pipeline *p, uint64_t i, uint32_t k) {
  return parcel_of(p, k)->is_sent ? bytes_of(p, i, k) : 0;
}

static uint64_t bytes_back(const pipeline *p, uint64_t i, uint32_t k) {
  return parcel_of(p, k)->is_received ? bytes_of(p, i, k) : 0;
}

/* Of the slice's first byte in the view. */
static uint64_t place_of(const pipeline *p, uint64_t i, uint32_t k) {
  return cuplug__parcel_place(parcel_of(p, k), i * p->slice);
}

static void begin_filling(pipeline *p, uint64_t i) {
  slot *s = slot_of(p, i);
  for (uint32_t k = 0; k < p->shipment->n_parcels; k++) {
    const uint64_t bytes = bytes_there(p, i, k);
    if (bytes)
      cuplug__host_copy_read(&s->copies[k], &parcel_of(p, k)->view, place_of(p, i, k), bytes,
                             s->pinned + p->offsets[k], CUPLUG__MAX_COPY_THREADS);
  }
}

static void end_copies(pipeline *p, uint64_t i) {
  for (uint32_t k = 0; k < p->shipment->n_parcels; k++)
    cuplug__host_copy_end(&slot_of(p, i)->copies[k]);
}

static int send(pipeline *p, uint64_t i) {
  const slot *s = slot_of(p, i);
  int code = 0;
  for (uint32_t k = 0; k < p->shipment->n_parcels && !code; k++) {
    const uint64_t bytes = bytes_there(p, i, k);
    if (bytes)
      code = cuplug__driver.cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)s->device + p->offsets[k],
                                              s->pinned + p->offsets[k], bytes, s->lane->stream);
  }
  return cuplug__cuda_check(p->shipment->run->error, code, "copying to the device");
}

static int call_entry(pipeline *p, uint64_t i) {
  const slot *s = slot_of(p, i);
  cuplug__run *run = p->shipment->run;
  void *addresses[CUPLUG_MAX_ARGUMENTS];
  for (uint32_t k = 0; k < p->shipment->n_parcels; k++)
    addresses[k] = p->shared[k] ? p->shared[k] : s->device + p->offsets[k];
  cuplug__shipment_show(p->shipment, n_rows_of(p, i), addresses);
  run->stream = s->lane->stream;
  run->fault = s->fault;
  return cuplug__call_entry(run);
}

static int request(pipeline *p, uint64_t i) {
  const slot *s = slot_of(p, i);
  int code = 0;
  for (uint32_t k = 0; k < p->shipment->n_parcels && !code; k++) {
    const uint64_t bytes = bytes_back(p, i, k);
    if (bytes)
      code = cuplug__driver.cuMemcpyDtoHAsync(s->pinned + p->offsets[k],
                                              (CUdeviceptr)(uintptr_t)s->device + p->offsets[k],
                                              bytes, s->lane->stream);
  }
  if (!code) code = cuplug__driver.cuEventRecord(s->event, s->lane->stream);
  return cuplug__cuda_check(p->shipment->run->error, code, "copying to the host");
}

static int run_slice(pipeline *p, uint64_t i) {
  const cuplug__run *run = p->shipment->run;
  end_copies(p, i);
  int status = cuplug__named(run, send(p, i));
  if (!status) status = call_entry(p, i);
  return status ? status : cuplug__named(run, request(p, i));
}

static int begin_writing(pipeline *p, uint64_t i) {
  const cuplug__run *run = p->shipment->run;
  slot *s = slot_of(p, i);
  int code = cuplug__driver.cuEventSynchronize(s->event);
  if (code) return cuplug__named(run, cuplug__cuda_fail(run->error, code, "waiting for a slice"));
  cuplug__shipment_shift(p->shipment, s->fault, i * p->slice);
  int status = cuplug__fault_take(s->fault, run->error);
  if (status) return status;
  for (uint32_t k = 0; k < p->shipment->n_parcels; k++) {
    const uint64_t bytes = bytes_back(p, i, k);
    if (bytes)
      cuplug__host_copy_write(&s->copies[k], &parcel_of(p, k)->view, place_of(p, i, k), bytes,
                              s->pinned + p->offsets[k], CUPLUG__MAX_COPY_THREADS);
  }
  return CUPLUG_OK;
}

static int finish(pipeline *p, uint64_t i) {
  uint64_t bytes = 0;
  end_copies(p, i);
  for (uint32_t k = 0; k < p->shipment->n_parcels; k++)
    bytes += bytes_there(p, i, k) + bytes_back(p, i, k);
  return cuplug__watch_add(p->watch, bytes, p->shipment->run->error);
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
      begin_filling(p, n_filling++);
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

/* Offsets are those of a slice of `slice` rows. */
static void divide_slots(pipeline *p) {
  uint64_t offset = 0;
  for (uint32_t k = 0; k < p->shipment->n_parcels; k++) {
    p->offsets[k] = offset;
    offset += (bytes_of(p, 0, k) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }
  for (int i = 0; i < N_SLOTS; i++) {
    slot *s = &p->slots[i];
    const int lane = i % N_LANES, place = i / N_LANES;
    s->lane = p->lanes[lane];
    s->event = s->lane->events[place];
    s->pinned = s->lane->pinned + place * p->slot_bytes;
    s->device = (char *)p->blocks[lane] + place * p->slot_bytes;
  }
}

/* 0 where the lanes have got small buffers only, and a row does not fit. */
static int measure(pipeline *p) {
  const cuplug__shipment *s = p->shipment;
  const uint64_t unit = ROWS_UNIT;
  p->slot_bytes = UINT64_MAX;
  for (int i = 0; i < N_LANES; i++)
    p->slot_bytes = cuplug__least(p->slot_bytes, p->lanes[i]->pinned_bytes);
  p->slot_bytes *= CUPLUG__N_PINNED / SLOTS_OF_LANE;
  uint64_t most = (p->slot_bytes - padding(s)) / s->row_bytes;
  p->slice = cuplug__least(most, (s->n_rows - 1) / MIN_SLICES + 1);
  if (p->slice >= unit) p->slice = cuplug__least(most, p->slice + unit - 1) / unit * unit;
  if (p->slice) p->n_slices = (s->n_rows - 1) / p->slice + 1;
  return p->slice > 0;
}

static int take_lane(pipeline *p, int i) {
  const cuplug__run *run = p->shipment->run;
  int status = cuplug__lane_take(run->device.id, &p->lanes[i], run->error);
  if (status) return p->lanes[i] = NULL, status;
  return cuplug__lane_pin(p->lanes[i], UINT64_MAX, run->error);
}

static int allocate_slots(pipeline *p) {
  const cuplug__run *run = p->shipment->run;
  int status = CUPLUG_OK;
  for (int i = 0; i < N_LANES && !status; i++)
    status = cuplug__device_allocate(run->device.id, SLOTS_OF_LANE * p->slot_bytes,
                                     p->lanes[i]->stream, &p->blocks[i], run->error);
  return status;
}

/* Arrays that all slices read travel once, on the first lane; the others wait for it. */
static int send_shared(pipeline *p) {
  const cuplug__run *run = p->shipment->run;
  cuplug__lane *lane = p->lanes[0];
  int status = CUPLUG_OK;
  for (uint32_t k = 0; k < p->shipment->n_parcels && !status; k++) {
    const cuplug__parcel *x = parcel_of(p, k);
    const uint64_t bytes = cuplug__parcel_bytes(x, p->slice);
    if (!x->is_sent || x->rows == CUPLUG__OWN_ROWS) continue;
    status =
        cuplug__device_allocate(run->device.id, bytes, lane->stream, &p->shared[k], run->error);
    if (!status)
      status = cuplug__to_device(lane, p->shared[k], &x->view, 0, bytes, p->watch, run->error);
  }
  /* Slots share the pinned buffers with what is still on its way from them. */
  return status ? status : cuplug__stream_synchronize(lane->stream, run->error);
}

static int take_faults(pipeline *p) {
  const cuplug__run *run = p->shipment->run;
  int status = CUPLUG_OK;
  for (int i = 0; i < N_SLOTS && !status; i++) {
    cuplug_fault **fault = &p->slots[i].fault;
    status = cuplug__fault_private(fault, run->error);
    if (!status) cuplug__fault_rename(*fault, &run->overload->names);
  }
  return status;
}

static int take_all(pipeline *p) {
  int status = CUPLUG_OK;
  for (int i = 0; i < N_LANES && !status; i++) status = take_lane(p, i);
  if (status || !measure(p)) return status;
  status = allocate_slots(p);
  if (!status) status = send_shared(p);
  return status ? status : take_faults(p);
}

/* Giving a lane waits for its stream: only then nothing writes to the fault records, or reads what
 * is shared. */
static void give_all(pipeline *p) {
  for (int i = N_LANES - 1; i >= 0; i--) {
    if (!p->lanes[i]) continue;
    for (uint32_t k = 0; i == 0 && k < p->shipment->n_parcels; k++)
      cuplug__device_free(p->shared[k], p->lanes[0]->stream, NULL);
    cuplug__device_free(p->blocks[i], p->lanes[i]->stream, NULL);
    cuplug__lane_give(p->lanes[i]);
  }
  for (int i = 0; i < N_SLOTS; i++)
    if (p->slots[i].fault) cuplug__fault_release(p->slots[i].fault);
}

int cuplug__run_slices(cuplug__shipment *s, cuplug__watch *watch, int *fits) {
  pipeline *p = calloc(1, sizeof *p); /* too large for a small stack */
  *fits = 0;
  if (!p) return CUPLUG_OK;
  p->shipment = s;
  p->watch = watch;
  int status = cuplug__named(s->run, take_all(p));
  *fits = status ? status != CUPLUG_ERROR_MEMORY : p->slice > 0;
  if (*fits && !status) {
    divide_slots(p);
    status = run_all(p);
  }
  give_all(p);
  free(p);
  return *fits ? status : CUPLUG_OK;
}
