/* SPDX-License-Identifier: Apache-2.0 */
/* Host arrays through the GPU: described, then in slices where that pays, or whole, or in parts. */
#include "staging/stage.h"

#include "base/layout.h"
#include "base/status.h"
#include "entry/run.h"
#include "host/watch.h"
#include "staging/parcel.h"
#include "staging/parts.h"
#include "staging/slices.h"

#include <stdlib.h>

static uint64_t total_bytes(const cuplug__run *run) {
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

int cuplug__run_staged(cuplug__run *run) {
  cuplug_frame *f = run->frame;
  cuplug__watch watch;
  int is_done = 0, status = CUPLUG_OK;
  cuplug__shipment *shipment = cuplug__shipment_new(run);
  if (!shipment)
    return cuplug__named(run, cuplug__no_memory(run->error, "describing a call's arrays"));
  const uint64_t bytes = total_bytes(run);
  cuplug__watch_start(&watch, f->progress, f->user, bytes);
  f->staged = 1;
  if (bytes >= CUPLUG__SLICED_BYTES && cuplug__shipment_rows(shipment) &&
      cuplug__is_worth_slicing(shipment))
    status = cuplug__run_slices(shipment, &watch, &is_done);
  if (!is_done) {
    cuplug__clear(run->error);
    status = cuplug__run_parts(shipment, &watch);
  }
  free(shipment);
  return status ? status : cuplug__watch_end(&watch, run->error);
}
