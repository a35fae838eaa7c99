/* SPDX-License-Identifier: Apache-2.0 */
#include "entry/blocks.h"

#include "arguments/bind.h"
#include "base/layout.h"
#include "base/status.h"
#include "entry/elements.h"
#include "entry/entry.h"
#include "host/view.h"

#include <cuplug/walk.h>

/* The state that the threads share. */
typedef struct blocks {
  cuplug_loop loop; /* first: the code of a loop is given this */
  const cuplug__run *run;
  atomic_int status; /* of the first block that failed, whose message `error` has */
  cuplug_error *error;
} blocks;

/* ---- Which calls ----------------------------------------------------------------------------- */

/* Transposed arrays are copied in tiles: rows of their elements share lines of the cache. */
static int can_be_moved(const cuplug_tensor *x) {
  const uint32_t is_complex = x->dtype.code == CUPLUG_COMPLEX64 >> 24;
  const uintptr_t alignment = (uintptr_t)cuplug_element_bytes(x) >> is_complex;
  cuplug__view view;
  if (!x->data || (uintptr_t)x->data & (alignment - 1)) return 0;
  cuplug__view_array(&view, x);
  return !cuplug__view_is_transposed(&view);
}

int cuplug__can_run_in_blocks(const cuplug_frame *f) {
  const cuplug__overload *o = &f->op->overloads[f->row];
  const uint32_t flags = o->row->flags;
  if (!(flags & CUPLUG_ROW_NEVER_WAITS) || flags & CUPLUG_ROW_KEEPS_WHOLE || !*o->row->host_entry ||
      o->reshape || f->signature->n_lists || f->signature->optional_outputs ||
      f->unaligned_stride_mask || f->signature->has_guarantees ||
      f->n_tensors > CUPLUG_MAX_LOOP_ARRAYS)
    return 0;
  for (uint32_t k = 0; k < f->n_tensors; k++) {
    const cuplug_parameter *x = &f->signature->parameters[f->parameter[k]];
    if (x->n_dims != 1 || x->dims[0].kind != CUPLUG_DIM_LOOP || f->tensors[k].ndim < 0) return 0;
    if (f->copy_mask >> k & 1 && !can_be_moved(&f->tensors[k])) return 0;
  }
  return 1;
}

/* ---- The calls ------------------------------------------------------------------------------- */

/* Calls the entry for contiguous elements. */
static int call_for_block(const cuplug__run *shared, void *const *data, int64_t n,
                          cuplug_error *error) {
  const cuplug_frame *f = shared->frame;
  cuplug_tensor tensors[CUPLUG_MAX_LOOP_ARRAYS];
  cuplug__run run = {.frame = shared->frame,
                     .overload = shared->overload,
                     .error = error,
                     .device = shared->device,
                     .tensors = tensors,
                     .is_failing = ATOMIC_FLAG_INIT};
  for (uint32_t k = 0; k < f->n_tensors; k++)
    tensors[k] = (cuplug_tensor){.data = data[k],
                                 .device = f->tensors[k].device,
                                 .ndim = 1,
                                 .dtype = f->tensors[k].dtype,
                                 .shape = &n};
  cuplug__clear(error);
  return cuplug__call_entry(&run);
}

static void run_block(const cuplug_loop_call *call, long long from, long long to) {
  blocks *b = (blocks *)(uintptr_t)call->loop;
  cuplug_error error;
  int none = CUPLUG_OK;
  if (atomic_load_explicit(&b->status, memory_order_relaxed)) return;
  const int status = call_for_block(b->run, call->data, to - from, &error);
  if (status && atomic_compare_exchange_strong(&b->status, &none, status)) *b->error = error;
}

int cuplug__call_for_blocks(cuplug__run *run) {
  cuplug_frame *f = run->frame;
  void *data[CUPLUG_MAX_LOOP_ARRAYS];
  blocks b = {.run = run, .error = run->error};
  cuplug__roles roles = {.n_inputs = f->n_inputs, .is_expensive = 1, .takes_raw_halves = 1};
  cuplug__broadcast_inputs(f);
  cuplug__write_strides(f);
  const int32_t ndim = f->tensors[0].ndim;
  long long strides[ndim + 1][CUPLUG_MAX_LOOP_ARRAYS];
  cuplug__loop_start(&b.loop, f->n_tensors, strides);
  for (int32_t d = 0; d < ndim; d++) cuplug__loop_add(&b.loop, f->tensors, d, 0);
  cuplug__loop_collapse(&b.loop, 1);
  for (uint32_t k = 0; k < f->n_tensors; k++) {
    data[k] = f->tensors[k].data;
    if (k < f->n_inputs) roles.inout |= (uint64_t)cuplug__is_written(run, k) << k;
  }
  const cuplug_loop_call call = {.data = data, .loop = &b.loop, .n_parts = 1};
  int status = CUPLUG_OK;
  if (b.loop.n) status = cuplug__elements_run(&call, run_block, f->tensors, &roles, 0, run->error);
  return status ? status : atomic_load(&b.status);
}
