/* SPDX-License-Identifier: Apache-2.0 */
/* The matches that each thread made last, of several operators and shapes. Most calls have arrays
 * of the dtypes and shapes of an earlier call, whose match is known. */
#ifndef CUPLUG_CORE_ARGUMENTS_MATCH_CACHE_H
#define CUPLUG_CORE_ARGUMENTS_MATCH_CACHE_H

#include "arguments/match.h"
#include "base/layout.h"
#include "base/status.h"
#include "registry/plugin.h"

#include <internal/frame.h>
#include <string.h>

#define CUPLUG__KNOWN_SETS 16 /* of matches that a thread caches: by four bits of their key */
#define CUPLUG__KNOWN_WAYS 4  /* matches of a set */
#define CUPLUG__KNOWN_LAST 16 /* operators whose last match is tried first */
#define CUPLUG__KNOWN_ARRAYS 16
#define CUPLUG__KNOWN_OTHERS 16
#define CUPLUG__KNOWN_LISTS 4
#define CUPLUG__KNOWN_DIMS 4
#define CUPLUG__KNOWN_TYPES 16
#define CUPLUG__CALL_WORDS 64

typedef struct cuplug__known_array {
  uint64_t at;          /* bytes of the arguments before it, if it is in no list */
  cuplug_argument like; /* without memory and strides; its shape is here: */
  int64_t shape[CUPLUG__KNOWN_DIMS];
  int64_t n_bytes;        /* as in the frame */
  uintptr_t address_mask; /* as in the signature */
} cuplug__known_array;

typedef enum cuplug__again_state {
  CUPLUG__AGAIN_NEW,   /* the frame is not filled */
  CUPLUG__AGAIN_READY, /* the frame needs only addresses and scalars */
  CUPLUG__AGAIN_BUSY,  /* during the entry, which may itself call: neither used nor replaced */
  CUPLUG__AGAIN_NEVER  /* calls like it do not use it */
} cuplug__again_state;

/* The filled data for repeated calls: core/call/again.c. Unused pages of it are not allocated. */
typedef struct cuplug__again {
  cuplug__again_state state;
  cuplug_frame frame;
  uint64_t call[CUPLUG__CALL_WORDS];
  cuplug_error error; /* empty between calls */
} cuplug__again;

typedef struct cuplug__cached_match {
  uint64_t number; /* of the operator */
  uint32_t n_args, n_inputs, n_tensors;
  uint32_t row;
  uint32_t n_others, n_lists; /* arguments that are not arrays, of operators with several
                                 overloads; lists of arrays */
  uint32_t n_single;          /* arrays that are in no list */
  uint32_t
      needs_no_scalar_match; /* 1: no scalars, and no in-out arrays, which may overlap others */
  int64_t largest_bytes;     /* of one array */
  cuplug__again *again;
  uint64_t key; /* of the operator and the kinds of its arrays */
  const cuplug_signature *signature;
  uint64_t inout_mask, known_types;
  cuplug_device home;
  uint32_t types[CUPLUG__KNOWN_TYPES];
  uint8_t others[CUPLUG__KNOWN_OTHERS], kinds[CUPLUG__KNOWN_OTHERS];
  uint8_t lists[CUPLUG__KNOWN_LISTS];
  uint32_t lengths[CUPLUG__KNOWN_LISTS];
  int32_t loop_ndim;
  int64_t loop_shape[CUPLUG__KNOWN_DIMS];
  uint8_t parameter[CUPLUG__KNOWN_ARRAYS];          /* as in the frame */
  cuplug__known_array arrays[CUPLUG__KNOWN_ARRAYS]; /* inputs, then outputs */
} cuplug__cached_match;

/* One set of matches, of operators and shapes that share it. */
typedef struct cuplug__known_set {
  cuplug__cached_match of[CUPLUG__KNOWN_WAYS];
  uint32_t next; /* the one to be replaced */
} cuplug__known_set;

/* The cache of a thread: allocated by its first match. */
typedef struct cuplug__known_all {
  cuplug__cached_match *last[CUPLUG__KNOWN_LAST]; /* of operators of these numbers */
  cuplug__known_set sets[CUPLUG__KNOWN_SETS];
  cuplug__again again[CUPLUG__KNOWN_SETS][CUPLUG__KNOWN_WAYS]; /* of these matches */
} cuplug__known_all;

extern __attribute__((visibility("hidden"))) _Thread_local cuplug__known_all *cuplug__own_matches;

/* The match of arguments that have its key, and that the thread did not use last; else NULL. */
cuplug__cached_match *cuplug__known_other(cuplug__known_all *own, const cuplug_operator *op,
                                          const cuplug_argument *args, uint32_t n_args);

/* Not 0 if kind, flags, device, number of dimensions or dtype differ. */
static inline uint64_t cuplug__differs(const cuplug_argument *a, const cuplug_argument *b) {
  uint64_t x[3], y[3];
  memcpy(x, a, sizeof *x), memcpy(y, b, sizeof *y);
  memcpy(x + 1, &a->tensor.device, CUPLUG__TYPE_BYTES);
  memcpy(y + 1, &b->tensor.device, CUPLUG__TYPE_BYTES);
  return (x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]);
}
_Static_assert(offsetof(cuplug_argument, tensor) == sizeof(uint64_t), "there are no gaps");

/* 1 if an array is like one of an earlier match; offsets are rare: matching checks them. */
static inline int cuplug__is_alike(const cuplug_argument *a, const cuplug__known_array *x) {
  const cuplug_tensor *t = &a->tensor;
  const int64_t *shape = t->shape;
  if (cuplug__differs(a, &x->like) | t->byte_offset || !shape) return 0;
  const int32_t n = x->like.tensor.ndim;
  if (n > 0 && shape[0] != x->shape[0]) return 0;
  for (int32_t d = 1; d < n; d++)
    if (shape[d] != x->shape[d]) return 0;
  if (!cuplug__is_contiguous(t) || (uintptr_t)t->data & x->address_mask) return 0;
  return t->data || !x->n_bytes;
}

/* 1 if the arguments that are not arrays have the kinds, and lists the lengths, of a match. */
static inline int cuplug__has_kinds(const cuplug__cached_match *known,
                                    const cuplug_argument *args) {
  for (uint32_t k = 0; k < known->n_others; k++)
    if (args[known->others[k]].kind != known->kinds[k]) return 0;
  for (uint32_t k = 0; k < known->n_lists; k++) {
    const cuplug_argument *a = &args[known->lists[k]];
    if (a->kind != CUPLUG_ARGUMENT_LIST || a->list.n != known->lengths[k]) return 0;
  }
  return 1;
}

/* Compares the arrays with a match, and restores the frame. Returns 0 if they differ, and -1 if
 * they need not be compared with other matches. */
typedef int cuplug__restore(const cuplug__cached_match *known, const cuplug_argument *args,
                            void *to);

/* The match whose arguments are like these, restored; else NULL. */
static inline __attribute__((always_inline)) const cuplug__cached_match *
cuplug__find_known(const cuplug_operator *op, const cuplug_argument *args, uint32_t n_args,
                   cuplug__restore *restore, void *to) {
  cuplug__known_all *own = cuplug__own_matches;
  if (!own || !op->number) return NULL;
  cuplug__cached_match **last = &own->last[op->number % CUPLUG__KNOWN_LAST], *known = *last;
  for (int is_found = 0;; is_found = 1) {
    int state = 0;
    if (known && known->number == op->number && known->n_args == n_args &&
        ((!known->n_others && !known->n_lists) || cuplug__has_kinds(known, args)))
      state = restore(known, args, to);
    if (state) return state > 0 ? known : NULL;
    if (is_found) return NULL;
    cuplug__cached_match *other = cuplug__known_other(own, op, args, n_args);
    if (!other) return NULL;
    *last = known = other;
  }
}

/* Stores a match whose arrays, including all in lists, are present, contiguous, of few
 * dimensions and not broadcast; for outputs, the shapes that they have before they are reshaped. If
 * earlier overloads might have taken arguments of these kinds, the match must not have other
 * values, for which those overloads would be searched again. */
void cuplug__match_cache_store(const cuplug__match *m, const cuplug_operator *op, uint32_t row,
                               int is_first);

/* Returns the match that this thread has stored for an operator and arguments like these, with its
 * result, except the scalars, in the frame; else NULL. Valid until the thread's next match. */
const cuplug__cached_match *cuplug__match_cache_find(const cuplug_operator *op,
                                                     const cuplug_argument *args, uint32_t n_args,
                                                     cuplug_frame *f);

#endif
