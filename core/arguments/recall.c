/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments/recall.h"

#include "arguments/match.h"
#include "base/layout.h"
#include "base/own.h"
#include "registry/operator.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define N_SETS 16 /* of matches that a thread keeps: by four bits of their key */
#define N_WAYS 4  /* matches of a set */
#define N_LAST 16 /* operators whose last match is tried first */
#define MAX_ARRAYS 16
#define MAX_OTHERS 16
#define MAX_LISTS 4
#define MAX_DIMS 4
#define MAX_TYPES 16

typedef struct known_array {
  cuplug_argument like; /* without memory and strides; its shape is here: */
  int64_t shape[MAX_DIMS];
  int64_t n_bytes;        /* as in the frame */
  uintptr_t address_mask; /* as in the signature */
} known_array;

typedef struct known_match {
  cuplug__known known; /* first: who recalls it sees this alone */
  uint64_t key;        /* of the operator and what its arrays are */
  uint64_t number;     /* of the operator */
  const cuplug_signature *signature;
  uint32_t n_args, n_tensors, n_inputs;
  uint64_t inout_mask, known_types;
  cuplug_device home;
  uint32_t types[MAX_TYPES];
  uint32_t n_others; /* arguments that are no arrays, of operators with several rows */
  uint8_t others[MAX_OTHERS], kinds[MAX_OTHERS];
  uint32_t n_single, n_lists; /* arrays that are in no list; lists of arrays */
  uint8_t lists[MAX_LISTS];
  uint32_t lengths[MAX_LISTS];
  int32_t loop_ndim;
  int64_t loop_shape[MAX_DIMS];
  uint8_t parameter[MAX_ARRAYS];  /* as in the frame */
  known_array arrays[MAX_ARRAYS]; /* inputs, then outputs */
} known_match;

/* A kind and its flags, which are compared at once. */
#define HEAD_BYTES offsetof(cuplug_argument, tensor)
_Static_assert(HEAD_BYTES == 2 * sizeof(uint32_t), "there are no gaps");

/* One set of matches, of operators and shapes that share it. */
typedef struct known_set {
  known_match of[N_WAYS];
  uint32_t next; /* the one to be replaced */
} known_set;

static uint64_t add_argument(uint64_t key, const cuplug_argument *a) {
  const cuplug_tensor *t = &a->tensor;
  key = key * 31 + a->kind;
  if (a->kind == CUPLUG_ARGUMENT_DTYPE) return key * 31 + cuplug__id_of(a->scalar.dtype);
  if (a->kind != CUPLUG_ARGUMENT_ARRAY) return key;
  key = key * 31 + cuplug_type(t);
  if (t->shape && t->ndim > 0 && t->ndim <= MAX_DIMS)
    key = (key * 31 + (uint64_t)t->shape[0]) * 31 + (uint64_t)t->shape[t->ndim - 1];
  return key;
}

/* Of an operator and of its arrays' dtypes and first and last sizes, so that several operators, and
 * shapes and dtypes that come in turn, are all known. Of a list the first item stands for all.
 * Nothing of the arguments is checked yet. */
static uint64_t key_of(const cuplug_operator *op, const cuplug_argument *args, uint32_t n_args) {
  uint64_t key = op->number;
  for (uint32_t i = 0; i < n_args && i < CUPLUG_MAX_ARGUMENTS; i++) {
    const cuplug_argument *a = &args[i];
    key = add_argument(key, a);
    if (a->kind == CUPLUG_ARGUMENT_LIST && a->list.n && a->list.items)
      key = add_argument(key * 31 + a->list.n, a->list.items);
  }
  return key * 0x9e3779b97f4a7c15;
}

/* What a thread keeps: allocated by its first match. */
typedef struct memory {
  known_match *last[N_LAST]; /* of operators of these numbers */
  known_set sets[N_SETS];
} memory;

/* The thread's; NULL where there is none. */
static memory *own_memory(void) { return cuplug__own_for(CUPLUG__OWN_MATCHES)->memory; }

static memory *make_memory(void) {
  cuplug__own *own = cuplug__own_for(CUPLUG__OWN_MATCHES);
  if (!own->memory) cuplug__own_grow(own, sizeof(memory));
  return own->memory;
}

/* The match of a key; NULL where none is kept. */
static known_match *find(memory *own, uint64_t key) {
  known_set *set = &own->sets[key >> 60];
  for (uint32_t k = 0; k < N_WAYS; k++)
    if (set->of[k].key == key && set->of[k].number) return &set->of[k];
  return NULL;
}

/* Where the match of a key is to be kept, in place of another. */
static known_match *place_for(memory *own, uint64_t key) {
  known_set *set = &own->sets[key >> 60];
  known_match *known = find(own, key);
  return known ? known : &set->of[set->next++ % N_WAYS];
}

/* Which row is the first candidate follows from the kinds of all arguments. */
static int keep_kinds(const cuplug__match *m, const cuplug_operator *op, int is_first,
                      known_match *known) {
  known->n_others = 0;
  for (uint32_t i = 0; op->rows && i < m->n_args; i++) {
    if (m->args[i].kind == CUPLUG_ARGUMENT_ARRAY) continue;
    if (!is_first || known->n_others == MAX_OTHERS) return 0;
    known->others[known->n_others] = (uint8_t)i;
    known->kinds[known->n_others++] = (uint8_t)m->args[i].kind;
  }
  return 1;
}

/* Lists that are None are rare: not kept. */
static int keep_lists(const cuplug__match *m, known_match *known) {
  const cuplug_signature *s = m->s;
  known->n_single = (uint32_t)(s->n_parameters - s->n_scalars);
  known->n_lists = 0;
  if (m->frame->blocks) return 0;
  for (int32_t i = 0; i < s->n_parameters; i++) {
    if (s->parameters[i].kind != CUPLUG_PARAMETER_ARRAYS) continue;
    const cuplug_argument *a = cuplug__argument(m, i);
    if (a->kind != CUPLUG_ARGUMENT_LIST || known->n_lists == MAX_LISTS) return 0;
    known->lists[known->n_lists] = (uint8_t)i;
    known->lengths[known->n_lists++] = a->list.n;
  }
  return 1;
}

/* The argument that input k of a match was, where the lists are as long. */
static inline const cuplug_argument *input(const known_match *known, const cuplug_argument *args,
                                           uint32_t k) {
  if (k < known->n_single) return &args[known->parameter[k]];
  k -= known->n_single;
  uint32_t list = 0;
  while (k >= known->lengths[list]) k -= known->lengths[list++];
  return &args[known->lists[list]].list.items[k];
}

/* Sizes that are worked out follow from those of arrays, unless there are other scalars. */
static int can_be_kept(const cuplug__match *m) {
  const cuplug_frame *f = m->frame;
  if (m->broadcasts || f->copy_mask || (m->s->has_formulas && m->s->n_scalars > m->s->n_lists) ||
      m->s->n_variables > MAX_TYPES || f->n_tensors > MAX_ARRAYS || f->loop_ndim > MAX_DIMS)
    return 0;
  for (uint32_t k = 0; k < f->n_tensors; k++)
    if (f->tensors[k].ndim < 0 || f->tensors[k].ndim > MAX_DIMS || f->tensors[k].strides) return 0;
  return 1;
}

void cuplug__remember(const cuplug__match *m, const cuplug_operator *op, uint32_t row,
                      int is_first) {
  const cuplug_frame *f = m->frame;
  if (!op->number || !can_be_kept(m)) return;
  memory *own = make_memory();
  if (!own) return;
  const uint64_t key = key_of(op, m->args, m->n_args);
  known_match *known = place_for(own, key);
  own->last[op->number % N_LAST] = known;
  known->number = 0; /* for the case that it cannot be kept */
  if (!keep_kinds(m, op, is_first, known) || !keep_lists(m, known)) return;
  known->key = key;
  known->number = op->number;
  known->signature = m->s;
  known->known.row = row;
  known->known.most_bytes = m->most_bytes;
  known->known.is_settled = !m->s->n_scalars && !m->inout_mask;
  known->n_args = m->n_args;
  known->n_tensors = f->n_tensors;
  known->n_inputs = f->n_inputs;
  known->inout_mask = m->inout_mask;
  known->known_types = m->known_types;
  known->home = f->home;
  memcpy(known->types, m->types, sizeof known->types);
  known->loop_ndim = f->loop_ndim;
  for (int32_t d = 0; d < f->loop_ndim; d++) known->loop_shape[d] = f->loop_shape[d];
  memcpy(known->parameter, f->parameter, sizeof known->parameter);
  for (uint32_t k = 0; k < f->n_tensors; k++) {
    const cuplug_tensor *t = &f->tensors[k];
    known_array *x = &known->arrays[k];
    x->like.kind = CUPLUG_ARGUMENT_ARRAY;
    x->like.flags = k < f->n_inputs ? input(known, m->args, k)->flags : 0;
    x->like.tensor = (cuplug_tensor){.device = t->device, .ndim = t->ndim, .dtype = t->dtype};
    for (int32_t d = 0; d < t->ndim; d++) x->shape[d] = t->shape[d];
    x->n_bytes = f->n_bytes[k];
    x->address_mask = m->s->parameters[f->parameter[k]].address_mask;
  }
}

/* Whether an array is like one of a match before; offsets are rare: looked at by matching. */
static inline int is_alike(const cuplug_argument *a, const known_array *x) {
  const cuplug_tensor *t = &a->tensor;
  if (memcmp(a, &x->like, HEAD_BYTES) ||
      memcmp(&t->device, &x->like.tensor.device, CUPLUG__TYPE_BYTES) || !t->shape)
    return 0;
  for (int32_t d = 0; d < x->like.tensor.ndim; d++)
    if (t->shape[d] != x->shape[d]) return 0;
  if (((uintptr_t)t->strides | t->byte_offset) && (t->byte_offset || !cuplug__is_contiguous(t)))
    return 0;
  return !((uintptr_t)t->data & x->address_mask) && (t->data || !x->n_bytes);
}

static inline int restore_inputs(const known_match *known, const cuplug_argument *args,
                                 cuplug_frame *f) {
  for (uint32_t k = 0; k < known->n_inputs; k++) {
    const cuplug_argument *a = input(known, args, k);
    if (!is_alike(a, &known->arrays[k])) return 0;
    f->tensors[k] = a->tensor;
    f->tensors[k].strides = NULL;
    f->n_bytes[k] = known->arrays[k].n_bytes;
  }
  return 1;
}

static inline void restore_outputs(const known_match *known, cuplug_frame *f) {
  for (uint32_t k = known->n_inputs; k < known->n_tensors; k++) {
    const known_array *x = &known->arrays[k];
    cuplug_tensor *t = &f->tensors[k];
    *t = x->like.tensor;
    t->shape = f->storage + f->n_stored; /* of 1024 words: there is room for MAX_DIMS of each */
    memcpy(t->shape, x->shape, sizeof x->shape);
    f->n_stored += MAX_DIMS;
    f->n_bytes[k] = x->n_bytes;
  }
}

static inline __attribute__((always_inline)) int restore(const known_match *known,
                                                         const cuplug_operator *op,
                                                         const cuplug_argument *args,
                                                         uint32_t n_args, cuplug_frame *f) {
  if (known->number != op->number || known->n_args != n_args) return 0;
  for (uint32_t k = 0; k < known->n_others; k++)
    if (args[known->others[k]].kind != known->kinds[k]) return 0;
  for (uint32_t k = 0; k < known->n_lists; k++) {
    const cuplug_argument *a = &args[known->lists[k]];
    if (a->kind != CUPLUG_ARGUMENT_LIST || a->list.n != known->lengths[k]) return 0;
  }
  if (!restore_inputs(known, args, f)) return 0;
  f->signature = known->signature;
  memcpy(f->parameter, known->parameter, sizeof known->parameter);
  f->n_tensors = known->n_tensors;
  f->n_inputs = known->n_inputs;
  f->copy_mask = f->odd_mask = f->none_mask = f->supplied_mask = 0;
  f->n_scalars = f->n_stored = f->n_items = 0;
  f->home = known->home;
  f->loop_ndim = known->loop_ndim;
  memcpy(f->loop_shape, known->loop_shape, sizeof known->loop_shape);
  restore_outputs(known, f);
  return 1;
}

void cuplug__recall_types(const cuplug__known *of, cuplug__match *m) {
  const known_match *known = (const known_match *)of;
  m->s = known->signature;
  m->n_matched = (int32_t)known->n_inputs;
  m->inout_mask = known->inout_mask;
  m->item = -1;
  m->known_types = known->known_types;
  if (known->known_types) memcpy(m->types, known->types, sizeof known->types);
}

const cuplug__known *cuplug__recall(const cuplug_operator *op, const cuplug_argument *args,
                                    uint32_t n_args, cuplug_frame *f) {
  memory *own = own_memory();
  if (!own || !op->number) return NULL;
  known_match **last = &own->last[op->number % N_LAST], *known = *last;
  for (int is_found = 0;; is_found = 1) {
    if (known && restore(known, op, args, n_args, f)) return &known->known;
    if (is_found) return NULL;
    known_match *other = find(own, key_of(op, args, n_args));
    if (!other || other == known) return NULL;
    *last = known = other;
  }
}
