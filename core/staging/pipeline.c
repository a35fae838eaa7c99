/* SPDX-License-Identifier: Apache-2.0 */
#include "staging/pipeline.h"

#include "base/layout.h"
#include "cuda/fault.h"
#include "cuda/lane.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "entry/run.h"
#include "host/copies.h"
#include "staging/parcel.h"
#include "staging/transfer.h"

#define SLICED_BYTES ((uint64_t)1 << 20) /* less, of all arrays together, goes through at once */
#define MIN_SLICES 8
#define MIN_SLOT_BYTES ((uint64_t)512 << 10) /* smaller ones cost more than they overlap */
#define MAX_SLOT_BYTES ((uint64_t)8 << 20)
#define ROWS_UNIT \
  1024 /* slices are multiples where they can be: few bytes lie unaligned on the host */
#define ALIGNMENT 256 /* of arrays in a slot, as of memory from the driver */

/* A thread of the team more for each, as far as there are copies on the host. */
#define BYTES_OF_HELPER ((uint64_t)512 << 10)

_Static_assert(CUPLUG__SLOTS_OF_LANE <= CUPLUG__N_PINNED, "each slot has an event of its lane");

static uint64_t padding(const cuplug__shipment *s) { return s->n_parcels * (uint64_t)ALIGNMENT; }

int cuplug__pipeline_suits(const cuplug__shipment *s) {
  return s->n_rows >= SLICED_BYTES / s->row_bytes && s->n_rows >= MIN_SLICES &&
         s->row_bytes <= MAX_SLOT_BYTES - padding(s);
}

/* Pinned arrays whose rows follow each other. */
static uint64_t find_direct(const cuplug__shipment *s) {
  uint64_t mask = 0;
  for (uint32_t k = 0; k < s->n_parcels; k++) {
    const cuplug__parcel *x = &s->parcels[k];
    const uint64_t bytes = s->n_rows * x->bytes;
    if (x->rows == CUPLUG__OWN_ROWS && x->is_known && cuplug__view_is_contiguous(&x->view) &&
        cuplug__is_pinned(x->view.data + cuplug__parcel_place(x, s->first_row), bytes))
      mask |= (uint64_t)1 << k;
  }
  return mask;
}

/* What is known before there are lanes. Small calls have few slices, so that each is worth its
 * launch, and few helpers, so that waking them takes less than they do. */
static void plan(cuplug__pipeline *p) {
  const cuplug__shipment *s = p->shipment;
  const uint64_t part = s->n_rows * s->row_bytes / MIN_SLICES;
  p->direct_mask = find_direct(s);
  for (uint32_t k = 0; k < s->n_parcels; k++)
    if (s->parcels[k].rows == CUPLUG__OWN_ROWS && !cuplug__is_direct(p, k))
      p->buffered_bytes += s->parcels[k].bytes;
  p->slot_bytes = cuplug__least(part > MIN_SLOT_BYTES ? part : MIN_SLOT_BYTES, MAX_SLOT_BYTES);
  if (p->slot_bytes < s->row_bytes + padding(s)) p->slot_bytes = s->row_bytes + padding(s);
  p->slot_bytes = (p->slot_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  p->n_helpers =
      (int)cuplug__least(s->n_rows * p->buffered_bytes / BYTES_OF_HELPER, CUPLUG__MAX_COPY_THREADS);
}

/* 0 where the lanes have got small buffers only, and a row does not fit. */
static int measure(cuplug__pipeline *p) {
  const cuplug__shipment *s = p->shipment;
  const uint64_t unit = ROWS_UNIT;
  for (int i = 0; i < CUPLUG__N_LANES && p->buffered_bytes; i++)
    p->slot_bytes = cuplug__least(p->slot_bytes, p->lanes[i]->pinned_bytes * CUPLUG__N_PINNED /
                                                     CUPLUG__SLOTS_OF_LANE);
  const uint64_t most = (p->slot_bytes - padding(s)) / s->row_bytes;
  if (!most) return 0;
  p->slice = (s->n_rows - 1) / ((s->n_rows - 1) / most + 1) + 1;
  if (p->slice >= unit) p->slice = cuplug__least(most, p->slice + unit - 1) / unit * unit;
  p->n_slices = (s->n_rows - 1) / p->slice + 1;
  return 1;
}

static int take_lane(cuplug__pipeline *p, int i) {
  const cuplug__run *run = p->shipment->run;
  int status = cuplug__lane_take(run->device.id, &p->lanes[i], run->error);
  if (status) return p->lanes[i] = NULL, status;
  if (!p->buffered_bytes) return CUPLUG_OK;
  return cuplug__lane_pin(p->lanes[i], CUPLUG__SLOTS_OF_LANE * p->slot_bytes, run->error);
}

static int allocate_slots(cuplug__pipeline *p) {
  const cuplug__run *run = p->shipment->run;
  return cuplug__device_allocate(run->device.id, CUPLUG__N_SLOTS * p->slot_bytes,
                                 p->lanes[0]->stream, &p->block, run->error);
}

/* Arrays that all slices read travel once, on the first lane; the others wait for it. */
static int send_shared(cuplug__pipeline *p) {
  const cuplug__run *run = p->shipment->run;
  cuplug__lane *lane = p->lanes[0];
  int status = CUPLUG_OK;
  for (uint32_t k = 0; k < p->shipment->n_parcels && !status; k++) {
    const cuplug__parcel *x = &p->shipment->parcels[k];
    const uint64_t bytes = cuplug__parcel_bytes(x, p->slice);
    if (!x->is_sent || x->rows == CUPLUG__OWN_ROWS) continue;
    status =
        cuplug__device_allocate(run->device.id, bytes, lane->stream, &p->shared[k], run->error);
    if (!status)
      status = cuplug__transfer(lane, 0, &x->view, 0, p->shared[k], bytes, p->watch, run->error);
  }
  /* Slots share the pinned buffers with what is still on its way from them, and the other lanes the
   * memory of this one. */
  return status ? status : cuplug__stream_synchronize(lane->stream, run->error);
}

static int take_faults(cuplug__pipeline *p) {
  const cuplug__run *run = p->shipment->run;
  int status = CUPLUG_OK;
  for (uint64_t i = 0; i < cuplug__least(CUPLUG__N_SLOTS, p->n_slices) && !status; i++) {
    cuplug_fault **fault = &p->slots[i].fault;
    status = cuplug__fault_private(fault, run->error);
    if (!status) cuplug__fault_rename(*fault, &run->overload->names);
  }
  return status;
}

/* Offsets are those of a slice of `slice` rows. */
static void divide_slots(cuplug__pipeline *p) {
  uint64_t offset = 0;
  for (uint32_t k = 0; k < p->shipment->n_parcels; k++) {
    p->offsets[k] = offset;
    offset += (cuplug__slice_bytes(p, 0, k) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }
  for (int i = 0; i < CUPLUG__N_SLOTS; i++) {
    cuplug__slot *s = &p->slots[i];
    const int lane = i % CUPLUG__N_LANES, place = i / CUPLUG__N_LANES;
    s->lane = p->lanes[lane];
    s->event = s->lane->events[place];
    if (s->lane->pinned) s->pinned = s->lane->pinned + place * p->slot_bytes;
    s->device = (char *)p->block + (uint64_t)i * p->slot_bytes;
  }
}

static int take_all(cuplug__pipeline *p) {
  int status = CUPLUG_OK;
  plan(p);
  for (int i = 0; i < CUPLUG__N_LANES && !status; i++) status = take_lane(p, i);
  if (status || !measure(p)) return status;
  status = allocate_slots(p);
  if (!status) status = send_shared(p);
  if (!status) status = take_faults(p);
  if (!status) divide_slots(p);
  return status;
}

int cuplug__pipeline_take(cuplug__pipeline *p, int *fits) {
  int status = take_all(p);
  *fits = status ? status != CUPLUG_ERROR_MEMORY : p->slice > 0;
  return status;
}

/* Giving a lane waits for its stream: only then nothing writes to the fault records, or reads what
 * is shared. */
void cuplug__pipeline_give(cuplug__pipeline *p) {
  for (int i = CUPLUG__N_LANES - 1; i >= 0; i--) {
    if (!p->lanes[i]) continue;
    for (uint32_t k = 0; i == 0 && k < p->shipment->n_parcels; k++)
      cuplug__device_free(p->shared[k], p->lanes[0]->stream, NULL);
    if (i == 0) cuplug__device_free(p->block, p->lanes[0]->stream, NULL);
    cuplug__lane_give(p->lanes[i]);
  }
  for (int i = 0; i < CUPLUG__N_SLOTS; i++)
    if (p->slots[i].fault) cuplug__fault_release(p->slots[i].fault);
}
