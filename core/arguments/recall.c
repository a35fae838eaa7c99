/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments/recall.h"

#include "arguments/match.h"
#include "base/layout.h"
#include "registry/operator.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define N_SETS 16 /* of matches that a thread keeps: by four bits of their key */
#define N_WAYS 2  /* matches of a set */
#define N_LAST 16 /* operators whose last match is tried first */
#define MAX_ARRAYS 16
#define MAX_DIMS 4
#define MAX_TYPES 16

typedef struct known_array {
  cuplug_argument like; /* without memory and strides; its shape is here: */
  int64_t shape[MAX_DIMS];
} known_array;

typedef struct known_match {
  uint64_t key;    /* of the operator and the first array's shape */
  uint64_t number; /* of the operator; 0: none is kept */
  uint32_t row, n_args, n_tensors, n_inputs, takes_strides;
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

/* One set of matches, of operators and shapes that share it. */
typedef struct known_set {
  known_match of[N_WAYS];
  uint32_t next; /* the one to be replaced */
} known_set;

/* Of an operator and of its first array's first and last size, so that several operators, and
 * shapes that come in turn, are all known. Nothing of the arguments is checked yet. */
static inline uint64_t key_of(const cuplug_operator *op, const cuplug__match *m) {
  uint64_t sizes = 0;
  if (m->n_args && m->args[0].kind == CUPLUG_ARGUMENT_ARRAY) {
    const cuplug_tensor *t = &m->args[0].tensor;
    if (t->shape && t->ndim > 0 && t->ndim <= MAX_DIMS)
      sizes = (uint64_t)t->shape[0] + 31 * (uint64_t)t->shape[t->ndim - 1];
  }
  return (op->number << 40 ^ sizes) * 0x9e3779b97f4a7c15;
}

/* What a thread keeps: allocated by its first match, as its stack, where thread-local data lies,
 * may be small. */
typedef struct memory {
  known_match *last[N_LAST]; /* of operators of these numbers */
  known_set sets[N_SETS];
} memory;

/* A function, so that the compiler does not look for the thread's data at each use. */
static __attribute__((noinline)) memory **own_memory(void) {
  static _Thread_local memory *own;
  return &own;
}

static pthread_key_t thread_end;
static int has_thread_end;

static void forget(void *own) {
  *own_memory() = NULL;
  free(own);
}

static void make_thread_end(void) { has_thread_end = !pthread_key_create(&thread_end, forget); }

/* The thread's memory; NULL where there is none to be had. */
static memory *make_memory(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  memory **own = own_memory();
  if (*own || pthread_once(&once, make_thread_end) || !has_thread_end) return *own;
  memory *made = calloc(1, sizeof *made);
  if (made && pthread_setspecific(thread_end, made)) free(made), made = NULL;
  return *own = made;
}

/* The match of a key, or, with `is_new`, the one to be replaced by it. */
static known_match *place_of(memory *own, uint64_t key, int is_new) {
  known_set *set = &own->sets[key >> 60];
  if (set->of[0].key == key) return &set->of[0];
  if (!is_new || set->of[1].key == key) return &set->of[1];
  return &set->of[set->next++ % N_WAYS];
}

static int can_be_kept(const cuplug__match *m, const cuplug__overload *o) {
  const cuplug_frame *f = m->frame;
  if (o->reshape || m->broadcasts || f->copy_mask || m->s->has_formulas || m->s->n_lists ||
      m->s->n_variables > MAX_TYPES || f->n_tensors > MAX_ARRAYS || f->loop_ndim > MAX_DIMS)
    return 0;
  for (uint32_t k = 0; k < f->n_tensors; k++)
    if (f->tensors[k].ndim < 0 || f->tensors[k].ndim > MAX_DIMS ||
        !cuplug__is_contiguous(&f->tensors[k]))
      return 0;
  return 1;
}

void cuplug__remember(const cuplug__match *m, const cuplug_operator *op, uint32_t row) {
  const cuplug_frame *f = m->frame;
  if (!op->number || !can_be_kept(m, &op->overloads[row])) return;
  memory *own = make_memory();
  if (!own) return;
  const uint64_t key = key_of(op, m);
  known_match *known = own->last[op->number % N_LAST] = place_of(own, key, 1);
  known->key = key;
  known->number = op->number;
  known->row = row;
  known->takes_strides = op->overloads[row].row->flags & CUPLUG_ROW_TAKES_STRIDES;
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

/* Rows that take strides are given them always. */
static __attribute__((noinline)) void write_strides(cuplug_frame *f) {
  for (uint32_t k = 0; k < f->n_tensors; k++) {
    cuplug_tensor *t = &f->tensors[k];
    t->strides = f->storage + f->n_stored;
    f->n_stored += (uint32_t)t->ndim;
    cuplug__contiguous_strides(t->ndim, t->shape, t->strides);
  }
}

static int32_t restore(const known_match *known, cuplug__match *m, const cuplug_operator *op) {
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
  if (known->takes_strides) write_strides(f);
  return (int32_t)known->row;
}

int32_t cuplug__recall(cuplug__match *m, const cuplug_operator *op) {
  memory *own = *own_memory();
  if (!own) return -1;
  known_match **last = &own->last[op->number % N_LAST], *known = *last;
  const int32_t row = known ? restore(known, m, op) : -1;
  if (row >= 0) return row;
  *last = place_of(own, key_of(op, m), 0);
  return *last == known ? -1 : restore(*last, m, op);
}
