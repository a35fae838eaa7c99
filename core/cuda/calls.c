/* SPDX-License-Identifier: Apache-2.0 */
/* Calls are grouped by thread and stream, 63 to a group. An event marks the end of a full group.
 * After that event the thread uses the group's records again, and keeps a note of each fault.
 * Captured calls keep their records, because each launch of the graph writes to them. */
#include "cuda/calls.h"

#include "base/status.h"
#include "cuda/driver.h"
#include "cuda/gpus.h"
#include "cuda/origin.h"
#include "cuda/stream.h"

#include <internal/functions.h>
#include <stdlib.h>

#define MAX_OPEN 64 /* streams of one thread with a group that is not full */

static uint32_t n_groups;               /* under the lock */
static uint64_t idle[CUPLUG__MAX_GPUS]; /* also: the moment up to which all work is done */
static _Atomic uint64_t moments = 1;
static _Thread_local cuplug__log *mine;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- Faults that were not raised before ------------------------------------------------------ */

/* The fault was raised on its thread. The record of a captured call is cleared for the next launch
 * of the graph. A note keeps the fault until then, but only if cuplug sees that launch. */
static void note_told(cuplug__group *g, cuplug__gpu_call *c) {
  cuplug_fault *fault = &g->block->records[c - g->calls];
  c->is_raised = !g->is_captured;
  if (!g->is_captured || !cuplug__fault_is_told(fault)) return;
  if (g->is_own_graph) cuplug__add_note(g->first + (uint64_t)(c - g->calls), c->overload, fault);
  cuplug__fault_clear(fault);
}

static void leave_for_later(const cuplug__group *g) {
  __atomic_store_n(g->log->summary, 1, __ATOMIC_SEQ_CST);
}

/* Under the lock. Raises faults of the calls of one log's thread, or of all. */
static int raise_first(cuplug__log *only, cuplug_error *error) {
  cuplug__group *of_first = NULL;
  cuplug__gpu_call *first = NULL;
  for (cuplug__log *l = only ? only : cuplug__logs; l; l = only ? NULL : l->next)
    __atomic_store_n(l->summary, 0, __ATOMIC_SEQ_CST);
  for (uint32_t i = 0; i < n_groups; i++) {
    cuplug__group *g = cuplug__groups[i];
    if (only && g->log != only) continue;
    for (uint32_t k = 0; k < cuplug__n_calls(g); k++) {
      cuplug__gpu_call *c = &g->calls[k];
      const cuplug_fault *fault = &g->block->records[k];
      if (!cuplug__fault_is_claimed(fault) || c->is_raised) continue;
      if (only && c->owner != only->owner) continue;
      const int is_first = cuplug__fault_is_told(fault) && (!first || c->number < first->number);
      /* Other faults are left for the next time, and so is one that is being written: its summary
       * may already have arrived. */
      if (!is_first) leave_for_later(g);
      if (is_first && first) leave_for_later(of_first);
      if (is_first) first = c, of_first = g;
    }
  }
  if (!first) return CUPLUG_OK;
  const cuplug_fault *fault = &of_first->block->records[first - of_first->calls];
  const int status = cuplug__fault_raise(fault, first->overload, error);
  note_told(of_first, first);
  return status;
}

static int check(cuplug__log *only, cuplug_error *error) {
  pthread_mutex_lock(&cuplug__calls_lock);
  cuplug__note_bad();
  const int status = raise_first(only, error);
  pthread_mutex_unlock(&cuplug__calls_lock);
  return status;
}

int cuplug__calls_check(cuplug_error *error) {
  if (!mine || !cuplug__driver_ready()) return CUPLUG_OK;
  return __atomic_load_n(mine->summary, __ATOMIC_ACQUIRE) ? check(mine, error) : CUPLUG_OK;
}

int cuplug__calls_check_all(cuplug_error *error) {
  return cuplug__driver_ready() && cuplug__may_be_bad() ? check(NULL, error) : CUPLUG_OK;
}

int cuplug_check_origin(uint64_t origin, cuplug_error *error) {
  int status = CUPLUG_OK;
  if (!origin || !cuplug__driver_ready() || !cuplug__may_be_bad()) return CUPLUG_OK;
  pthread_mutex_lock(&cuplug__calls_lock);
  cuplug__note_bad();
  const cuplug__outcome found = cuplug__find_fault(origin);
  if (found.fault) status = cuplug__fault_raise(found.fault, found.overload, error);
  cuplug__group *g = found.fault ? cuplug__live_group_of(origin) : NULL;
  if (g && g->log == mine && cuplug__live_call(origin)->owner == mine->owner)
    note_told(g, cuplug__live_call(origin));
  pthread_mutex_unlock(&cuplug__calls_lock);
  return status;
}

void cuplug__calls_again(const void *stream) {
  if (!cuplug__driver_ready()) return;
  pthread_mutex_lock(&cuplug__calls_lock);
  for (uint32_t i = 0; i < n_groups; i++) {
    cuplug__group *g = cuplug__groups[i];
    if (!g->is_captured || g->stream != stream) continue;
    g->is_own_graph = 1;
    cuplug__drop_notes(g);
  }
  pthread_mutex_unlock(&cuplug__calls_lock);
}

/* ---- Groups, under the lock ------------------------------------------------------------------ */

/* All work of the device that was begun before `moment` is done. */
static void note_idle(int32_t device, uint64_t moment) {
  pthread_mutex_lock(&cuplug__calls_lock);
  if (moment > idle[device]) idle[device] = moment;
  pthread_mutex_unlock(&cuplug__calls_lock);
}

int cuplug_synchronize(int32_t device, void *stream, int whole_device, cuplug_error *error) {
  CUPLUG__ENTER_OR_RETURN(device, error);
  const uint64_t moment = atomic_load(&moments);
  int status = whole_device ? cuplug__cuda_check(error, cuplug__driver.cuCtxSynchronize(),
                                                 "waiting for the device")
                            : cuplug__stream_synchronize(CUPLUG__STREAM(stream), error);
  if (status) return status;
  if (!whole_device) return cuplug__calls_check(error);
  note_idle(device, moment);
  return cuplug__calls_check_all(error);
}

static int is_done(const cuplug__group *g) {
  if (g->moment) return g->moment <= idle[g->device];
  return cuplug__driver.cuEventQuery(g->event) == 0;
}

/* Returns whether the group's records may serve other calls: its faults have been raised. */
static int forget(cuplug__group *g) {
  const uint64_t first = g->first;
  const int bad = cuplug__may_be_bad();
  for (uint32_t k = 0; bad && k < CUPLUG__N_RECORDS && k < cuplug__n_calls(g); k++)
    if (cuplug__fault_is_claimed(&g->block->records[k]) && !g->calls[k].is_raised) return 0;
  for (uint32_t k = 0; k < cuplug__n_calls(g); k++) {
    const cuplug__outcome found =
        bad ? cuplug__find_fault(first + k) : (cuplug__outcome){NULL, NULL};
    if (found.fault) cuplug__add_note(first + k, found.overload, found.fault);
  }
  for (uint32_t k = 0; k < cuplug__n_calls(g); k++) {
    free(g->calls[k].many);
    if (bad) cuplug__fault_clear(&g->block->records[k]);
  }
  atomic_store_explicit(&g->n_calls, 0, memory_order_release);
  atomic_store_explicit(&g->first, first + ((uint64_t)1 << CUPLUG__USE_BITS), memory_order_release);
  return 1;
}

/* One of the log's full groups, if its work is done. */
static cuplug__group *take_done(cuplug__log *l, int32_t device) {
  for (cuplug__group **at = &l->full; *at; at = &(*at)->next) {
    cuplug__group *g = *at;
    if (g->device != device) continue;
    if (!is_done(g) && !g->moment) return NULL; /* later ones are hardly done before */
    if (!is_done(g) || !forget(g)) continue;
    *at = g->next;
    if (!*at) l->end = at;
    return g;
  }
  return NULL;
}

static int make_group(cuplug__log *l, int32_t device, cuplug__group **made, cuplug_error *error) {
  static const char what[] = "making a fault record";
  if (n_groups == CUPLUG__MAX_GROUPS)
    return cuplug__fail(error, CUPLUG_ERROR_MEMORY, "%s: %d are in use", what,
                        CUPLUG__MAX_GROUPS * CUPLUG__N_RECORDS);
  cuplug__group *new = calloc(1, sizeof *new);
  if (!new) return cuplug__no_memory(error, what);
  int status = cuplug__fault_block_make(&new->block, error);
  if (!status)
    status = cuplug__cuda_check(
        error, cuplug__driver.cuEventCreate(&new->event, CUPLUG__EVENT_NO_TIMING), what);
  if (status) {
    free(new);
    return status;
  }
  if (!l->summary) l->summary = &new->block->summary;
  for (int k = 0; k < CUPLUG__N_RECORDS; k++) new->block->records[k].summary = l->summary;
  new->log = l;
  new->device = device;
  new->first = (uint64_t)1 << CUPLUG__USE_BITS | (uint64_t)n_groups << CUPLUG__GROUP_BITS;
  atomic_store_explicit(&cuplug__groups[n_groups++], new, memory_order_release);
  *made = new;
  return CUPLUG_OK;
}

/* The group, which was removed from the open ones, gets no more calls. */
static void close_group(cuplug__log *l, cuplug__group *g, int is_alive) {
  if (g->is_captured) return; /* each launch of the graph uses it */
  const int has_event = is_alive && !cuplug__driver.cuEventRecord(g->event, g->stream);
  g->moment = has_event ? 0 : atomic_fetch_add(&moments, 1) + 1;
  g->next = NULL;
  *l->end = g;
  l->end = &g->next;
}

static int is_for(const cuplug__group *g, int32_t device, const void *stream, int is_captured) {
  return g->stream == stream && g->device == device && g->is_captured == is_captured;
}

/* Removes the group for a stream from the open ones, and one that must make room for others. */
static cuplug__group *take_open(cuplug__log *l, int32_t device, void *stream, int is_captured) {
  cuplug__group **at = &l->open;
  for (int n = 1; *at; n++) {
    cuplug__group *g = *at;
    const int is_it = is_for(g, device, stream, is_captured);
    if (is_it || n > MAX_OPEN) *at = g->next;
    if (is_it) return g;
    if (n > MAX_OPEN)
      close_group(l, g, 0); /* its stream may be gone */
    else
      at = &g->next;
  }
  return NULL;
}

/* Makes a group with a free record for the stream the first of the open ones. */
static int open_group(cuplug__log *l, int32_t device, void *stream, int is_captured,
                      cuplug_error *error) {
  int status = CUPLUG_OK;
  cuplug__group *g = take_open(l, device, stream, is_captured);
  if (g && cuplug__n_calls(g) == CUPLUG__N_RECORDS) {
    close_group(l, g, 1);
    g = NULL;
  }
  if (!g) g = take_done(l, device);
  if (!g) status = make_group(l, device, &g, error);
  if (status) return status;
  g->stream = stream;
  g->is_captured = is_captured;
  g->next = l->open;
  l->open = g;
  return CUPLUG_OK;
}

/* ---- Logs ------------------------------------------------------------------------------------ */

static void leave(void *any) {
  mine = NULL;
  pthread_mutex_lock(&cuplug__calls_lock);
  ((cuplug__log *)any)->is_owned = 0;
  pthread_mutex_unlock(&cuplug__calls_lock);
}

static void make_key(void) { pthread_key_create(&key, leave); }

/* Under the lock. */
static int own_log(int32_t device, cuplug_error *error) {
  cuplug__group *g;
  cuplug__log *l = cuplug__logs;
  while (l && l->is_owned) l = l->next;
  if (!l) {
    l = calloc(1, sizeof *l);
    if (!l) return cuplug__no_memory(error, "making a fault record");
    l->end = &l->full;
    const int status = make_group(l, device, &g, error);
    if (status) {
      free(l);
      return status;
    }
    *l->end = g; /* as one that is done */
    l->end = &g->next;
    l->next = cuplug__logs;
    atomic_store_explicit(&cuplug__logs, l, memory_order_release);
  }
  l->is_owned = 1;
  l->owner++;
  pthread_setspecific(key, l);
  mine = l;
  return CUPLUG_OK;
}

/* The slow path: pins memory, queries events, takes the lock. */
static __attribute__((noinline)) int prepare(int32_t device, void *stream, int is_captured,
                                             cuplug_error *error) {
  CUPLUG__RELAXED mode = cuplug__capture_allow_unsafe();
  pthread_once(&once, make_key);
  pthread_mutex_lock(&cuplug__calls_lock);
  int status = mine ? CUPLUG_OK : own_log(device, error);
  if (!status) status = open_group(mine, device, stream, is_captured, error);
  pthread_mutex_unlock(&cuplug__calls_lock);
  return status;
}

/* Returns whether the origin of an array can already matter. */
static int is_pending(uint64_t origin) {
  if (!origin || cuplug__live_group_of(origin)) return origin != 0;
  return atomic_load_explicit(&cuplug__group_of(origin)->notes, memory_order_acquire) != NULL;
}

static int set_origins(cuplug__gpu_call *c, const uint64_t *origins, uint32_t n,
                       cuplug_error *error) {
  uint64_t *to = c->few;
  c->many = NULL;
  c->n_origins = 0;
  if (n > CUPLUG__N_FEW) {
    c->many = to = malloc(n * sizeof *to);
    if (!to) return cuplug__no_memory(error, "making a fault record");
  }
  for (uint32_t k = 0; k < n; k++)
    if (is_pending(origins[k])) to[c->n_origins++] = origins[k];
  return CUPLUG_OK;
}

int cuplug__calls_begin(const cuplug__callable *overload, int32_t device, void *stream,
                        const uint64_t *origins, uint32_t n_origins, cuplug_fault **fault,
                        uint64_t *origin, cuplug_error *error) {
  int is_captured = 0, status;
  const cuplug__group *open = mine ? mine->open : NULL;
  if (stream != CUPLUG__STREAM(NULL)) cuplug__capture_query(stream, &is_captured);
  if (!open || !is_for(open, device, stream, is_captured) ||
      cuplug__n_calls(open) == CUPLUG__N_RECORDS)
    if ((status = prepare(device, stream, is_captured, error))) return status;
  cuplug__group *g = mine->open;
  const uint32_t k = atomic_load_explicit(&g->n_calls, memory_order_relaxed);
  cuplug__gpu_call *c = &g->calls[k];
  if ((status = set_origins(c, origins, n_origins, error))) return status;
  c->overload = overload;
  c->number = mine->n_calls++;
  c->owner = mine->owner;
  c->is_raised = 0;
  c->walk = 0;
  atomic_store_explicit(&g->n_calls, k + 1, memory_order_release);
  *fault = &g->block->records[k];
  *origin = g->first + k;
  return CUPLUG_OK;
}
