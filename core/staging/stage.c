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
  if (!is_done && (s->is_share || cuplug__shipment_rows(s)) && cuplug__suits_slices(s)) {
    cuplug__clear(run->error);
    status = run_slices(s, watch, &is_done);
  }
  if (!is_done) {
    cuplug__clear(run->error);
    status = cuplug__run_parts(s, watch);
  }
  return status ? status : cuplug__watch_end(watch, run->error);
}

int cuplug__run_staged(cuplug__run *run, uint64_t first_row, uint64_t n_rows) {
  cuplug__watch watch;
  cuplug__shipment *s = cuplug__shipment_new(run);
  if (!s) return CUPLUG_ERROR_MEMORY;
  s->is_share = n_rows > 0;
  if (s->is_share) {
    cuplug__shipment_rows(s);
    s->first_row = first_row;
    s->n_rows = n_rows;
  }
  cuplug__watch_start(&watch, run->frame->progress, run->frame->user,
                      s->is_share ? n_rows * s->row_bytes : cuplug__staged_bytes(run));
  const int status = run_shipment(s, &watch);
  free(s);
  return status;
}
