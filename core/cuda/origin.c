/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/origin.h"

#include <stdlib.h>

#define MAX_NOTES 4096 /* of one group; the oldest are dropped */

pthread_mutex_t cuplug__calls_lock = PTHREAD_MUTEX_INITIALIZER;
_Atomic(cuplug__log *) cuplug__logs;
_Atomic(cuplug__group *) cuplug__groups[CUPLUG__MAX_GROUPS];
static uint64_t n_walks;       /* under the lock */
static _Atomic int has_faults; /* set at the first fault, and never cleared */

static void free_notes(cuplug__fault_note *all) {
  for (cuplug__fault_note *next; all; all = next) next = all->next, free(all);
}

void cuplug__add_note(uint64_t origin, const cuplug__callable *overload,
                      const cuplug_fault *fault) {
  cuplug__group *g = cuplug__group_of(origin);
  cuplug__fault_note *new = malloc(sizeof *new);
  if (!new) return; /* the fault is lost: no memory to store it */
  *new = (cuplug__fault_note){g->notes, origin, overload, *fault};
  atomic_store_explicit(&g->notes, new, memory_order_release);
  for (int n = 1; n < MAX_NOTES && new; n++) new = new->next;
  if (!new) return;
  free_notes(new->next);
  new->next = NULL;
}

void cuplug__drop_notes(cuplug__group *g) {
  cuplug__fault_note *all = atomic_exchange(&g->notes, NULL);
  free_notes(all);
}

int cuplug__may_be_bad(void) {
  if (atomic_load_explicit(&has_faults, memory_order_relaxed)) return 1;
  for (cuplug__log *l = atomic_load_explicit(&cuplug__logs, memory_order_acquire); l; l = l->next)
    if (__atomic_load_n(l->summary, __ATOMIC_ACQUIRE)) return 1;
  return 0;
}

void cuplug__note_bad(void) { atomic_store_explicit(&has_faults, 1, memory_order_relaxed); }

static cuplug__outcome look_at(cuplug__group *g, uint64_t origin, cuplug__gpu_call *c) {
  const cuplug_fault *fault = c ? &g->block->records[c - g->calls] : NULL;
  if (fault && cuplug__fault_is_told(fault)) return (cuplug__outcome){c->overload, fault};
  const cuplug__fault_note *n = atomic_load_explicit(&g->notes, memory_order_relaxed);
  while (n && n->origin != origin) n = n->next;
  return n ? (cuplug__outcome){n->overload, &n->fault} : (cuplug__outcome){NULL, NULL};
}

/* Visits a call, and puts it before the others whose origins are still to be visited. */
static cuplug__outcome walk_to(uint64_t origin, cuplug__gpu_call **ahead) {
  cuplug__group *g = cuplug__group_of(origin);
  cuplug__gpu_call *c = cuplug__live_call(origin);
  if (c && c->walk == n_walks) return (cuplug__outcome){NULL, NULL};
  const cuplug__outcome found = look_at(g, origin, c);
  if (c) c->walk = n_walks, c->next = *ahead, *ahead = c;
  return found;
}

cuplug__outcome cuplug__find_fault(uint64_t origin) {
  cuplug__gpu_call *ahead = NULL;
  n_walks++;
  cuplug__outcome found = walk_to(origin, &ahead);
  while (!found.fault && ahead) {
    const cuplug__gpu_call *at = ahead;
    const uint64_t *origins = at->many ? at->many : at->few;
    ahead = ahead->next;
    for (uint32_t k = 0; k < at->n_origins && !found.fault; k++)
      found = walk_to(origins[k], &ahead);
  }
  return found;
}
