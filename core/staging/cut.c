/* SPDX-License-Identifier: Apache-2.0 */
#include "staging/cut.h"

#include "base/layout.h"
#include "entry/run.h"
#include "host/view.h"

#include <string.h>

enum { NO_LOOP, LEADING_LOOP, OTHER_LOOP };

static int loop_place(const cuplug_parameter *x) {
  int n_loops = 0;
  for (int32_t d = 0; d < x->n_dims; d++) n_loops += x->dims[d].kind == CUPLUG_DIM_LOOP;
  if (!n_loops) return NO_LOOP;
  return n_loops == 1 && x->dims[0].kind == CUPLUG_DIM_LOOP ? LEADING_LOOP : OTHER_LOOP;
}

static int count_rows(const cuplug_frame *f, uint64_t *n_rows) {
  *n_rows = 1;
  for (int32_t d = 0; d < f->loop_ndim; d++)
    if (__builtin_mul_overflow(*n_rows, (uint64_t)f->loop_shape[d], n_rows)) return 0;
  return *n_rows > 1;
}

/* Whether it has other elements for other rows. */
static int varies(const cuplug_frame *f, const cuplug_tensor *x) {
  if (!x->strides) return 1;
  for (int32_t d = 0; d < f->loop_ndim; d++)
    if (x->shape[d] > 1 && x->strides[d]) return 1;
  return 0;
}

/* The shape and strides of array k for an entry: one dimension of rows, then its own. */
static void shape_part(const cuplug_frame *f, cuplug__cut *cut, uint32_t k, int takes_strides) {
  const cuplug_tensor *x = &f->tensors[k];
  const int32_t has_loop = cut->loop_mask >> k & 1, skipped = has_loop ? f->loop_ndim : 0;
  cuplug_tensor *t = &cut->tensors[k];
  int64_t *shape = cut->shapes[k], *strides = cut->strides[k], stride = 1;
  *t = *x;
  t->ndim = x->ndim - skipped + has_loop;
  t->shape = shape;
  t->strides = takes_strides ? strides : NULL;
  shape[0] = 1;
  memcpy(shape + has_loop, x->shape + skipped, (size_t)(x->ndim - skipped) * sizeof *shape);
  for (int32_t d = t->ndim - 1; d >= 0; d--) {
    strides[d] = stride;
    stride *= shape[d] ? shape[d] : 1;
  }
  cut->bytes[k] = (uint64_t)cuplug__n_bytes(t);
}

/* 0 when array k stands in the way. Rows that take strides see equal rows once. */
static int add_array(const cuplug__run *run, cuplug__cut *cut, uint32_t k) {
  const cuplug_frame *f = run->frame;
  const cuplug_tensor *x = &f->tensors[k];
  const int loop = loop_place(&run->overload->signature.parameters[f->parameter[k]]);
  const int is_written = cuplug__is_written(run, k);
  const int takes_strides = (run->overload->row->flags & CUPLUG_ROW_TAKES_STRIDES) != 0;
  cut->tensors[k] = *x;
  if (x->ndim < 0) return 1;
  if (loop == OTHER_LOOP || (is_written && (loop == NO_LOOP || !cuplug__is_contiguous(x))))
    return 0;
  for (int32_t d = 0; d < x->ndim; d++)
    if (x->shape[d] < 0) return 0;
  if (loop) cut->loop_mask |= 1u << k;
  if (loop && varies(f, x)) cut->cut_mask |= 1u << k;
  shape_part(f, cut, k, takes_strides);
  if (loop && !varies(f, x)) cut->strides[k][0] = 0;
  if (cut->cut_mask >> k & 1) cut->row_bytes += cut->bytes[k];
  cuplug__view_array(&cut->views[k], x);
  return 1;
}

int cuplug__cut_loop(const cuplug__run *run, cuplug__cut *cut) {
  const cuplug_frame *f = run->frame;
  cut->n_tensors = f->n_tensors;
  cut->cut_mask = cut->loop_mask = 0;
  cut->row_bytes = 0;
  if (run->overload->row->flags & CUPLUG_ROW_KEEPS_WHOLE) return 0;
  if (!count_rows(f, &cut->n_rows)) return 0;
  for (uint32_t k = 0; k < f->n_tensors; k++)
    if (!add_array(run, cut, k)) return 0;
  return cut->row_bytes > 0;
}

uint64_t cuplug__part_bytes(const cuplug__cut *cut, uint32_t k, uint64_t n) {
  const cuplug_tensor *x = &cut->tensors[k];
  if (x->ndim < 0) return 0;
  int repeats = cut->loop_mask >> k & 1 && !(x->strides && !x->strides[0]);
  return repeats ? n * cut->bytes[k] : cut->bytes[k];
}

uint64_t cuplug__travelling_bytes(const cuplug__run *run, const cuplug__cut *cut, uint64_t n) {
  uint64_t row_bytes = 0;
  for (uint32_t k = 0; k < cut->n_tensors; k++)
    if (cut->cut_mask >> k & 1)
      row_bytes += cut->bytes[k] * (uint64_t)(1 + (cuplug__is_inout(run, k)));
  return n * row_bytes;
}

void cuplug__set_part(cuplug__run *run, cuplug__cut *cut, uint64_t n, char *const *addresses) {
  for (uint32_t k = 0; k < cut->n_tensors; k++) {
    cuplug_tensor *x = &cut->tensors[k];
    x->device = run->device;
    if (x->ndim < 0) continue;
    x->data = addresses[k];
    if (cut->loop_mask >> k & 1) x->shape[0] = (int64_t)n;
  }
  run->tensors = cut->tensors;
}

void cuplug__shift_fault(const cuplug__cut *cut, cuplug_fault *fault, uint64_t first_row) {
  if (!__atomic_load_n(&fault->status, __ATOMIC_ACQUIRE)) return;
  const uint32_t k = fault->tensor;
  if (k >= cut->n_tensors || !(cut->loop_mask >> k & 1)) return;
  const uint64_t element = (uint64_t)cuplug_element_bytes(&cut->tensors[k]);
  fault->position += (int64_t)(first_row * (cut->bytes[k] / element));
}
