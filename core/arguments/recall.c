/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments/recall.h"

#include "arguments/match.h"
#include "base/layout.h"
#include "registry/operator.h"

#include <stddef.h>
#include <string.h>

#define N_KEPT 4 /* operators in turn of which a thread keeps one match each */
#define MAX_ARRAYS 16
#define MAX_DIMS 4
#define MAX_TYPES 16

typedef struct known_array {
  cuplug_argument like; /* without memory and strides; its shape is here: */
  int64_t shape[MAX_DIMS];
} known_array;

typedef struct known_match {
  uint64_t number; /* of the operator; 0: none is kept */
  uint32_t row, n_args, n_tensors, n_inputs;
  uint64_t inout_mask, known_types;
  cuplug_device home;
  int64_t most_bytes;
  uint32_t types[MAX_TYPES];
  int32_t loop_ndim;
  int64_t loop_shape[MAX_DIMS];
  uint8_t parameter[MAX_ARRAYS];  /* as in the frame */
  int64_t n_bytes[MAX_ARRAYS];    /* as in the match */
  known_array arrays[MAX_ARRAYS]; /* inputs, then outputs */
} known_match;

/* What is compared at once: a kind and its flags; a tensor's device, ndim and dtype. */
enum {
  HEAD_BYTES = offsetof(cuplug_argument, tensor),
  TYPE_BYTES = offsetof(cuplug_tensor, shape) - offsetof(cuplug_tensor, device)
};
_Static_assert(HEAD_BYTES == 2 * sizeof(uint32_t) &&
                   TYPE_BYTES == sizeof(cuplug_device) + sizeof(int32_t) + sizeof(cuplug_dtype),
               "there are no gaps");

/* Where this thread keeps that of an operator. A function, so that the compiler does not look for
 * the thread's memory at each use. */
static __attribute__((noinline)) known_match *place_of(const cuplug_operator *op) {
  static _Thread_local known_match kept[N_KEPT];
  return &kept[op->number % N_KEPT];
}

static int can_be_kept(const cuplug__match *m, const cuplug__overload *o) {
  const cuplug_frame *f = m->frame;
  if (m->takes_strides || o->reshape || m->broadcasts || f->copy_mask || m->s->has_formulas ||
      m->s->n_lists || m->s->n_variables > MAX_TYPES || f->n_tensors > MAX_ARRAYS ||
      f->loop_ndim > MAX_DIMS)
    return 0;
  for (uint32_t k = 0; k < f->n_tensors; k++)
    if (f->tensors[k].ndim < 0 || f->tensors[k].ndim > MAX_DIMS) return 0;
  return 1;
}

void cuplug__remember(const cuplug__match *m, const cuplug_operator *op, uint32_t row) {
  const cuplug_frame *f = m->frame;
  known_match *known = place_of(op);
  if (!op->number || !can_be_kept(m, &op->overloads[row])) return;
  known->number = op->number;
  known->row = row;
  known->n_args = m->n_args;
  known->n_tensors = f->n_tensors;
  known->n_inputs = f->n_inputs;
  known->inout_mask = m->inout_mask;
  known->known_types = m->known_types;
  known->home = f->home;
  known->most_bytes = m->most_bytes;
  memcpy(known->types, m->types, sizeof known->types);
  known->loop_ndim = f->loop_ndim;
  for (int32_t d = 0; d < f->loop_ndim; d++) known->loop_shape[d] = f->loop_shape[d];
  memcpy(known->parameter, f->parameter, sizeof known->parameter);
  memcpy(known->n_bytes, m->n_bytes, f->n_inputs * sizeof *known->n_bytes);
  for (uint32_t k = 0; k < f->n_tensors; k++) {
    const cuplug_tensor *t = &f->tensors[k];
    known_array *x = &known->arrays[k];
    x->like.kind = CUPLUG_ARGUMENT_ARRAY;
    x->like.flags = k < f->n_inputs ? m->args[f->parameter[k]].flags : 0;
    x->like.tensor = (cuplug_tensor){.device = t->device, .ndim = t->ndim, .dtype = t->dtype};
    for (int32_t d = 0; d < t->ndim; d++) x->shape[d] = t->shape[d];
  }
}

static inline int is_alike(const cuplug_argument *a, const known_array *x, int64_t n_bytes) {
  const cuplug_tensor *t = &a->tensor;
  if (memcmp(a, &x->like, HEAD_BYTES) || memcmp(&t->device, &x->like.tensor.device, TYPE_BYTES))
    return 0;
  if (t->byte_offset || !t->shape) return 0; /* rare: looked at by matching */
  for (int32_t d = 0; d < t->ndim; d++)
    if (t->shape[d] != x->shape[d]) return 0;
  if (!cuplug__is_contiguous(t)) return 0;
  return t->data || !n_bytes;
}

int32_t cuplug__recall(cuplug__match *m, const cuplug_operator *op) {
  const known_match *known = place_of(op);
  const cuplug_argument *args = m->args;
  cuplug_frame *f = m->frame;
  if (known->number != op->number || known->n_args != m->n_args || !op->number) return -1;
  for (uint32_t k = 0; k < known->n_inputs; k++) {
    const cuplug_argument *a = &args[known->parameter[k]];
    cuplug_tensor *t = &f->tensors[k];
    if (!is_alike(a, &known->arrays[k], known->n_bytes[k])) return -1;
    *t = known->arrays[k].like.tensor;
    t->data = a->tensor.data;
    t->shape = a->tensor.shape;
    m->n_bytes[k] = known->n_bytes[k];
  }
  m->s = f->signature = op->overloads[known->row].signature;
  m->takes_strides = m->broadcasts = 0;
  m->most_bytes = known->most_bytes;
  m->n_matched = (int32_t)known->n_inputs;
  m->item = -1;
  m->inout_mask = known->inout_mask;
  m->known_types = known->known_types;
  if (m->n_matched < m->s->n_parameters) /* for the scalars */
    memcpy(m->types, known->types, sizeof known->types);
  memcpy(f->parameter, known->parameter, sizeof known->parameter);
  f->n_tensors = known->n_tensors;
  f->n_inputs = known->n_inputs;
  f->copy_mask = f->odd_mask = f->none_mask = 0;
  f->n_scalars = f->n_stored = f->n_items = 0;
  f->home = known->home;
  f->loop_ndim = known->loop_ndim;
  for (int32_t d = 0; d < known->loop_ndim; d++) f->loop_shape[d] = known->loop_shape[d];
  for (uint32_t k = known->n_inputs; k < known->n_tensors; k++) {
    const known_array *x = &known->arrays[k];
    cuplug_tensor *t = &f->tensors[k];
    *t = x->like.tensor;
    t->shape = f->storage + f->n_stored;
    for (int32_t d = 0; d < t->ndim; d++) f->storage[f->n_stored++] = x->shape[d];
  }
  return (int32_t)known->row;
}
