/* SPDX-License-Identifier: Apache-2.0 */
/* Host arrays through the GPU: described, then in slices where that pays, or whole, or in parts. */
#include "staging/stage.h"

#include "base/layout.h"
#include "base/status.h"
#include "entry/run.h"
#include "host/watch.h"
#include "staging/packed.h"
#include "staging/parcel.h"
#include "staging/parts.h"
#include "staging/slices.h"
#include "staging/turns.h"

#include <stdlib.h>

uint64_t cuplug__staged_bytes(const cuplug__run *run) {
  const cuplug_frame *f = run->frame;
  uint64_t bytes = 0;
  for (uint32_t k = 0; k < f->n_tensors; k++) {
    const cuplug_tensor *x = &f->tensors[k];
    if (x->ndim >= 0 && !cuplug__has_unknown(x))
      bytes +=
          (uint64_t)cuplug__n_bytes(x) * (uint64_t)((k < f->n_inputs) + cuplug__is_written(run, k));
  }
  return bytes;
}

static int run_slices(cuplug__shipment *s, cuplug__watch *watch, int *is_done) {
  const int32_t device = s->run->device.id;
  int status = cuplug__turn_take(device, watch, s->run->error);
  *is_done = status != CUPLUG_OK;
  if (status) return status;
  status = cuplug__run_slices(s, watch, is_done);
  cuplug__turn_give(device);
  return status;
}

static int run_shipment(cuplug__shipment *s, int is_sliced, cuplug__watch *watch) {
  cuplug__run *run = s->run;
  int is_done = 0, status = CUPLUG_OK;
  run->frame->staged = 1;
  if (is_sliced)
    status = run_slices(s, watch, &is_done);
  else if (!s->is_share)
    status = cuplug__run_packed(s, watch, &is_done);
  if (!is_done) {
    cuplug__clear(run->error);
    status = cuplug__run_parts(s, watch);
  }
  return status ? status : cuplug__watch_end(watch, run->error);
}

int cuplug__run_staged(cuplug__run *run) {
  const uint64_t bytes = cuplug__staged_bytes(run);
  cuplug__watch watch;
  cuplug__shipment *shipment = cuplug__shipment_new(run);
  if (!shipment)
    return cuplug__named(run, cuplug__no_memory(run->error, "describing a call's arrays"));
  cuplug__watch_start(&watch, run->frame->progress, run->frame->user, bytes);
  const int is_sliced = bytes >= CUPLUG__SLICED_BYTES && cuplug__shipment_rows(shipment) &&
                        cuplug__is_worth_slicing(shipment);
  const int status = run_shipment(shipment, is_sliced, &watch);
  free(shipment);
  return status;
}

int cuplug__run_share(cuplug__shipment *s, uint64_t first_row, uint64_t n_rows) {
  cuplug__watch watch;
  cuplug__watch_start(&watch, s->run->frame->progress, s->run->frame->user, n_rows * s->row_bytes);
  s->is_share = 1;
  s->first_row = first_row;
  s->n_rows = n_rows;
  return run_shipment(s, cuplug__is_worth_slicing(s), &watch);
}
