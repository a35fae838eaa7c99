/* SPDX-License-Identifier: Apache-2.0 */
#include "staging/slices.h"

#include "cuda/driver.h"
#include "cuda/error.h"
#include "cuda/fault.h"
#include "entry/entry.h"
#include "entry/run.h"
#include "host/copies.h"
#include "host/watch.h"
#include "staging/parcel.h"
#include "staging/pipeline.h"
#include "staging/transfer.h"

#include <stdlib.h>

/* Slices at once, at most. */
#define N_FILLING 3 /* from arrays to pinned memory */
#define N_RUNNING 5 /* DMA in, kernel, DMA out */
#define N_WRITING 4 /* from pinned memory to arrays */

_Static_assert(N_FILLING + N_RUNNING + N_WRITING <= CUPLUG__N_SLOTS, "each has a slot");

/* ---- One slice, step by step ----------------------------------------------------------------- */

static cuplug__slot *slot_of(cuplug__pipeline *p, uint64_t i) {
  return &p->slots[i % CUPLUG__N_SLOTS];
}

static const cuplug__parcel *parcel_of(const cuplug__pipeline *p, uint32_t k) {
  return &p->shipment->parcels[k];
}

/* That travel in one direction. */
static uint64_t bytes_of(const cuplug__pipeline *p, uint64_t i, uint32_t k, int to_host) {
  const cuplug__parcel *x = parcel_of(p, k);
  return (to_host ? x->is_received : x->is_sent) ? cuplug__slice_bytes(p, i, k) : 0;
}

/* In the whole array. */
static uint64_t first_row_of(const cuplug__pipeline *p, uint64_t i) {
  return p->shipment->first_row + i * p->slice;
}

/* Of the slice's first byte in the view. */
static uint64_t place_of(const cuplug__pipeline *p, uint64_t i, uint32_t k) {
  return cuplug__parcel_place(parcel_of(p, k), first_row_of(p, i));
}

/* Where the DMA finds a slice of array k, or leaves it. */
static char *on_host(const cuplug__pipeline *p, const cuplug__slot *s, uint64_t i, uint32_t k) {
  return cuplug__is_direct(p, k) ? parcel_of(p, k)->view.data + place_of(p, i, k)
                                 : s->pinned + p->offsets[k];
}

/* Between arrays and pinned memory. */
static void begin_copies(cuplug__pipeline *p, uint64_t i, int to_host) {
  cuplug__slot *s = slot_of(p, i);
  for (uint32_t k = 0; k < p->shipment->n_parcels; k++) {
    const uint64_t bytes = bytes_of(p, i, k, to_host);
    if (bytes && !cuplug__is_direct(p, k))
      cuplug__host_copy_begin(&s->copies[k], to_host, &parcel_of(p, k)->view, place_of(p, i, k),
                              bytes, s->pinned + p->offsets[k], p->n_helpers);
  }
}

static void end_copies(cuplug__pipeline *p, uint64_t i) {
  for (uint32_t k = 0; k < p->shipment->n_parcels; k++)
    cuplug__host_copy_end(&slot_of(p, i)->copies[k]);
}

/* Between the host and the device. */
static int exchange(cuplug__pipeline *p, uint64_t i, int to_host) {
  const cuplug__slot *s = slot_of(p, i);
  int status = CUPLUG_OK;
  for (uint32_t k = 0; k < p->shipment->n_parcels && !status; k++) {
    const uint64_t bytes = bytes_of(p, i, k, to_host);
    if (bytes)
      status = cuplug__driver_copy(to_host, on_host(p, s, i, k), s->device + p->offsets[k], bytes,
                                   s->lane->stream, p->shipment->run->error);
  }
  return status;
}

static int call_entry(cuplug__pipeline *p, uint64_t i) {
  const cuplug__slot *s = slot_of(p, i);
  cuplug__run *run = p->shipment->run;
  void *addresses[CUPLUG_MAX_ARGUMENTS];
  for (uint32_t k = 0; k < p->shipment->n_parcels; k++)
    addresses[k] = p->shared[k] ? p->shared[k] : s->device + p->offsets[k];
  cuplug__shipment_show(p->shipment, cuplug__slice_rows(p, i), addresses);
  run->stream = s->lane->stream;
  run->fault = s->fault;
  return cuplug__call_entry(run);
}

static int run_slice(cuplug__pipeline *p, uint64_t i) {
  const cuplug__run *run = p->shipment->run;
  const cuplug__slot *s = slot_of(p, i);
  end_copies(p, i);
  int status = cuplug__named(run, exchange(p, i, 0));
  if (!status) status = call_entry(p, i);
  if (status) return status;
  status = exchange(p, i, 1);
  if (!status)
    status = cuplug__cuda_check(run->error, cuplug__driver.cuEventRecord(s->event, s->lane->stream),
                                "copying to the host");
  return cuplug__named(run, status);
}

static int begin_writing(cuplug__pipeline *p, uint64_t i) {
  const cuplug__run *run = p->shipment->run;
  const cuplug__slot *s = slot_of(p, i);
  int code = cuplug__driver.cuEventSynchronize(s->event);
  if (code) return cuplug__named(run, cuplug__cuda_fail(run->error, code, "waiting for a slice"));
  cuplug__shipment_shift(p->shipment, s->fault, first_row_of(p, i));
  int status = cuplug__fault_take(s->fault, run->error);
  if (!status) begin_copies(p, i, 1);
  return status;
}

static int finish(cuplug__pipeline *p, uint64_t i) {
  uint64_t bytes = 0;
  end_copies(p, i);
  for (uint32_t k = 0; k < p->shipment->n_parcels; k++)
    bytes += bytes_of(p, i, k, 0) + bytes_of(p, i, k, 1);
  return cuplug__watch_add(p->watch, bytes, p->shipment->run->error);
}

/* ---- All slices ------------------------------------------------------------------------------ */

/* Begins as much as may be under way before it waits for anything; after an error it waits for the
 * workers: the arrays are the caller's again. */
static int run_all(cuplug__pipeline *p) {
  uint64_t n_filling = 0, n_launched = 0, n_back = 0, n_done = 0; /* so far */
  int status = CUPLUG_OK;
  while (!status && n_done < p->n_slices) {
    if (n_filling < p->n_slices && n_filling - n_launched < N_FILLING &&
        n_filling - n_done < CUPLUG__N_SLOTS)
      begin_copies(p, n_filling++, 0);
    else if (n_launched < n_filling && n_launched - n_back < N_RUNNING)
      status = run_slice(p, n_launched++);
    else if (n_back < n_launched && n_back - n_done < N_WRITING)
      status = begin_writing(p, n_back++);
    else
      status = finish(p, n_done++);
  }
  for (uint64_t i = 0; i < CUPLUG__N_SLOTS; i++) end_copies(p, i);
  return status;
}

/* Smaller ones come from the C library, which mostly has their pages. */
#define FRESH_BYTES ((uint64_t)2 << 20)

static void begin_pages(cuplug__pipeline *p) {
  const cuplug__shipment *s = p->shipment;
  for (uint32_t k = s->run->frame->n_inputs; k < s->n_parcels; k++) {
    const cuplug__parcel *x = &s->parcels[k];
    const uint64_t bytes = cuplug__parcel_bytes(x, s->n_rows);
    if (bytes_of(p, 0, k, 1) && bytes >= FRESH_BYTES && !cuplug__is_direct(p, k))
      cuplug__host_pages_begin(&p->pages[k], x->view.data + place_of(p, 0, k), bytes);
  }
}

static void end_pages(cuplug__pipeline *p) {
  for (uint32_t k = 0; k < p->shipment->n_parcels; k++) cuplug__host_pages_end(&p->pages[k]);
}

int cuplug__run_slices(cuplug__shipment *s, cuplug__watch *watch, int *fits) {
  cuplug__pipeline *p = calloc(1, sizeof *p); /* too large for a small stack */
  *fits = 0;
  if (!p) return CUPLUG_OK;
  p->shipment = s;
  p->watch = watch;
  int status = cuplug__named(s->run, cuplug__pipeline_take(p, fits));
  if (*fits && !status) {
    begin_pages(p);
    status = run_all(p);
    end_pages(p);
  }
  cuplug__pipeline_give(p);
  free(p);
  return *fits ? status : CUPLUG_OK;
}
