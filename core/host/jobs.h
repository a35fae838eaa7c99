/* SPDX-License-Identifier: Apache-2.0 */
/* Loops in progress, whose chunks threads take without a lock.
 *
 * The chunks of a job are divided into shares. Each thread begins with the share of its own number,
 * so that loops over the same arrays find them in its caches, and continues with the shares of
 * others. A thread that joins a job has a chunk of it, so that its owner never waits for a thread
 * that has not begun. Jobs are in static memory: threads may read one that is over. */
#ifndef CUPLUG_CORE_HOST_JOBS_H
#define CUPLUG_CORE_HOST_JOBS_H

#include <cuplug/plugin.h>
#include <stdint.h>

typedef struct cuplug__job cuplug__job;

/* n items in chunks of `grain`, the last one shorter. */
typedef struct cuplug__loop {
  cuplug_body *body;
  void *context;
  int64_t n, grain;
  int n_helpers; /* maximum number of threads, without the owner */
} cuplug__loop;

/* A chunk that a thread has taken. */
typedef struct cuplug__taken {
  cuplug__job *job;
  int share;
  int64_t n_left; /* chunks of the share, this one included */
} cuplug__taken;

int64_t cuplug__loop_chunks(const cuplug__loop *loop);
/* Runs all of it on the calling thread. Returns CUPLUG_OK, or the result of a chunk. */
int cuplug__loop_alone(const cuplug__loop *loop);

/* Threads may join now. Chunks of one share are taken in their order. NULL: too many jobs. */
cuplug__job *cuplug__job_open(const cuplug__loop *loop, int n_shares);
/* Takes part as thread `number`, waits for threads that joined, and returns like loop_alone. */
int cuplug__job_close(cuplug__job *job, int number);
/* Chunks that no thread has taken, counted up to `most`; for owners and workers. */
int cuplug__job_left(cuplug__job *job, int most);
/* The field of its loop; for owners and workers. */
int cuplug__job_helpers(const cuplug__job *job);

/* The number of jobs that may have chunks left, from one word. */
int cuplug__jobs_open(void);
/* Takes a chunk of the share of this number, or, with `any`, of any share. Returns 0 without. */
int cuplug__jobs_join(int number, int any, cuplug__taken *taken);
/* Runs the taken chunk and all that are left. The job may be over afterwards. */
void cuplug__job_help(const cuplug__taken *taken);

/* Resets the jobs in a child process, which does not own its parent's. */
void cuplug__jobs_forget(void);

/* ---- Waiting --------------------------------------------------------------------------------- */

int64_t cuplug__now_ns(void);
/* Leaves the CPU's resources to others for some cycles. */
void cuplug__pause(void);

/* Sleeps while the word is 1; may return earlier. This and `wake` do not change errno. */
void cuplug__sleep(_Atomic uint32_t *word);
/* Wakes a thread that sleeps at the word. */
void cuplug__wake(_Atomic uint32_t *word);

#endif
