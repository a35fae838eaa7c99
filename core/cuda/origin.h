/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on GPUs by number, and whether one, or its inputs, have a fault. Private to cuda/calls.c:
 * others include cuda/calls.h. */
#ifndef CUPLUG_CORE_CUDA_ORIGIN_H
#define CUPLUG_CORE_CUDA_ORIGIN_H

#include "cuda/driver.h"
#include "cuda/fault.h"

#include <pthread.h>
#include <stdatomic.h>

/* An origin: the number of the call in its group (6 bits), of the group (20), and how often the
 * group was used (38), from 1 on. */
#define CUPLUG__GROUP_BITS 6
#define CUPLUG__USE_BITS 26
#define CUPLUG__MAX_GROUPS (1 << (CUPLUG__USE_BITS - CUPLUG__GROUP_BITS))
#define CUPLUG__N_FEW 3

typedef struct cuplug__gpu_call {
  const cuplug__callable *overload;
  uint64_t number;                    /* in the order of the thread's calls */
  uint32_t owner;                     /* of the log then */
  uint32_t is_raised;                 /* under the lock */
  uint32_t n_origins;                 /* of its inputs */
  uint64_t few[CUPLUG__N_FEW], *many; /* these: `many` if they are more */
  uint64_t walk;                      /* under the lock: the last walk that visited it */
  struct cuplug__gpu_call *next;      /* in that walk */
} cuplug__gpu_call;

/* The state of a call with a fault, its own or an earlier call's, after its record is reused. */
typedef struct cuplug__fault_note {
  struct cuplug__fault_note *next; /* newer ones first */
  uint64_t origin;
  const cuplug__callable *overload;
  cuplug_fault fault;
} cuplug__fault_note;

/* Calls of one thread on one stream. */
typedef struct cuplug__group {
  struct cuplug__group *next; /* in one of the log's lists */
  struct cuplug__log *log;
  cuplug__fault_block *block; /* the records */
  void *stream;
  int32_t device;
  int is_captured;
  int is_own_graph;                    /* its launches are seen; under the lock */
  CUevent event;                       /* of `device` */
  uint64_t moment;                     /* of the last call, if no event marks its end; else 0 */
  _Atomic uint64_t first;              /* the origin of call 0 */
  _Atomic(cuplug__fault_note *) notes; /* written under the lock */
  _Atomic uint32_t n_calls;            /* those below are complete */
  cuplug__gpu_call calls[CUPLUG__N_RECORDS];
} cuplug__group;

/* The groups of a thread. Another thread takes it over when that thread has ended. */
typedef struct cuplug__log {
  struct cuplug__log *next;
  int is_owned;      /* under the lock */
  uint32_t owner;    /* changes with the thread; under the lock */
  uint32_t *summary; /* the address in all its records */
  uint64_t n_calls;
  cuplug__group *open;        /* one for each stream, the last call's first */
  cuplug__group *full, **end; /* the oldest first */
} cuplug__log;

extern pthread_mutex_t cuplug__calls_lock;
/* Newest first; added to under the lock. */
extern _Atomic(cuplug__log *) cuplug__logs;
extern _Atomic(cuplug__group *) cuplug__groups[CUPLUG__MAX_GROUPS];

static inline cuplug__group *cuplug__group_of(uint64_t origin) {
  const uint64_t index = origin >> CUPLUG__GROUP_BITS & (CUPLUG__MAX_GROUPS - 1);
  return atomic_load_explicit(&cuplug__groups[index], memory_order_acquire);
}

/* The group of an origin while the call's record is its own; else NULL. */
static inline cuplug__group *cuplug__live_group_of(uint64_t origin) {
  cuplug__group *g = cuplug__group_of(origin);
  const uint64_t first = atomic_load_explicit(&g->first, memory_order_acquire);
  return first >> CUPLUG__USE_BITS == origin >> CUPLUG__USE_BITS ? g : NULL;
}

static inline cuplug__gpu_call *cuplug__live_call(uint64_t origin) {
  cuplug__group *g = cuplug__live_group_of(origin);
  return g ? &g->calls[origin & ((1 << CUPLUG__GROUP_BITS) - 1)] : NULL;
}

static inline uint32_t cuplug__n_calls(const cuplug__group *g) {
  return atomic_load_explicit(&g->n_calls, memory_order_acquire);
}

/* Returns whether a fault was ever found, or may exist: reads one word of each thread. From then
 * on, the code after it is worth its time. */
int cuplug__may_be_bad(void);
void cuplug__note_bad(void);

/* A fault of a call, or of one whose results it has read; both NULL without. Under the lock. */
typedef struct cuplug__outcome {
  const cuplug__callable *overload;
  const cuplug_fault *fault;
} cuplug__outcome;
cuplug__outcome cuplug__find_fault(uint64_t origin);
void cuplug__add_note(uint64_t origin, const cuplug__callable *overload, const cuplug_fault *fault);
void cuplug__drop_notes(cuplug__group *g);

#endif
