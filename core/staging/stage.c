/* SPDX-License-Identifier: Apache-2.0 */
/* Host arrays through the GPU: described, then in slices where that pays, or whole, or in parts. */
#include "staging/stage.h"

#include "base/status.h"
#include "entry/run.h"
#include "host/watch.h"
#include "staging/packed.h"
#include "staging/parcel.h"
#include "staging/parts.h"
#include "staging/slices.h"
#include "staging/turns.h"

#include <stdlib.h>

static int run_slices(cuplug__shipment *s, cuplug__watch *watch, int *is_done) {
  const int32_t device = s->run->device.id;
  int status = cuplug__turn_take(device, watch, s->run->error);
  *is_done = status != CUPLUG_OK;
  if (status) return status;
  status = cuplug__run_slices(s, watch, is_done);
  cuplug__turn_give(device);
  return status;
}

/* Tries one way after the other. */
static int run_shipment(cuplug__shipment *s, cuplug__watch *watch) {
  cuplug__run *run = s->run;
  int is_done = 0, status = CUPLUG_OK;
  run->frame->staged = 1;
  if (!s->is_share) status = cuplug__run_packed(s, watch, &is_done);
  if (!is_done && (s->is_share || cuplug__shipment_rows(s)) && cuplug__is_worth_slicing(s)) {
    cuplug__clear(run->error);
    status = run_slices(s, watch, &is_done);
  }
  if (!is_done) {
    cuplug__clear(run->error);
    status = cuplug__run_parts(s, watch);
  }
  return status ? status : cuplug__watch_end(watch, run->error);
}

int cuplug__run_staged(cuplug__run *run) {
  cuplug__watch watch;
  cuplug__shipment *shipment = cuplug__shipment_new(run);
  if (!shipment)
    return cuplug__named(run, cuplug__no_memory(run->error, "describing a call's arrays"));
  cuplug__watch_start(&watch, run->frame->progress, run->frame->user, cuplug__staged_bytes(run));
  const int status = run_shipment(shipment, &watch);
  free(shipment);
  return status;
}

int cuplug__run_share(cuplug__shipment *s, uint64_t first_row, uint64_t n_rows) {
  cuplug__watch watch;
  cuplug__watch_start(&watch, s->run->frame->progress, s->run->frame->user, n_rows * s->row_bytes);
  s->is_share = 1;
  s->first_row = first_row;
  s->n_rows = n_rows;
  return run_shipment(s, &watch);
}
