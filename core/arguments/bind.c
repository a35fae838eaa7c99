/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments against signatures: the first half of a call. Every call runs this code, so the match
 * of one overload is one pass over the parameters, without allocation and without text. Only if no
 * overload fits, the best one is matched again with an error record to fill. */
#include "arguments/bind.h"

#include "arguments/lists.h"
#include "arguments/match.h"
#include "arguments/match_cache.h"
#include "arguments/scalars.h"
#include "arguments/shapes.h"
#include "base/describe.h"
#include "base/layout.h"
#include "base/status.h"
#include "host/copies.h"
#include "host/view.h"
#include "registry/plugin.h"

#include <string.h>

static int64_t *store(cuplug_frame *f, int32_t n) {
  int64_t *place = f->storage + f->n_stored;
  f->n_stored += (uint32_t)n;
  return place;
}

void cuplug__write_strides(cuplug_frame *f) {
  for (cuplug_tensor *t = f->tensors; t < f->tensors + f->n_tensors; t++) {
    if (t->strides || t->ndim < 0) continue;
    t->strides = store(f, t->ndim);
    cuplug__contiguous_strides(t->ndim, t->shape, t->strides);
  }
}

/* Repeats an array along new and size-1 dimensions by strides of 0; takes both arrays. */
static void broadcast_to(cuplug_tensor *t, int64_t *shape, int32_t ndim, int64_t *strides) {
  int64_t own[CUPLUG_MAX_NDIM];
  const int64_t *from = t->strides ? t->strides : own;
  cuplug__contiguous_strides(t->ndim, t->shape, own);
  for (int32_t k = 0; k < ndim; k++) {
    int32_t old = k - (ndim - t->ndim);
    strides[k] = old < 0 || t->shape[old] != shape[k] ? 0 : from[old];
  }
  t->shape = shape;
  t->strides = strides;
  t->ndim = ndim;
}

static void broadcast(cuplug_frame *f, cuplug_tensor *t, const int64_t *wanted, int32_t ndim) {
  if (ndim == t->ndim && cuplug__same_sizes(wanted, t->shape, ndim)) return;
  int64_t *shape = store(f, ndim), *strides = store(f, ndim);
  memcpy(shape, wanted, (size_t)ndim * sizeof *shape);
  broadcast_to(t, shape, ndim, strides);
}

void cuplug__broadcast_inputs(cuplug_frame *f) {
  int64_t wanted[CUPLUG_MAX_NDIM];
  for (uint32_t k = 0; k < f->n_inputs; k++)
    if (f->copy_mask >> k & 1)
      broadcast(f, &f->tensors[k], wanted, cuplug_required_shape(f, k, wanted));
  f->copy_mask = 0;
}

void cuplug_copy_input(const cuplug_frame *f, uint32_t k, void *to) {
  int64_t wanted[CUPLUG_MAX_NDIM], strides[CUPLUG_MAX_NDIM];
  cuplug_tensor x = f->tensors[k];
  cuplug__view view;
  const int32_t ndim = cuplug_required_shape(f, k, wanted);
  broadcast_to(&x, wanted, ndim, strides);
  cuplug__view_array(&view, &x);
  cuplug__host_copy_whole(&view, (uint64_t)cuplug__n_bytes(&x), to);
}

/* Loop dimensions of input tensor k against the broadcast shape. */
static int spread(cuplug__match *m, uint32_t k) {
  cuplug_frame *f = m->frame;
  cuplug_tensor *t = &f->tensors[k];
  int32_t i = f->parameter[k];
  int64_t wanted[CUPLUG_MAX_NDIM];
  int32_t ndim = cuplug_required_shape(f, k, wanted);
  if (ndim > CUPLUG_MAX_NDIM)
    return cuplug__mismatch(m, i, CUPLUG_ERROR_VALUE,
                            "got %d dimensions after broadcasting, expected <= %d", (int)ndim,
                            CUPLUG_MAX_NDIM);
  if (ndim == t->ndim && cuplug__same_sizes(wanted, t->shape, ndim)) return CUPLUG_OK;
  if (m->s->parameters[i].kind == CUPLUG_PARAMETER_INOUT)
    return cuplug__mismatch(
        m, i, CUPLUG_ERROR_VALUE,
        "got shape %s, expected %s (the broadcast shape, as it is changed in place)",
        cuplug__describe_tuple(t->shape, t->ndim).s, cuplug__describe_tuple(wanted, ndim).s);
  const int repeats_elements = ndim && (!t->ndim || t->shape[t->ndim - 1] != wanted[ndim - 1]);
  const cuplug_parameter *x = &m->s->parameters[i];
  if (m->takes_strides && !x->is_contiguous && !(x->has_unit_stride && repeats_elements))
    broadcast(f, t, wanted, ndim);
  else
    f->copy_mask |= 1ull << k;
  return CUPLUG_OK;
}

/* The part of the outputs' shapes that depends on scalars, for operators with such shapes. */
static int reshape(cuplug__match *m, const cuplug__callable *o) {
  cuplug_frame *f = m->frame;
  if (!o->reshape) return CUPLUG_OK;
  int status = o->reshape(f, m->error);
  for (uint32_t k = f->n_inputs; k < f->n_tensors; k++)
    f->n_bytes[k] = cuplug__n_bytes(&f->tensors[k]);
  return status;
}

/* 1 if arrays of any strides may pass: on a GPU, more overloads take them. All arrays except host
 * arrays are on the device of the first one. */
static uint32_t takes_strides(const cuplug__match *m, uint32_t flags) {
  if (flags & CUPLUG_OVERLOAD_TAKES_STRIDES) return 1;
  for (uint32_t k = 0; flags & CUPLUG_OVERLOAD_CUDA_TAKES_STRIDES && k < m->n_args; k++) {
    const cuplug_argument *a = &m->args[k];
    const int is_known = k < (uint32_t)m->s->n_parameters;
    if (is_known && m->s->parameters[k].words & CUPLUG_WORD_HOST) continue;
    if (a->kind == CUPLUG_ARGUMENT_LIST && a->list.n) a = a->list.items;
    if (a->kind == CUPLUG_ARGUMENT_ARRAY) return cuplug__is_cuda(a->tensor.device);
  }
  return 0;
}

/* Fits one overload; fills the frame but for `op` and `row`, and does not reshape outputs. */
static int match_overload(cuplug__match *m, const cuplug__callable *o) {
  cuplug_frame *f = m->frame;
  const cuplug_signature *s = m->s = o->signature;
  int status = CUPLUG_OK;
  m->takes_strides = takes_strides(m, o->row->flags);
  m->like = o->like;
  m->largest_bytes = 0;
  m->n_matched = 0;
  m->item = -1;
  m->inout_mask = m->loop_mask = m->known_types = m->known_sizes = 0;
  m->broadcasts = m->n_items = 0;
  f->copy_mask = f->unaligned_stride_mask = f->none_mask = f->supplied_mask = 0;
  f->n_tensors = f->n_scalars = f->n_stored = f->n_items = 0;
  f->home = (cuplug_device){0, 0};
  f->signature = s;
  f->loop_ndim = 0;
  if (f->blocks) cuplug__forget_lists(f); /* of another row */
  if (m->n_args > (uint32_t)s->n_parameters) {
    m->n_matched = s->n_parameters - (int32_t)m->n_args; /* below all overloads with the same
                                                            number */
    return cuplug__fail(m->error, CUPLUG_ERROR_TYPE, "%s: got %u arguments, expected at most %d",
                        s->name, m->n_args, (int)s->n_parameters);
  }
  for (int32_t i = 0; i < s->n_parameters; i++) {
    if (s->parameters[i].kind > CUPLUG_PARAMETER_INOUT) continue;
    if ((status = cuplug__match_array(m, i, cuplug__argument(m, i)))) return status;
    m->n_matched++;
  }
  if (s->n_lists && (status = cuplug__match_lists(m))) return status;
  f->n_inputs = f->n_tensors;
  if ((status = cuplug__reserve_words(m))) return status;
  for (uint32_t k = 0; m->broadcasts && k < f->n_inputs; k++)
    if (m->loop_mask >> k & 1 && (status = spread(m, k))) return status;
  if ((status = cuplug__match_scalars(m, o))) return status;
  if (s->has_formulas && (status = cuplug__check_formulas(m))) return status;
  for (int32_t k = 0; k < s->n_outputs; k++)
    if ((status = cuplug__shape_output(m, s->n_parameters + k))) return status;
  return CUPLUG_OK;
}

/* As cuplug__span_of, with the size that matching has found. */
static inline cuplug__span span_of(const cuplug__match *m, uint32_t k) {
  const cuplug_tensor *t = &m->frame->tensors[k];
  if (t->strides) return cuplug__strided_span(t);
  return (cuplug__span){(uintptr_t)t->data, (uintptr_t)t->data + (uintptr_t)m->frame->n_bytes[k]};
}

/* In-out arrays share no memory with other arrays: arrays that interleave are apart. */
static int check_inout(cuplug__match *m) {
  const cuplug_frame *f = m->frame;
  if (f->apart) return cuplug__check_apart(m);
  for (uint64_t left = m->inout_mask; left; left &= left - 1) {
    const uint32_t k = (uint32_t)__builtin_ctzll(left);
    const cuplug__span changed = span_of(m, k);
    for (uint32_t other = 0; other < f->n_inputs; other++) {
      if (other == k || !f->tensors[other].data ||
          !cuplug__spans_overlap(changed, span_of(m, other)))
        continue;
      const int overlap = cuplug__overlap(&f->tensors[k], &f->tensors[other]);
      if (overlap)
        return cuplug__mismatch(m, f->parameter[k], CUPLUG_ERROR_VALUE,
                                "it is changed in place and %s %s; pass a copy of one of them",
                                cuplug__overlap_verb(overlap),
                                m->s->parameters[f->parameter[other]].name);
    }
  }
  return CUPLUG_OK;
}

/* The first row, from one on, that may take the arguments. */
static uint32_t row_from(const cuplug_operator *op, const cuplug__match *m, uint32_t row) {
  return op->rows ? cuplug__overloads_next(op, m->args, m->n_args, row) : row;
}

static inline int finish(cuplug_operator *op, cuplug_frame *f, int64_t largest_bytes,
                         uint32_t row) {
  f->row = row;
  f->device = f->home.type == CUPLUG_CUDA ? f->home : (cuplug_device){0, 0};
  f->runs_with_gil = !f->device.type && largest_bytes <= op->overloads[row].inline_call_bytes &&
                     atomic_load_explicit(&op->loaded, memory_order_relaxed);
  return CUPLUG_OK;
}

/* Fits one overload only. Of several, an error names the one that it is about. */
static int bind_row(cuplug_operator *op, cuplug__match *m, uint32_t row) {
  const cuplug__callable *o = &op->overloads[row];
  int status = match_overload(m, o);
  if (!status && m->inout_mask) status = check_inout(m);
  if (!status) status = reshape(m, o);
  if (!status) return finish(op, m->frame, m->largest_bytes, row);
  cuplug__forget_lists(m->frame);
  if (op->n_overloads > 1)
    cuplug__append(m->error, " (the closest of %u signatures: %.200s)", op->n_overloads,
                   o->signature->text);
  return status;
}

/* No overload fits: reports the error of the closest one. */
CUPLUG__COLD static int report(cuplug_operator *op, cuplug__match *m, cuplug_error *error) {
  const uint32_t first = row_from(op, m, 0);
  /* Those whose kinds and dtypes fit are nearer than others. */
  const int is_candidate = first < op->n_overloads;
  uint32_t best = is_candidate ? first : 0, k = best;
  int32_t n_best = INT32_MIN;
  while (k < op->n_overloads) {
    match_overload(m, &op->overloads[k]);
    if (m->n_matched > n_best) n_best = m->n_matched, best = k;
    k = is_candidate ? row_from(op, m, k + 1) : k + 1;
  }
  m->error = error;
  return bind_row(op, m, best); /* it fits if the arguments have changed meanwhile */
}

/* Apart, as match_rows: the state of matching takes room on the stack. */
__attribute__((noinline)) int cuplug__fits_too(const cuplug_operator *op,
                                               const cuplug_argument *args, uint32_t n_args,
                                               cuplug_frame *f, const cuplug__cached_match *known) {
  cuplug__match m; /* not zeroed: every call with scalars passes here */
  m.s = known->signature;
  m.args = args;
  m.n_args = n_args;
  m.frame = f;
  m.error = NULL;
  m.n_matched = (int32_t)known->n_inputs;
  m.inout_mask = known->inout_mask;
  m.item = -1;
  m.known_types = known->known_types;
  if (m.known_types) memcpy(m.types, known->types, sizeof known->types);
  const cuplug__callable *o = &op->overloads[known->row];
  if (m.s->n_scalars && cuplug__match_scalars(&m, o)) return 0;
  return !reshape(&m, o) && (!m.inout_mask || !check_inout(&m));
}

/* Tries one row after the other. */
static __attribute__((noinline)) int match_rows(cuplug_operator *op, const cuplug_argument *args,
                                                uint32_t n_args, uint32_t needs_memory,
                                                cuplug_frame *f, cuplug_error *error) {
  cuplug__match m;
  m.needs_memory = needs_memory;
  m.args = args;
  m.n_args = n_args;
  m.frame = f;
  m.error = NULL;
  const uint32_t first = row_from(op, &m, 0);
  int by_memory = 0; /* 1 if a row was skipped for a property that may differ in the next call */
  for (uint32_t row = first; row < op->n_overloads; row = row_from(op, &m, row + 1)) {
    if (match_overload(&m, &op->overloads[row])) continue;
    if (m.inout_mask && check_inout(&m)) {
      by_memory = 1;
      continue;
    }
    if (!by_memory) cuplug__match_cache_store(&m, op, row, row == first);
    if (reshape(&m, &op->overloads[row])) continue;
    return finish(op, f, m.largest_bytes, row);
  }
  return report(op, &m, error);
}

static inline __attribute__((always_inline)) int bind(cuplug_operator *op,
                                                      const cuplug_argument *args, uint32_t n_args,
                                                      uint32_t needs_memory, cuplug_frame *frame,
                                                      cuplug_error *error) {
  cuplug__clear(error);
  cuplug__start_frame(op, frame);
  const cuplug__cached_match *known = cuplug__match_cache_find(op, args, n_args, frame);
  if (known && (known->needs_no_scalar_match || cuplug__fits_too(op, args, n_args, frame, known)))
    return finish(op, frame, known->largest_bytes, known->row);
  return match_rows(op, args, n_args, needs_memory, frame, error);
}

int cuplug_bind(cuplug_operator *op, const cuplug_argument *args, uint32_t n_args,
                cuplug_frame *frame, cuplug_error *error) {
  return bind(op, args, n_args, 1, frame, error);
}

int cuplug_bind_overload(cuplug_operator *op, uint32_t row, const cuplug_argument *args,
                         uint32_t n_args, uint32_t needs_memory, cuplug_frame *frame,
                         int32_t *n_matched, cuplug_error *error) {
  cuplug__match m = {
      .args = args, .n_args = n_args, .frame = frame, .error = error, .needs_memory = needs_memory};
  cuplug__clear(error);
  cuplug__start_frame(op, frame);
  const int status = bind_row(op, &m, row);
  *n_matched = m.n_matched;
  return status;
}

/* ---- Without a call -------------------------------------------------------------------------- */

int cuplug_infer(cuplug_operator *op, const cuplug_argument *args, uint32_t n_args, uint32_t *row,
                 cuplug_tensor *outputs, int64_t (*sizes)[CUPLUG_MAX_NDIM], uint32_t *n_outputs,
                 cuplug_error *error) {
  cuplug_frame f;
  const uint32_t room = *n_outputs;
  const int status = bind(op, args, n_args, 0, &f, error);
  if (status) return status;
  *row = f.row;
  *n_outputs = f.n_tensors - f.n_inputs;
  for (uint32_t k = 0; k < *n_outputs && k < room; k++) {
    outputs[k] = f.tensors[f.n_inputs + k];
    outputs[k].shape = sizes[k];
    outputs[k].strides = NULL;
    memcpy(sizes[k], f.tensors[f.n_inputs + k].shape, (size_t)outputs[k].ndim * sizeof(int64_t));
  }
  cuplug_free_blocks(f.blocks);
  return CUPLUG_OK;
}
