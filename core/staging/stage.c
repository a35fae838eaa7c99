/* SPDX-License-Identifier: Apache-2.0 */
/* Offloaded host arrays: described, then coalesced or in slices if that pays, or whole, or, if the
 * GPU's memory has no room, in parts as large as fit. */
#include "staging/stage.h"

#include "base/layout.h"
#include "base/status.h"
#include "cuda/channel.h"
#include "cuda/fault.h"
#include "cuda/gpus.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "entry/entry.h"
#include "entry/services.h"
#include "staging/coalesced.h"
#include "staging/slices.h"
#include "staging/staged_call.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* The part under way. */
typedef struct part {
  cuplug__staged_call *staged;
  cuplug__channel *channel;
  uint64_t first, n;                  /* rows */
  void *blocks[CUPLUG_MAX_ARGUMENTS]; /* device memory */
  int is_back;                        /* some of it may be: it must not be run again */
} part;

/* ---- One part, step by step ------------------------------------------------------------------ */

/* All memory is allocated before any transfer: if it does not suffice, little is lost. */
static int allocate(part *p) {
  const cuplug__run *run = p->staged->run;
  int status = CUPLUG_OK;
  for (uint32_t k = 0; k < p->staged->n_arrays && !status; k++) {
    const cuplug__staged_array *x = &p->staged->arrays[k];
    if (x->is_known)
      status = cuplug__device_allocate(run->device.id, cuplug__staged_array_bytes(x, p->n),
                                       run->stream, &p->blocks[k], run->error);
  }
  return status;
}

static int transfer(part *p, uint32_t k, int to_host) {
  const cuplug__staged_array *x = &p->staged->arrays[k];
  if (!(to_host ? x->is_received : x->is_sent)) return CUPLUG_OK;
  return cuplug__transfer(p->channel, to_host, &x->view, cuplug__staged_array_place(x, p->first),
                          p->blocks[k], cuplug__staged_array_bytes(x, p->n), &p->staged->tracker,
                          p->staged->run->error);
}

static int run_entry(part *p) {
  cuplug__run *run = p->staged->run;
  cuplug__staged_call_bind_rows(p->staged, p->n, p->blocks);
  int status = cuplug__call_entry(run);
  for (uint32_t k = run->frame->n_inputs; k < p->staged->n_arrays; k++) /* which the entry
                                                                           requested */
    if (!p->staged->arrays[k].is_known) p->blocks[k] = run->tensors[k].data;
  if (status) return status;
  status = cuplug__prefix_operator_name(run, cuplug__stream_synchronize(run->stream, run->error));
  if (status) return status;
  cuplug__staged_call_offset_fault(p->staged, run->fault, p->first);
  return cuplug__fault_take(run->fault, run->overload, run->error);
}

/* Memory on the host for an output whose size the run has found. */
static int give_memory(part *p, uint32_t k) {
  const cuplug__run *run = p->staged->run;
  cuplug__staged_array *x = &p->staged->arrays[k];
  int status = cuplug__allocate_output(run, k, (cuplug_device){CUPLUG_CPU, 0});
  x->bytes = (uint64_t)cuplug__n_bytes(&run->tensors[k]);
  x->is_received = !status;
  cuplug__view_bytes(&x->view, run->frame->tensors[k].data, x->bytes);
  return status;
}

static int receive(part *p) {
  int status = CUPLUG_OK;
  p->is_back = 1;
  for (uint32_t k = 0; k < p->staged->n_arrays && !status; k++) {
    if (!p->staged->arrays[k].is_known && p->blocks[k]) status = give_memory(p, k);
    if (!status) status = transfer(p, k, 1);
  }
  return status;
}

static int run_part(part *p) {
  const cuplug__run *run = p->staged->run;
  p->is_back = 0;
  int status = allocate(p);
  for (uint32_t k = 0; k < p->staged->n_arrays && !status; k++) status = transfer(p, k, 0);
  cuplug__prefix_operator_name(run, status);
  if (!status) status = run_entry(p);
  if (!status) status = cuplug__prefix_operator_name(run, receive(p));
  for (uint32_t k = 0; k < p->staged->n_arrays; k++) {
    cuplug__device_free(p->blocks[k], run->stream, NULL);
    p->blocks[k] = NULL;
  }
  return status;
}

/* ---- All parts ------------------------------------------------------------------------------- */

CUPLUG__COLD static void explain_memory(const cuplug__staged_call *s) {
  const cuplug_frame *f = s->run->frame;
  cuplug_error *error = s->run->error;
  const char *before = "; the call needs";
  for (uint32_t k = 0; k < f->n_tensors; k++) {
    char name[CUPLUG__NAME_BYTES];
    if (!s->arrays[k].is_known) continue;
    cuplug__name_tensor(name, s->run->overload, k, f->n_inputs);
    cuplug__append(error, "%s %s (%lld bytes)", before, name,
                   (long long)cuplug__n_bytes(&f->tensors[k]));
    before = ",";
  }
  cuplug__append(error, " at once: %s",
                 s->n_rows > 1 || s->is_share ? "one step of the loop dimensions is that large"
                 : f->loop_ndim               ? "its loop dimensions cannot be split"
                                              : "its signature has no loop dimensions");
}

/* How many rows to try after n were too many; 0: it cannot be less. */
static uint64_t fewer_rows(cuplug__staged_call *s, uint64_t n) {
  if (n > 1) return (n + 1) / 2;
  return s->n_rows == 1 && !s->is_share && cuplug__staged_call_rows(s) ? (s->n_rows + 1) / 2 : 0;
}

static int run_all(part *p) {
  cuplug__staged_call *s = p->staged;
  uint64_t n_done = 0;
  int status = CUPLUG_OK;
  if (!s->is_share) cuplug__staged_call_whole(s);
  uint64_t most = s->n_rows;
  while (!status && n_done < s->n_rows) {
    p->first = s->first_row + n_done;
    p->n = cuplug__min(most, s->n_rows - n_done);
    status = run_part(p);
    if (!status) {
      n_done += p->n;
    } else if (status == CUPLUG_ERROR_MEMORY && !p->is_back) {
      most = fewer_rows(s, p->n);
      if (!most) return explain_memory(s), status;
      cuplug__clear(s->run->error);
      status = CUPLUG_OK;
    }
  }
  return status;
}

/* Describes the arrays, and runs the call. After an error the outputs and in-out arrays hold the
 * results of earlier parts. */
static int run_parts(cuplug__staged_call *s) {
  cuplug__run *run = s->run;
  part p = {.staged = s};
  int status = cuplug__channel_acquire(run->device.id, &p.channel, run->error);
  if (status) return cuplug__prefix_operator_name(run, status);
  run->stream = p.channel->stream;
  run->fault = p.channel->faults->records;
  status = run_all(&p);
  cuplug__channel_release(p.channel);
  return status;
}

/* ---- One way after the other ----------------------------------------------------------------- */

static int run_slices(cuplug__staged_call *s) {
  const int32_t device = s->run->device.id;
  int status = cuplug__gpu_slot_acquire(device, &s->tracker, s->run->error);
  if (status) return status;
  status = cuplug__run_slices(s);
  cuplug__gpu_slot_release(device);
  return status;
}

static int run_staged(cuplug__staged_call *s) {
  int status = s->is_share ? CUPLUG__NOT_RUN : cuplug__run_coalesced(s);
  if (status == CUPLUG__NOT_RUN && (s->is_share || cuplug__staged_call_rows(s)) &&
      cuplug__suits_slices(s))
    status = run_slices(s);
  if (status == CUPLUG__NOT_RUN) status = run_parts(s);
  return status ? status : cuplug__progress_tracker_end(&s->tracker, s->run->error);
}

int cuplug__run_staged(cuplug__run *run, uint64_t first_row, uint64_t n_rows) {
  cuplug__staged_call *s = cuplug__staged_call_new(run);
  if (!s) return CUPLUG_ERROR_MEMORY;
  run->frame->offloaded = 1;
  s->is_share = n_rows > 0;
  if (s->is_share) {
    cuplug__staged_call_rows(s);
    s->first_row = first_row;
    s->n_rows = n_rows;
  }
  cuplug__progress_tracker_start(&s->tracker, run->frame->progress, run->frame->user,
                                 s->is_share ? n_rows * s->row_bytes : cuplug__staged_bytes(run));
  const int status = run_staged(s);
  free(s);
  return status;
}

/* ---- Turns ----------------------------------------------------------------------------------- */

#define PERIOD_NS 100000000 /* after which a waiting thread reports */
#define N_PERIODS 20        /* after which it continues in any case */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_given = PTHREAD_COND_INITIALIZER;
static int n_running[CUPLUG__MAX_GPUS]; /* under the lock */
static _Thread_local int n_own;

/* 1 with a slot, 0 after a period without one. */
static int begin(int32_t device, int at_most) {
  struct timespec end;
  int code = 0;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_nsec += PERIOD_NS;
  if (end.tv_nsec >= 1000000000) end.tv_nsec -= 1000000000, end.tv_sec++;
  pthread_mutex_lock(&lock);
  while (!code && n_running[device] >= at_most)
    code = pthread_cond_timedwait(&is_given, &lock, &end);
  const int has_turn = n_running[device] < at_most;
  n_running[device] += has_turn;
  pthread_mutex_unlock(&lock);
  return has_turn;
}

int cuplug__gpu_slot_acquire(int32_t device, cuplug__progress_tracker *tracker,
                             cuplug_error *error) {
  for (int k = n_own ? N_PERIODS : 0; !begin(device, k < N_PERIODS ? CUPLUG__GPU_SLOTS : INT32_MAX);
       k++) {
    int status = cuplug__progress_tracker_add(tracker, 0, error);
    if (status) return status;
  }
  n_own++;
  return CUPLUG_OK;
}

void cuplug__gpu_slot_release(int32_t device) {
  pthread_mutex_lock(&lock);
  n_running[device]--;
  pthread_cond_broadcast(&is_given);
  pthread_mutex_unlock(&lock);
  n_own--;
}
