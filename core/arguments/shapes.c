/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that a signature defines: of outputs, and computed ones of inputs. */
#include "arguments/shapes.h"

#include "arguments/lists.h"
#include "base/describe.h"
#include "base/layout.h"
#include "base/status.h"
#include "registry/plugin.h"
#include "signature/value.h"

#include <inttypes.h>
#include <stdio.h>

/* The frame has words for 8 arrays of any number of dimensions. */
#define ALWAYS_FIT 8

CUPLUG__COLD static int refuse_words(const cuplug__match *m) {
  return cuplug__fail(m->error, CUPLUG_ERROR_VALUE,
                      "%s: its arrays have more than %d dimensions in total, the limit of a call",
                      m->s->name, CUPLUG_MAX_STORED / 2);
}

int cuplug__reserve_words(cuplug__match *m) {
  const cuplug_frame *f = m->frame;
  m->reserved_words = 0;
  if (f->n_inputs + (uint32_t)m->s->n_outputs <= ALWAYS_FIT) return CUPLUG_OK;
  for (uint32_t k = 0; k < f->n_inputs; k++)
    if (f->tensors[k].ndim > 0)
      m->reserved_words += 2 * (uint32_t)(f->tensors[k].ndim + f->loop_ndim);
  return m->reserved_words <= CUPLUG_MAX_STORED ? CUPLUG_OK : refuse_words(m);
}

/* `wrong`: the reason; NULL: the size is below 0. */
CUPLUG__COLD static int refuse_size(cuplug__match *m, const cuplug_parameter *x,
                                    const cuplug_dim *d, const char *wrong, int64_t size) {
  const cuplug__values values = {.tensors = m->frame->tensors, .scalars = m->frame->scalars};
  char got[80];
  snprintf(got, sizeof got, "got %" PRId64 ", expected 0 or more", size);
  return cuplug__fail(m->error, CUPLUG_ERROR_VALUE, "%s: %s: size %s: %s (%s)", m->s->name,
                      *x->name ? x->name : "output", d->text, wrong ? wrong : got,
                      cuplug__describe_names(m->s, d->text, &values).s);
}

/* A computed size or index of a parameter. */
static int work_out(cuplug__match *m, const cuplug_parameter *x, const cuplug_dim *d,
                    const cuplug_formula *formula, int64_t *size) {
  const cuplug__values values = {.tensors = m->frame->tensors, .scalars = m->frame->scalars};
  const char *wrong = cuplug__work_out_integer(formula, &values, size);
  return wrong ? refuse_size(m, x, d, wrong, 0) : CUPLUG_OK;
}

/* As Python's slices: an end below 0 counts from the end, and positions outside are clipped. */
static int64_t clip(int64_t at, int64_t n) {
  if (at < 0) at += n;
  return at < 0 ? 0 : at > n ? n : at;
}

/* Sets the part of a group that a slice takes. */
static int slice(cuplug__match *m, const cuplug_parameter *x, const cuplug_dim *d,
                 const int64_t **sizes, int32_t *n) {
  int64_t begin = 0, end = *n;
  if (d->formula.n_steps && work_out(m, x, d, &d->formula, &begin)) return CUPLUG_ERROR_VALUE;
  if (d->end.n_steps && work_out(m, x, d, &d->end, &end)) return CUPLUG_ERROR_VALUE;
  begin = clip(begin, *n);
  end = clip(end, *n);
  *sizes += begin;
  *n = end > begin ? (int32_t)(end - begin) : 0;
  return CUPLUG_OK;
}

/* The sizes of a dimension of an output. */
static int sizes_of(cuplug__match *m, const cuplug_parameter *x, const cuplug_dim *d,
                    int64_t *single, const int64_t **sizes, int32_t *n) {
  const cuplug_frame *f = m->frame;
  *sizes = single;
  *n = 1;
  switch (d->kind) {
  case CUPLUG_DIM_UNKNOWN:
    *single = -1;
    return CUPLUG_OK;
  case CUPLUG_DIM_LOOP:
    *sizes = f->loop_shape, *n = f->loop_ndim;
    return CUPLUG_OK;
  case CUPLUG_DIM_FORMULA:
    if (work_out(m, x, d, &d->formula, single)) return CUPLUG_ERROR_VALUE;
    return *single < 0 ? refuse_size(m, x, d, NULL, *single) : CUPLUG_OK;
  case CUPLUG_DIM_LISTED:
    *sizes = f->scalars[d->value].list.items, *n = (int32_t)f->scalars[d->value].list.n;
    for (int32_t k = 0; k < *n; k++)
      if ((*sizes)[k] < 0) return refuse_size(m, x, d, NULL, (*sizes)[k]);
    return CUPLUG_OK;
  case CUPLUG_DIM_FIXED:
    *sizes = &d->value;
    return CUPLUG_OK;
  default:
    *sizes = m->sizes[d->value], *n = m->n_sizes[d->value];
    return d->kind == CUPLUG_DIM_SLICE ? slice(m, x, d, sizes, n) : CUPLUG_OK;
  }
}

/* Writes the shape of an output after the stored ones, and sets its ndim. */
static int output_shape(cuplug__match *m, const cuplug_parameter *x, cuplug_tensor *t) {
  cuplug_frame *f = m->frame;
  const int64_t *sizes;
  int64_t single;
  int32_t n;
  for (int32_t k = 0; k < x->n_dims; k++) {
    int status = sizes_of(m, x, &x->dims[k], &single, &sizes, &n);
    if (status) return status;
    if (t->ndim + n > CUPLUG_MAX_NDIM)
      return cuplug__fail(m->error, CUPLUG_ERROR_VALUE,
                          "%s: the output would have more than %d dimensions", m->s->name,
                          CUPLUG_MAX_NDIM);
    if (f->n_stored + m->reserved_words + 2u * (uint32_t)(t->ndim + n) > CUPLUG_MAX_STORED)
      return refuse_words(m);
    for (int32_t j = 0; j < n; j++) t->shape[t->ndim++] = sizes[j];
  }
  f->n_stored += (uint32_t)t->ndim;
  return CUPLUG_OK;
}

/* Of an output that is like no input. */
static int shape_new(cuplug__match *m, const cuplug_parameter *x, uint32_t k) {
  cuplug_frame *f = m->frame;
  cuplug_tensor *t = &f->tensors[k];
  *t = (cuplug_tensor){.device = f->home, .shape = f->storage + f->n_stored};
  t->dtype = cuplug__dtype_of(cuplug__type_of(m, x->type_variable));
  int status = output_shape(m, x, t);
  if (status) return status;
  const int64_t n_bytes = f->n_bytes[k] = cuplug__n_bytes(t);
  if (n_bytes > m->largest_bytes) m->largest_bytes = n_bytes;
  if (n_bytes >= 0 || cuplug__has_unknown(t)) return CUPLUG_OK;
  return cuplug__fail(m->error, CUPLUG_ERROR_VALUE,
                      "%s: the output's shape %s needs 2^63 bytes or more", m->s->name,
                      cuplug__describe_tuple(t->shape, t->ndim).s);
}

/* Sets the strides of output tensor k, whose shape is known, in the order of the strides of the
 * input that parameter or output x of the signature is like. Without gaps; C order remains NULL. */
static void lay_out_like(cuplug__match *m, const cuplug_parameter *x, uint32_t k) {
  cuplug_frame *f = m->frame;
  cuplug_tensor *t = &f->tensors[k];
  int32_t dims[CUPLUG_MAX_NDIM];
  uint32_t from = 0;
  while (f->parameter[from] + 1 != x->like) from++;
  const cuplug_tensor *like = &f->tensors[from];
  if (!m->takes_strides || !like->strides || like->ndim != t->ndim) return;
  cuplug__sort_dims(like, dims);
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

int cuplug__shape_output(cuplug__match *m, int32_t i) {
  cuplug_frame *f = m->frame;
  const uint32_t k = f->n_tensors++, alike = m->like[k - m->n_items];
  const cuplug_parameter *x = &m->s->parameters[i];
  cuplug_tensor *t = &f->tensors[k];
  int status = CUPLUG_OK;
  f->parameter[k] = (uint8_t)i;
  if (alike >= f->n_inputs - m->n_items || m->broadcasts) {
    status = shape_new(m, x, k);
  } else {
    *t = f->tensors[alike];
    t->data = NULL;
    t->device = f->home;
    t->strides = NULL;
    f->n_bytes[k] = f->n_bytes[alike];
  }
  if (x->like && !status) lay_out_like(m, x, k);
  return status;
}

/* ---- Of inputs ------------------------------------------------------------------------------- */

static int check_sizes(cuplug__match *m, int32_t i, const cuplug_tensor *t) {
  const cuplug_parameter *x = &m->s->parameters[i];
  const cuplug__values values = {.tensors = m->frame->tensors, .scalars = m->frame->scalars};
  int is_after_group = 0;
  for (int32_t d = 0; d < x->n_dims && t->ndim >= 0; d++) {
    const cuplug_dim *dim = &x->dims[d];
    int64_t wanted;
    is_after_group |= dim->kind == CUPLUG_DIM_VARIADIC || dim->kind == CUPLUG_DIM_LOOP;
    if (dim->kind != CUPLUG_DIM_FORMULA) continue;
    if (work_out(m, x, dim, &dim->formula, &wanted)) return CUPLUG_ERROR_VALUE;
    const int64_t size = t->shape[is_after_group ? t->ndim - (x->n_dims - d) : d];
    if (size == wanted) continue;
    return cuplug__mismatch(m, i, CUPLUG_ERROR_VALUE,
                            "size %s: got %" PRId64 ", expected %" PRId64 " (%s)", dim->text, size,
                            wanted, cuplug__describe_names(m->s, dim->text, &values).s);
  }
  return CUPLUG_OK;
}

int cuplug__check_formulas(cuplug__match *m) {
  const cuplug_frame *f = m->frame;
  int status = CUPLUG_OK;
  for (uint32_t k = 0; k < f->n_inputs && !status; k++)
    status = check_sizes(m, f->parameter[k], &f->tensors[k]);
  for (uint32_t k = 0; f->apart && k < f->n_apart && !status; k++) {
    const cuplug__item item = cuplug__find_apart(m, k);
    m->item = item.number;
    status = check_sizes(m, item.parameter, &f->apart[k]);
    m->item = -1;
  }
  return status;
}

/* ---- Layouts --------------------------------------------------------------------------------- */

static int has_same_layout(const cuplug_tensor *x, const cuplug_tensor *y) {
  if (x->ndim != y->ndim || !x->strides || !y->strides) return 0;
  for (int32_t d = 0; d < x->ndim; d++)
    if (x->shape[d] != y->shape[d] || (x->shape[d] > 1 && x->strides[d] != y->strides[d])) return 0;
  return 1;
}

int cuplug__has_layout_of(const cuplug_tensor *x, const cuplug_tensor *other) {
  return other->strides ? has_same_layout(x, other) : cuplug__is_contiguous(x);
}

/* ---- Operators that treat all elements equally ----------------------------------------------- */

/* 1 if all its elements are the same: it has no dimensions of its own, or strides of 0. */
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

int cuplug__is_elementwise(const cuplug_frame *f) {
  const cuplug__callable *o = &f->op->overloads[f->row];
  const cuplug_signature *s = f->signature;
  if (o->row->flags & CUPLUG_OVERLOAD_NO_SPLIT || o->reshape || s->n_lists || s->has_guarantees ||
      f->unaligned_stride_mask)
    return 0;
  for (uint32_t k = 0; k < f->n_tensors; k++) {
    const cuplug_parameter *x = &s->parameters[f->parameter[k]];
    if (f->tensors[k].ndim < 0 || x->n_dims != 1 || x->dims[0].kind != CUPLUG_DIM_LOOP) return 0;
  }
  return 1;
}

/* Returns the input whose layout all inputs have that are not broadcast; NULL without one. */
static const cuplug_tensor *find_layout(const cuplug_frame *f) {
  const cuplug_tensor *like = NULL;
  for (uint32_t k = 0; k < f->n_inputs; k++) {
    const cuplug_tensor *x = &f->tensors[k];
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
  const cuplug_tensor *like = cuplug__is_elementwise(f) ? find_layout(f) : NULL;
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
