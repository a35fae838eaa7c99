/* SPDX-License-Identifier: Apache-2.0 */
#include "staging/staged_call.h"

#include "base/layout.h"
#include "base/status.h"

#include <cuplug/fault.h>
#include <stdlib.h>
#include <string.h>

cuplug__staged_call *cuplug__staged_call_new(cuplug__run *run) {
  const uint32_t n = run->frame->n_tensors;
  cuplug__staged_call *new = malloc(sizeof *new + n * sizeof *new->arrays);
  if (!new) {
    cuplug__prefix_operator_name(run, cuplug__no_memory(run->error, "describing a call's arrays"));
    return NULL;
  }
  new->run = run;
  new->is_share = 0;
  new->first_row = 0;
  new->n_arrays = n;
  return new;
}

/* Returns whether the entry receives array k itself: it is not transferred. */
static int is_on_host(const cuplug_frame *f, uint32_t k) {
  return f->signature->host_arrays >> k & 1;
}

uint64_t cuplug__staged_bytes(const cuplug__run *run) {
  const cuplug_frame *f = run->frame;
  uint64_t bytes = 0;
  for (uint32_t k = 0; k < f->n_tensors; k++) {
    const cuplug_tensor *x = &f->tensors[k];
    if (x->ndim >= 0 && !cuplug__has_unknown(x) && !is_on_host(f, k))
      bytes +=
          (uint64_t)cuplug__n_bytes(x) * (uint64_t)((k < f->n_inputs) + cuplug__is_written(run, k));
  }
  return bytes;
}

static int takes_strides(const cuplug__staged_call *s) {
  return (s->run->overload->row->flags & CUPLUG_OVERLOAD_TAKES_STRIDES) != 0;
}

/* The fields of array k for all kinds of transfer. */
static cuplug__staged_array *begin(cuplug__staged_call *s, uint32_t k) {
  const cuplug_frame *f = s->run->frame;
  cuplug_tensor *t = &s->tensors[k];
  cuplug__staged_array *p = &s->arrays[k];
  *t = f->tensors[k];
  p->is_known = t->ndim >= 0 && !cuplug__has_unknown(t) && !is_on_host(f, k);
  if (!is_on_host(f, k)) {
    t->data = NULL;
    t->device = s->run->device;
  }
  p->is_sent = p->is_known && k < f->n_inputs;
  p->is_received = p->is_known && cuplug__is_written(s->run, k);
  p->rows = CUPLUG__NO_ROWS;
  p->bytes = p->offset = 0;
  return p;
}

/* ---- Whole ----------------------------------------------------------------------------------- */

/* Without the gaps: its elements in the order of their addresses. Elements that a stride of 0
 * repeats are transferred once. */
static void take_elements(cuplug__staged_array *p, const cuplug_tensor *x, cuplug__span span) {
  const int64_t element = cuplug_element_bytes(x);
  int32_t dims[CUPLUG_MAX_NDIM];
  int64_t n = 1; /* elements so far, from the narrowest dimension on */
  cuplug__sort_dims(x, dims);
  cuplug__view_bytes(&p->view, (void *)span.low, (uint64_t)element);
  for (int32_t k = x->ndim - 1; k >= 0; k--) {
    const int32_t d = dims[k];
    const int64_t stride = x->strides[d];
    p->strides[d] = stride < 0 ? -n : stride ? n : 0;
    if (!stride) continue;
    if (stride < 0) p->offset += (uint64_t)((x->shape[d] - 1) * n * element);
    cuplug__view_add(&p->view, x->shape[d], llabs(stride) * element);
    n *= x->shape[d];
  }
  p->bytes = (uint64_t)(n * element);
}

/* If the entry takes strides, nothing is reordered on the host. Bytes between the elements of a
 * returned array belong to others. */
static void describe_whole(cuplug__staged_call *s, uint32_t k) {
  const cuplug_tensor *x = &s->run->frame->tensors[k];
  cuplug__staged_array *p = begin(s, k);
  if (!p->is_known) return;
  const uint64_t bytes = (uint64_t)cuplug__n_bytes(x);
  const cuplug__span span = cuplug__span_of(x);
  const uint64_t span_bytes = (uint64_t)(span.high - span.low);
  if (!takes_strides(s)) {
    cuplug__view_array(&p->view, x);
    p->bytes = bytes;
    s->tensors[k].strides = NULL;
  } else if (p->is_received ? span_bytes == bytes : span_bytes <= bytes) {
    p->bytes = span_bytes; /* unchanged, with its gaps */
    p->offset = (uint64_t)((uintptr_t)x->data - span.low);
    cuplug__view_bytes(&p->view, (void *)span.low, p->bytes);
  } else {
    take_elements(p, x, span);
    s->tensors[k].strides = p->strides;
  }
}

void cuplug__staged_call_whole(cuplug__staged_call *s) {
  s->n_rows = 1;
  for (uint32_t k = 0; k < s->n_arrays; k++) describe_whole(s, k);
}

/* ---- In rows --------------------------------------------------------------------------------- */

enum { NO_LOOP, LEADING_LOOP, OTHER_LOOP };

static int loop_place(const cuplug_frame *f, uint32_t k) {
  const cuplug_parameter *x = &f->signature->parameters[f->parameter[k]];
  int n_loops = 0;
  for (int32_t d = 0; d < x->n_dims; d++) n_loops += x->dims[d].kind == CUPLUG_DIM_LOOP;
  if (!n_loops) return NO_LOOP;
  return n_loops == 1 && x->dims[0].kind == CUPLUG_DIM_LOOP ? LEADING_LOOP : OTHER_LOOP;
}

/* The reason against splitting array k, or NULL. */
static const char *obstacle_of(const cuplug__run *run, uint32_t k) {
  const cuplug_tensor *x = &run->frame->tensors[k];
  const int loop = loop_place(run->frame, k);
  if (x->ndim < 0) return NULL;
  if (cuplug__has_unknown(x)) return "its size is known only after the run";
  if (loop == OTHER_LOOP) return "its loop dimensions are not first";
  if (!cuplug__is_written(run, k)) return NULL;
  if (loop == NO_LOOP) return "it has no loop dimensions";
  return cuplug__is_contiguous(x) ? NULL : "its elements are not contiguous in memory";
}

static int count_rows(const cuplug_frame *f, uint64_t *n_rows) {
  *n_rows = 1;
  for (int32_t d = 0; d < f->loop_ndim; d++)
    if (__builtin_mul_overflow(*n_rows, (uint64_t)f->loop_shape[d], n_rows)) return 0;
  return *n_rows > 1;
}

/* Returns whether it has other elements for other rows. */
static int varies(const cuplug_frame *f, const cuplug_tensor *x) {
  if (!x->strides) return 1;
  for (int32_t d = 0; d < f->loop_ndim; d++)
    if (x->shape[d] > 1 && x->strides[d]) return 1;
  return 0;
}

/* One dimension of rows, then its own. */
static void describe_rows(cuplug__staged_call *s, uint32_t k) {
  const cuplug_frame *f = s->run->frame;
  const cuplug_tensor *x = &f->tensors[k];
  const int32_t has_loop = loop_place(f, k) != NO_LOOP, skipped = has_loop ? f->loop_ndim : 0;
  cuplug_tensor *t = &s->tensors[k];
  cuplug__staged_array *p = begin(s, k);
  if (!p->is_known) return;
  if (has_loop)
    p->rows = varies(f, x)       ? CUPLUG__DISTINCT_ROWS
              : takes_strides(s) ? CUPLUG__ONE_ROW
                                 : CUPLUG__SAME_ROWS;
  t->ndim = x->ndim - skipped + has_loop;
  t->shape = p->shape;
  t->strides = takes_strides(s) ? p->strides : NULL;
  p->shape[0] = 1;
  memcpy(p->shape + has_loop, x->shape + skipped, (size_t)(x->ndim - skipped) * sizeof *p->shape);
  cuplug__contiguous_strides(t->ndim, p->shape, p->strides);
  p->bytes = (uint64_t)cuplug__n_bytes(t);
  if (p->rows == CUPLUG__ONE_ROW) p->strides[0] = 0;
  if (p->rows == CUPLUG__DISTINCT_ROWS) s->row_bytes += p->bytes;
  cuplug__view_array(&p->view, x);
}

/* The reason against splitting the call, or NULL; *name: the array that it is about, or "". */
static const char *find_obstacle(const cuplug__run *run, const char **name) {
  const cuplug_frame *f = run->frame;
  int n_cut = 0;
  *name = "";
  if (run->overload->row->flags & CUPLUG_OVERLOAD_NO_SPLIT)
    return "its entry requires whole arrays";
  for (uint32_t k = 0; k < f->n_tensors; k++) {
    const char *obstacle = obstacle_of(run, k),
               *own = f->signature->parameters[f->parameter[k]].name;
    if (obstacle) return *name = *own ? own : "out", obstacle;
    n_cut += f->tensors[k].ndim >= 0 && loop_place(f, k) != NO_LOOP;
  }
  return n_cut ? NULL : "no array has loop dimensions";
}

int cuplug__staged_call_rows(cuplug__staged_call *s) {
  const char *name;
  uint64_t n_rows;
  if (find_obstacle(s->run, &name) || !count_rows(s->run->frame, &n_rows)) return 0;
  s->row_bytes = 0;
  for (uint32_t k = 0; k < s->n_arrays; k++) describe_rows(s, k);
  if (s->row_bytes) s->n_rows = n_rows;
  return s->row_bytes > 0;
}

int cuplug__staged_call_explain(const cuplug__staged_call *s, cuplug_error *error) {
  const char *name, *obstacle = find_obstacle(s->run, &name);
  if (obstacle) cuplug__append(error, "%s%s%s", name, *name ? ": " : "", obstacle);
  return obstacle != NULL;
}

/* ---- Parts ----------------------------------------------------------------------------------- */

void cuplug__staged_call_bind_rows(cuplug__staged_call *s, uint64_t n, void *const *addresses) {
  for (uint32_t k = 0; k < s->n_arrays; k++) {
    const cuplug__staged_array *p = &s->arrays[k];
    if (!p->is_known) continue;
    s->tensors[k].data = (char *)addresses[k] + p->offset;
    if (p->rows) s->tensors[k].shape[0] = (int64_t)n;
  }
  s->run->tensors = s->tensors;
}

void cuplug__staged_call_offset_fault(const cuplug__staged_call *s, cuplug_fault *fault,
                                      uint64_t first_row) {
  if (!__atomic_load_n(&fault->status, __ATOMIC_ACQUIRE)) return;
  const uint32_t k = fault->tensor;
  if (k >= s->n_arrays || !s->arrays[k].rows) return;
  const uint64_t element = (uint64_t)cuplug_element_bytes(&s->tensors[k]);
  fault->position += (int64_t)(first_row * (s->arrays[k].bytes / element));
}
