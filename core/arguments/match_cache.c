/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments/match_cache.h"

#include "arguments/match.h"
#include "base/dtype.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static uint64_t add_argument(uint64_t key, const cuplug_argument *a) {
  const cuplug_tensor *t = &a->tensor;
  key = key * 31 + (a->kind | (uint64_t)a->flags << 8);
  if (a->kind == CUPLUG_ARGUMENT_DTYPE) return key * 31 + cuplug__id_of(a->scalar.dtype);
  if (a->kind != CUPLUG_ARGUMENT_ARRAY) return key;
  key = key * 31 + cuplug_type(t);
  if (t->shape && t->ndim > 0 && t->ndim <= CUPLUG__KNOWN_DIMS)
    key = (key * 31 + (uint64_t)t->shape[0]) * 31 + (uint64_t)t->shape[t->ndim - 1];
  return key;
}

/* A hash of an operator and of its arrays' flags, dtypes, and first and last sizes, so that several
 * operators, and alternating shapes and dtypes, are all found. A list is represented by its first
 * item. No argument is checked yet. */
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

/* The match of a key; NULL if none is cached. */
static cuplug__cached_match *match_of(cuplug__known_all *own, uint64_t key) {
  cuplug__known_set *set = &own->sets[key >> 60];
  for (uint32_t k = 0; k < CUPLUG__KNOWN_WAYS; k++)
    if (set->of[k].key == key && set->of[k].number) return &set->of[k];
  return NULL;
}

cuplug__cached_match *cuplug__known_other(cuplug__known_all *own, const cuplug_operator *op,
                                          const cuplug_argument *args, uint32_t n_args) {
  cuplug__cached_match *known = match_of(own, key_of(op, args, n_args));
  return known == own->last[op->number % CUPLUG__KNOWN_LAST] ? NULL : known;
}

/* ---- The cache of a thread, until it ends ---------------------------------------------------- */

_Thread_local cuplug__known_all *cuplug__own_matches;
static pthread_key_t key_of_end;
static int has_key;

static void forget(void *matches) {
  cuplug__own_matches = NULL;
  free(matches);
}

static void make_key(void) { has_key = !pthread_key_create(&key_of_end, forget); }

/* Pages of it that are never used are not made. NULL: no memory. */
static cuplug__known_all *make_memory(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (cuplug__own_matches) return cuplug__own_matches;
  if (pthread_once(&once, make_key) || !has_key) return NULL;
  cuplug__known_all *own = calloc(1, sizeof *own);
  if (!own || pthread_setspecific(key_of_end, own)) return free(own), NULL;
  return cuplug__own_matches = own;
}

/* ---- Stored ---------------------------------------------------------------------------------- */

/* The slot for the match of a key, which replaces another; NULL if a call in progress uses it. */
static cuplug__cached_match *place_for(cuplug__known_all *own, uint64_t key) {
  cuplug__known_set *set = &own->sets[key >> 60];
  cuplug__cached_match *known = match_of(own, key);
  if (!known) known = &set->of[set->next++ % CUPLUG__KNOWN_WAYS];
  cuplug__again *again = &own->again[key >> 60][known - set->of];
  if (again->state == CUPLUG__AGAIN_BUSY) return NULL;
  again->state = CUPLUG__AGAIN_NEW;
  known->again = again;
  return known;
}

/* Which row is the first candidate follows from the kinds of all arguments. */
static int keep_kinds(const cuplug__match *m, const cuplug_operator *op, int is_first,
                      cuplug__cached_match *known) {
  known->n_others = 0;
  for (uint32_t i = 0; op->rows && i < m->n_args; i++) {
    if (m->args[i].kind == CUPLUG_ARGUMENT_ARRAY) continue;
    if (!is_first || known->n_others == CUPLUG__KNOWN_OTHERS) return 0;
    known->others[known->n_others] = (uint8_t)i;
    known->kinds[known->n_others++] = (uint8_t)m->args[i].kind;
  }
  return 1;
}

/* Lists that are None are rare, and not cached. */
static int keep_lists(const cuplug__match *m, cuplug__cached_match *known) {
  const cuplug_signature *s = m->s;
  known->n_single = (uint32_t)(s->n_parameters - s->n_scalars);
  known->n_lists = 0;
  if (m->frame->blocks) return 0;
  for (int32_t i = 0; i < s->n_parameters; i++) {
    if (s->parameters[i].kind != CUPLUG_PARAMETER_ARRAYS) continue;
    const cuplug_argument *a = cuplug__argument(m, i);
    if (a->kind != CUPLUG_ARGUMENT_LIST || known->n_lists == CUPLUG__KNOWN_LISTS) return 0;
    known->lists[known->n_lists] = (uint8_t)i;
    known->lengths[known->n_lists++] = a->list.n;
  }
  return 1;
}

/* The argument that input k of a match was, where the lists are as long. */
static inline const cuplug_argument *input(const cuplug__cached_match *known,
                                           const cuplug_argument *args, uint32_t k) {
  if (k < known->n_single) return &args[known->parameter[k]];
  k -= known->n_single;
  uint32_t list = 0;
  while (k >= known->lengths[list]) k -= known->lengths[list++];
  return &args[known->lists[list]].list.items[k];
}

/* The sizes of arrays determine computed sizes, unless there are other scalars. */
static int can_be_kept(const cuplug__match *m) {
  const cuplug_frame *f = m->frame;
  if (m->broadcasts || f->copy_mask || (m->s->has_formulas && m->s->n_scalars > m->s->n_lists) ||
      m->s->n_variables > CUPLUG__KNOWN_TYPES || f->n_tensors > CUPLUG__KNOWN_ARRAYS ||
      f->loop_ndim > CUPLUG__KNOWN_DIMS)
    return 0;
  for (uint32_t k = 0; k < f->n_tensors; k++)
    if (f->tensors[k].ndim < 0 || f->tensors[k].ndim > CUPLUG__KNOWN_DIMS || f->tensors[k].strides)
      return 0;
  return 1;
}

void cuplug__match_cache_store(const cuplug__match *m, const cuplug_operator *op, uint32_t row,
                               int is_first) {
  const cuplug_frame *f = m->frame;
  if (!op->number || !can_be_kept(m)) return;
  cuplug__known_all *own = make_memory();
  if (!own) return;
  const uint64_t key = key_of(op, m->args, m->n_args);
  cuplug__cached_match *known = place_for(own, key);
  if (!known) return;
  own->last[op->number % CUPLUG__KNOWN_LAST] = known;
  known->number = 0; /* for the case that it cannot be kept */
  if (!keep_kinds(m, op, is_first, known) || !keep_lists(m, known)) return;
  known->key = key;
  known->number = op->number;
  known->signature = m->s;
  known->row = row;
  known->largest_bytes = m->largest_bytes;
  known->needs_no_scalar_match = !m->s->n_scalars && !m->inout_mask;
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
    cuplug__known_array *x = &known->arrays[k];
    x->at = f->parameter[k] * sizeof(cuplug_argument);
    x->like.kind = CUPLUG_ARGUMENT_ARRAY;
    x->like.flags = k < f->n_inputs ? input(known, m->args, k)->flags : 0;
    x->like.tensor = (cuplug_tensor){.device = t->device, .ndim = t->ndim, .dtype = t->dtype};
    for (int32_t d = 0; d < t->ndim; d++) x->shape[d] = t->shape[d];
    x->n_bytes = f->n_bytes[k];
    x->address_mask = m->s->parameters[f->parameter[k]].address_mask;
  }
}

static inline __attribute__((always_inline)) int
restore_inputs(const cuplug__cached_match *known, const cuplug_argument *args, cuplug_frame *f) {
  for (uint32_t k = 0; k < known->n_inputs; k++) {
    const cuplug_argument *a = input(known, args, k);
    if (!cuplug__is_alike(a, &known->arrays[k])) return 0;
    f->tensors[k] = a->tensor;
    f->tensors[k].strides = NULL;
    f->n_bytes[k] = known->arrays[k].n_bytes;
  }
  return 1;
}

static inline __attribute__((always_inline)) int restore(const cuplug__cached_match *known,
                                                         const cuplug_argument *args, void *to) {
  cuplug_frame *f = to;
  if (!restore_inputs(known, args, f)) return 0;
  f->signature = known->signature;
  memcpy(f->parameter, known->parameter, sizeof known->parameter);
  f->n_tensors = known->n_tensors;
  f->n_inputs = known->n_inputs;
  f->copy_mask = f->unaligned_stride_mask = f->none_mask = f->supplied_mask = 0;
  f->n_scalars = f->n_stored = f->n_items = 0;
  f->home = known->home;
  f->loop_ndim = known->loop_ndim;
  memcpy(f->loop_shape, known->loop_shape, sizeof known->loop_shape);
  for (uint32_t k = known->n_inputs; k < known->n_tensors; k++) {
    const cuplug__known_array *x = &known->arrays[k];
    int64_t *shape = f->storage + f->n_stored; /* there is room for all of them */
    f->tensors[k] = x->like.tensor;
    f->tensors[k].shape = memcpy(shape, x->shape, sizeof x->shape);
    f->n_stored += CUPLUG__KNOWN_DIMS;
    f->n_bytes[k] = x->n_bytes;
  }
  return 1;
}

const cuplug__cached_match *cuplug__match_cache_find(const cuplug_operator *op,
                                                     const cuplug_argument *args, uint32_t n_args,
                                                     cuplug_frame *f) {
  return cuplug__find_known(op, args, n_args, restore, f);
}
