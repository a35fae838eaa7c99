/* SPDX-License-Identifier: Apache-2.0 */
/* Host arrays through the GPU: in slices, or whole, or in parts as large as fit. */
#include "staging/stage.h"

#include "arguments/bind.h"
#include "base/layout.h"
#include "base/status.h"
#include "cuda/fault.h"
#include "cuda/lane.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "entry/entry.h"
#include "entry/run.h"
#include "host/view.h"
#include "host/watch.h"
#include "registry/operator.h"
#include "staging/cut.h"
#include "staging/slices.h"
#include "staging/transfer.h"

#include <string.h>

/* How an array travels: bytes of a view, to `offset` before the entry's first element. */
typedef struct travel {
  const cuplug__view *view;
  uint64_t first, bytes;
  char *back; /* where they go after the run; NULL: nowhere */
  int is_sent;
  uint64_t offset;
  void *block; /* device memory */
} travel;

typedef struct staging {
  cuplug__run *run;
  cuplug__lane *lane;
  cuplug__watch *watch;
  cuplug__cut *cut;
  int can_cut;
  travel travels[CUPLUG_MAX_TENSORS];
  cuplug_tensor tensors[CUPLUG_MAX_TENSORS]; /* of a whole call */
  int64_t strides[CUPLUG_MAX_TENSORS][CUPLUG_MAX_NDIM];
} staging;

static int has_unknown(const cuplug_tensor *x) {
  for (int32_t d = 0; d < x->ndim; d++)
    if (x->shape[d] < 0) return 1;
  return 0;
}

/* ---- Plans ----------------------------------------------------------------------------------- */

static void write_contiguous_strides(cuplug_tensor *x, int64_t *strides) {
  int64_t stride = 1;
  for (int32_t d = x->ndim - 1; d >= 0; d--) {
    strides[d] = stride;
    stride *= x->shape[d] ? x->shape[d] : 1;
  }
  x->strides = strides;
}

/* Arrays that the entry takes with their strides travel as they lie, gaps and all; inputs with more
 * gaps than elements are put together instead, like those of other rows. */
static void plan_array(staging *s, uint32_t k, cuplug__view *view) {
  const cuplug_tensor *host = &s->run->frame->tensors[k];
  const int is_written = cuplug__is_written(s->run, k);
  const uint64_t bytes = (uint64_t)cuplug__n_bytes(host);
  cuplug_tensor *x = &s->tensors[k];
  travel *t = &s->travels[k];
  const cuplug__span span = cuplug__span_of(host);
  const uint64_t span_bytes = (uint64_t)(span.high - span.low);
  if (s->run->overload->row->flags & CUPLUG_ROW_TAKES_STRIDES &&
      (is_written || span_bytes <= bytes)) {
    cuplug__view_bytes(view, span.low, span_bytes);
    *t = (travel){.bytes = span_bytes, .offset = (uint64_t)((char *)host->data - span.low)};
  } else {
    cuplug__view_array(view, host);
    *t = (travel){.bytes = bytes};
    x->strides = NULL;
    if (s->run->overload->row->flags & CUPLUG_ROW_TAKES_STRIDES)
      write_contiguous_strides(x, s->strides[k]);
  }
  t->view = view;
  t->back = is_written ? (char *)span.low : NULL;
  /* What lies between the elements of an output comes back as it was. */
  t->is_sent = k < s->run->frame->n_inputs || !cuplug__is_contiguous(host);
}

static void plan_whole(staging *s) {
  const cuplug_frame *f = s->run->frame;
  memcpy(s->tensors, f->tensors, f->n_tensors * sizeof *s->tensors);
  for (uint32_t k = 0; k < f->n_tensors; k++) {
    s->tensors[k].device = s->run->device;
    s->tensors[k].data = NULL;
    s->travels[k] = (travel){.view = NULL};
    if (s->tensors[k].ndim >= 0 && !has_unknown(&s->tensors[k]))
      plan_array(s, k, &s->cut->views[k]);
  }
  s->run->tensors = s->tensors;
}

static void plan_part(staging *s, uint64_t first, uint64_t n) {
  cuplug__cut *cut = s->cut;
  for (uint32_t k = 0; k < cut->n_tensors; k++) {
    const int is_cut = cut->cut_mask >> k & 1;
    travel *t = &s->travels[k];
    *t = (travel){.view = NULL};
    if (cut->tensors[k].ndim < 0) continue;
    t->view = &cut->views[k];
    t->first = is_cut ? first * cut->bytes[k] : 0;
    t->bytes = cuplug__part_bytes(cut, k, n);
    t->is_sent = k < s->run->frame->n_inputs;
    if (cuplug__is_written(s->run, k)) t->back = (char *)s->run->frame->tensors[k].data + t->first;
  }
}

/* ---- One run --------------------------------------------------------------------------------- */

/* All memory is taken before anything travels: where it does not suffice little is lost. */
static int allocate_all(staging *s) {
  const cuplug__run *run = s->run;
  int status = CUPLUG_OK;
  for (uint32_t k = 0; k < run->frame->n_tensors && !status; k++)
    if (s->travels[k].view)
      status = cuplug__device_allocate(run->device.id, s->travels[k].bytes, run->stream,
                                       &s->travels[k].block, run->error);
  return status;
}

static int send_all(staging *s) {
  int status = CUPLUG_OK;
  for (uint32_t k = 0; k < s->run->frame->n_tensors && !status; k++) {
    const travel *t = &s->travels[k];
    if (t->view && t->is_sent)
      status = cuplug__to_device(s->lane, t->block, t->view, t->first, t->bytes, s->watch,
                                 s->run->error);
  }
  return status;
}

/* Memory on the host for an output whose size the run has found. */
static int give_memory(staging *s, uint32_t k) {
  cuplug_frame *f = s->run->frame;
  cuplug_tensor *x = &s->run->tensors[k];
  travel *t = &s->travels[k];
  t->block = x->data;
  if (!t->block) return CUPLUG_OK;
  f->tensors[k].device = (cuplug_device){CUPLUG_CPU, 0};
  if (!f->allocate)
    return cuplug__fail(s->run->error, CUPLUG_ERROR_VALUE,
                        "this output's size is known only after the run; set frame.allocate");
  int status = f->allocate(f->user, f, k, s->run->error);
  t->bytes = (uint64_t)cuplug__n_bytes(x);
  t->back = f->tensors[k].data;
  return status;
}

static int receive_all(staging *s) {
  const cuplug_frame *f = s->run->frame;
  int status = CUPLUG_OK;
  for (uint32_t k = 0; k < f->n_tensors && !status; k++) {
    travel *t = &s->travels[k];
    if (k >= f->n_inputs && !t->view) status = give_memory(s, k);
    if (!status && t->back && t->block)
      status = cuplug__to_host(s->lane, t->back, t->block, t->bytes, s->watch, s->run->error);
  }
  return status;
}

static void free_all(staging *s) {
  for (uint32_t k = 0; k < s->run->frame->n_tensors; k++) {
    void *block = s->travels[k].block;
    if (!block && !s->travels[k].view) block = s->run->tensors[k].data;
    cuplug__device_free(block, s->run->stream, NULL);
  }
}

/* Where the rows are not all of them, `first` is the number of the first. */
static int run_planned(staging *s, uint64_t first, uint64_t n, int is_whole) {
  cuplug__run *run = s->run;
  char *addresses[CUPLUG_MAX_TENSORS];
  int status = cuplug__named(run, allocate_all(s));
  if (status) return status;
  for (uint32_t k = 0; k < run->frame->n_tensors; k++) {
    const travel *t = &s->travels[k];
    addresses[k] = t->block ? (char *)t->block + t->offset : NULL;
    if (is_whole) s->tensors[k].data = addresses[k];
  }
  if (!is_whole) cuplug__set_part(run, s->cut, n, addresses);
  if ((status = cuplug__named(run, send_all(s)))) return status;
  if ((status = cuplug__call_entry(run))) return status;
  if ((status = cuplug__stream_synchronize(run->stream, run->error)))
    return cuplug__named(run, status);
  if (!is_whole) cuplug__shift_fault(s->cut, run->fault, first);
  if ((status = cuplug__fault_take(run->fault, run->error))) return status;
  return cuplug__named(run, receive_all(s));
}

/* ---- Whole, or in parts ---------------------------------------------------------------------- */

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

CUPLUG__COLD static void explain_memory(const staging *s) {
  const cuplug_frame *f = s->run->frame;
  const cuplug_signature *signature = &s->run->overload->signature;
  const char *before = "; the call needs";
  for (uint32_t k = 0; k < f->n_tensors; k++) {
    const cuplug_parameter *x = &signature->parameters[f->parameter[k]];
    if (f->tensors[k].ndim < 0 || has_unknown(&f->tensors[k])) continue;
    cuplug__append(s->run->error, "%s %s (%lld bytes)", before, *x->name ? x->name : "its output",
                   (long long)cuplug__n_bytes(&f->tensors[k]));
    before = ",";
  }
  cuplug__append(s->run->error, " at once: %s",
                 s->can_cut     ? "one step of the loop dimensions is that large"
                 : f->loop_ndim ? "its loop dimensions cannot be cut, see docs/signatures.md"
                                : "its signature has no loop dimensions to cut them by");
}

/* Halves the parts until the GPU's memory holds one: where it ran out nothing had come back. */
static int run_parts(staging *s) {
  const uint64_t n_rows = s->can_cut ? s->cut->n_rows : 1;
  uint64_t n = n_rows;
  int status = CUPLUG_OK;
  for (uint64_t first = 0; first < n_rows && !status;) {
    const uint64_t now = least(n, n_rows - first);
    const int is_whole = now == n_rows;
    if (is_whole)
      plan_whole(s);
    else
      plan_part(s, first, now);
    status = run_planned(s, first, now, is_whole);
    free_all(s);
    if (status == CUPLUG_ERROR_MEMORY && now > 1) {
      n = (now + 1) / 2;
      if (is_whole) s->can_cut = cuplug__cut_loop(s->run, s->cut);
      cuplug__clear(s->run->error);
      status = CUPLUG_OK;
    } else {
      first += now;
    }
  }
  if (status == CUPLUG_ERROR_MEMORY) explain_memory(s);
  return status;
}

static int run_on_lane(staging *s) {
  cuplug__run *run = s->run;
  const cuplug_frame *f = run->frame;
  const char *names[CUPLUG_MAX_TENSORS];
  int status = cuplug__lane_take(run->device.id, &s->lane, run->error);
  if (status) return cuplug__named(run, status);
  run->stream = s->lane->stream;
  run->fault = s->lane->fault;
  for (uint32_t k = 0; k < f->n_tensors; k++)
    names[k] = run->overload->signature.parameters[f->parameter[k]].name;
  cuplug__fault_rename(run->fault, f->op->name, names, f->n_tensors);
  status = run_parts(s);
  cuplug__lane_give(s->lane);
  return status;
}

static uint64_t total_bytes(const cuplug__run *run) {
  uint64_t bytes = 0;
  for (uint32_t k = 0; k < run->frame->n_tensors; k++) {
    const cuplug_tensor *x = &run->frame->tensors[k];
    if (x->ndim >= 0 && !has_unknown(x))
      bytes += (uint64_t)cuplug__n_bytes(x) * (uint64_t)(1 + cuplug__is_inout(run, k));
  }
  return bytes;
}

int cuplug__run_staged(cuplug__run *run) {
  cuplug_frame *f = run->frame;
  cuplug__watch watch;
  cuplug__cut cut;
  staging s = {.run = run, .watch = &watch, .cut = &cut};
  int is_done = 0, status = CUPLUG_OK;
  cuplug__spread_inputs(f);
  cuplug__watch_start(&watch, f->progress, f->user, total_bytes(run));
  f->staged = 1;
  s.can_cut = cuplug__cut_loop(run, &cut);
  if (s.can_cut && cuplug__is_worth_slicing(&cut))
    status = cuplug__run_slices(run, &cut, &watch, &is_done);
  if (!is_done && !status) {
    cuplug__clear(run->error);
    status = run_on_lane(&s);
  }
  return status ? status : cuplug__watch_end(&watch, run->error);
}
