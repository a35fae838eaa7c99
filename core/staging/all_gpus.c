/* SPDX-License-Identifier: Apache-2.0 */
#include "staging/all_gpus.h"

#include "base/layout.h"
#include "base/status.h"
#include "cuda/gpus.h"
#include "cuda/stream.h"
#include "entry/prepare.h"
#include "staging/stage.h"
#include "staging/staged_call.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

typedef struct spread spread;

/* The shard of one GPU. It owns everything that a run writes. */
typedef struct share {
  spread *all;
  cuplug__run run;
  cuplug_frame frame;
  cuplug_error error;
  uint64_t first_row, n_rows;
  _Atomic uint64_t done_bytes;
  pthread_t thread;
  int has_thread, status;
} share;

struct spread {
  cuplug_frame *frame; /* the caller's */
  uint64_t total_bytes;
  _Atomic int is_ended; /* by the caller's progress: the others are to follow */
  int is_reported;
  uint32_t n_shares;
  share shares[];
};

/* ---- Progress: the caller hears of all, on its own thread ------------------------------------ */

static int report_all(spread *s, cuplug_error *error) {
  uint64_t bytes = 0;
  for (uint32_t k = 0; k < s->n_shares; k++) bytes += s->shares[k].done_bytes;
  s->is_reported = 1;
  int status =
      s->frame->progress(s->frame->user, cuplug__min(bytes, s->total_bytes), s->total_bytes, error);
  if (status) s->is_ended = 1;
  return status;
}

static int report(void *user, uint64_t done_bytes, uint64_t total_bytes, cuplug_error *error) {
  share *mine = user;
  (void)total_bytes;
  mine->done_bytes = done_bytes;
  if (mine == mine->all->shares) return report_all(mine->all, error);
  if (!mine->all->is_ended) return CUPLUG_OK;
  return cuplug__fail(error, CUPLUG_ERROR_VALUE, "the call was cancelled");
}

/* ---- One share ------------------------------------------------------------------------------- */

static int run_rows(cuplug__run *run, uint64_t first_row, uint64_t n_rows) {
  CUPLUG__ENTERED context = cuplug__cuda_enter(run->device.id, run->error);
  if (context.status) return cuplug__prefix_operator_name(run, context.status);
  CUPLUG__RELAXED mode = cuplug__capture_allow_unsafe();
  int status = cuplug__ready_run(run);
  return status ? status : cuplug__run_staged(run, first_row, n_rows);
}

static void *run_in_thread(void *argument) {
  share *mine = argument;
  mine->status = run_rows(&mine->run, mine->first_row, mine->n_rows);
  return NULL;
}

/* ---- All shares ------------------------------------------------------------------------------ */

static void prepare_share(spread *s, const cuplug__run *run, uint32_t k, uint64_t n_rows) {
  share *mine = &s->shares[k];
  mine->all = s;
  mine->frame = *run->frame;
  mine->frame.progress = run->frame->progress ? report : NULL;
  mine->frame.user = mine;
  mine->run.frame = &mine->frame;
  mine->run.overload = run->overload;
  mine->run.error = &mine->error;
  mine->run.device = (cuplug_device){CUPLUG_CUDA, (int32_t)k};
  mine->run.tensors = mine->frame.tensors;
  mine->first_row = n_rows / s->n_shares * k + cuplug__min(k, n_rows % s->n_shares);
  mine->n_rows = n_rows / s->n_shares + (k < n_rows % s->n_shares);
}

/* Signals are for the threads of the program. */
static void start_threads(spread *s) {
  sigset_t all, previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  for (uint32_t k = 1; k < s->n_shares; k++)
    s->shares[k].has_thread =
        !pthread_create(&s->shares[k].thread, NULL, run_in_thread, &s->shares[k]);
  pthread_sigmask(SIG_SETMASK, &previous, NULL);
}

/* The caller runs the first one; if no threads are available, all. */
static void run_all(spread *s) {
  start_threads(s);
  for (uint32_t k = 0; k < s->n_shares; k++)
    if (!s->shares[k].has_thread) run_in_thread(&s->shares[k]);
  for (uint32_t k = 1; k < s->n_shares; k++)
    if (s->shares[k].has_thread) pthread_join(s->shares[k].thread, NULL);
}

/* The first error by rows, whichever came first. */
static int take_error(const spread *s, cuplug_error *error) {
  for (uint32_t k = 0; k < s->n_shares; k++)
    if (s->shares[k].status) {
      *error = s->shares[k].error;
      return s->shares[k].status;
    }
  return CUPLUG_OK;
}

static int run_spread(const cuplug__run *run, uint32_t n_shares, uint64_t n_rows) {
  spread *s = calloc(1, sizeof *s + n_shares * sizeof *s->shares);
  if (!s)
    return cuplug__prefix_operator_name(
        run, cuplug__no_memory(run->error, "describing a call's arrays"));
  s->frame = run->frame;
  s->n_shares = n_shares;
  s->total_bytes = cuplug__staged_bytes(run);
  for (uint32_t k = 0; k < n_shares; k++) prepare_share(s, run, k, n_rows);
  run_all(s);
  run->frame->offloaded = 1;
  int status = take_error(s, run->error);
  if (!status && s->is_reported)
    status = s->frame->progress(s->frame->user, s->total_bytes, s->total_bytes, run->error);
  free(s);
  return status;
}

/* Reports that it cannot be split, however small it is. */
static int count_shares(cuplug__run *run, uint32_t *n_shares, uint64_t *n_rows) {
  const uint64_t n_wanted = cuplug__staged_bytes(run) / CUPLUG__SHARD_BYTES;
  cuplug__staged_call *staged = cuplug__staged_call_new(run);
  if (!staged) return CUPLUG_ERROR_MEMORY;
  int status = cuplug__fail(run->error, CUPLUG_ERROR_VALUE,
                            "%s: device: got cuda:*, expected one GPU: ", run->frame->op->name);
  if (!cuplug__staged_call_explain(staged, run->error)) {
    cuplug__clear(run->error);
    status = CUPLUG_OK;
    *n_rows = cuplug__staged_call_rows(staged) ? staged->n_rows : 1;
    *n_shares = (uint32_t)cuplug__min(cuplug__min(n_wanted, *n_rows), (uint64_t)cuplug__n_gpus);
  }
  free(staged);
  return status;
}

int cuplug__run_on_all(cuplug__run *run) {
  uint32_t n_shares = 1;
  uint64_t n_rows;
  int status = cuplug__cuda_start(run->error);
  if (status) return cuplug__prefix_operator_name(run, status);
  status = count_shares(run, &n_shares, &n_rows);
  if (status) return status;
  if (n_shares > 1) return run_spread(run, n_shares, n_rows);
  run->device.id = 0;
  return run_rows(run, 0, 0);
}
