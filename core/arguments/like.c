/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments/like.h"

#include "base/layout.h"
#include "registry/operator.h"

static uint64_t magnitude(int64_t x) { return x < 0 ? -(uint64_t)x : (uint64_t)x; }

/* Returns 1 if dimension `a` is inside dimension b, -1 if it is outside, 0 if either order will do:
 * a stride of 0 says nothing. Of equal strides, that of a size of 1 is inside. */
static int compare(const cuplug_tensor *x, int32_t a, int32_t b) {
  const uint64_t first = magnitude(x->strides[a]), second = magnitude(x->strides[b]);
  if (!first || !second) return 0;
  if (first != second) return first < second ? 1 : -1;
  return (x->shape[a] == 1) - (x->shape[b] == 1);
}

/* Writes the dimensions from the outermost to the innermost, those of C order where nothing says
 * otherwise. By insertion: comparisons that decide nothing are passed over. */
static void sort_dims(const cuplug_tensor *x, int32_t *dims) {
  for (int32_t n = 0; n < x->ndim; n++) {
    dims[n] = n;
    for (int32_t k = n - 1, at = n; x->strides && k >= 0; k--) {
      const int order = compare(x, dims[k], dims[at]);
      if (order < 0) break;
      if (!order) continue;
      const int32_t moved = dims[at];
      dims[at] = dims[k], dims[k] = moved, at = k;
    }
  }
}

void cuplug__lay_out_like(cuplug__match *m, const cuplug_parameter *x, uint32_t k) {
  cuplug_frame *f = m->frame;
  cuplug_tensor *t = &f->tensors[k];
  int32_t dims[CUPLUG_MAX_NDIM];
  uint32_t from = 0;
  while (f->parameter[from] + 1 != x->like) from++;
  const cuplug_tensor *like = &f->tensors[from];
  if (!m->takes_strides || !like->strides || like->ndim != t->ndim) return;
  sort_dims(like, dims);
  uint64_t stride = 1;
  t->strides = f->storage + f->n_stored; /* cuplug__write_strides would store them otherwise */
  for (int32_t d = t->ndim - 1; d >= 0; d--) {
    t->strides[dims[d]] = (int64_t)stride;
    stride *= t->shape[dims[d]] ? (uint64_t)t->shape[dims[d]] : 1;
  }
  if (cuplug__is_contiguous(t))
    t->strides = NULL;
  else
    f->n_stored += (uint32_t)t->ndim;
}

static int has_same_layout(const cuplug_tensor *x, const cuplug_tensor *y) {
  if (x->ndim != y->ndim || !x->strides || !y->strides) return 0;
  for (int32_t d = 0; d < x->ndim; d++)
    if (x->shape[d] != y->shape[d] || (x->shape[d] > 1 && x->strides[d] != y->strides[d])) return 0;
  return 1;
}

int cuplug__has_layout_of(const cuplug_tensor *x, const cuplug_tensor *other) {
  return other->strides ? has_same_layout(x, other) : cuplug__is_contiguous(x);
}

/* ---- Operators that treat all elements alike ------------------------------------------------- */

/* Whether all its elements are one: it has none of its own, or strides of 0 repeat it. */
static int is_repeated(const cuplug_tensor *x) {
  for (int32_t d = 0; d < x->ndim; d++)
    if (x->shape[d] > 1 && (!x->strides || x->strides[d])) return 0;
  return 1;
}

/* Without gaps, from its first element on, which is aligned. */
static int is_dense(const cuplug_tensor *x) {
  const uint32_t is_complex = x->dtype.code == CUPLUG_COMPLEX64 >> 24;
  const uintptr_t low = (uintptr_t)x->data, bytes = (uintptr_t)cuplug__n_bytes(x);
  const cuplug__span span = cuplug__span_of(x);
  if (low & (((uintptr_t)cuplug_element_bytes(x) >> is_complex) - 1)) return 0;
  return span.low == low && span.high - low == bytes && !cuplug__shares_elements(x);
}

/* Returns the input whose layout all inputs have that are not repeated; NULL: there is none. */
static const cuplug_tensor *find_layout(const cuplug_frame *f) {
  const cuplug_tensor *like = NULL;
  for (uint32_t k = 0; k < f->n_tensors; k++) {
    const cuplug_parameter *p = &f->signature->parameters[f->parameter[k]];
    const cuplug_tensor *x = &f->tensors[k];
    if (x->ndim < 0 || p->n_dims != 1 || p->dims[0].kind != CUPLUG_DIM_LOOP) return NULL;
    if (k >= f->n_inputs) continue;
    if (is_repeated(x)) {
      if (f->copy_mask >> k & 1) return NULL;
      continue;
    }
    if (!like) like = x;
    if (!has_same_layout(x, like) || !is_dense(x)) return NULL;
  }
  return like && like->ndim == f->loop_ndim ? like : NULL;
}

void cuplug_keep_layout(cuplug_frame *f) {
  const cuplug__overload *o = &f->op->overloads[f->row];
  const cuplug_signature *s = f->signature;
  if (o->row->flags & CUPLUG_ROW_KEEPS_WHOLE || o->reshape || s->n_lists || s->has_guarantees ||
      f->odd_mask)
    return;
  const cuplug_tensor *like = find_layout(f);
  if (!like) return;
  for (uint32_t k = f->n_inputs; k < f->n_tensors; k++) f->tensors[k].strides = like->strides;
  f->copy_mask = 0;
  f->keeps_layout = 1;
}

void cuplug__flatten(cuplug_frame *f) {
  int64_t *step = f->storage + f->n_stored++; /* there is room: none is used for their strides */
  int64_t n = 1;
  for (int32_t d = 0; d < f->loop_ndim; d++) n *= f->loop_shape[d];
  *step = 0;
  for (uint32_t k = 0; k < f->n_tensors; k++) {
    cuplug_tensor *x = &f->tensors[k];
    if (x->ndim < 0) continue;
    x->strides = is_repeated(x) ? step : NULL;
    x->ndim = 1;
    x->shape = f->loop_shape;
  }
  f->loop_ndim = 1;
  f->loop_shape[0] = n;
  f->keeps_layout = 0;
}
