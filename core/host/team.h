/* SPDX-License-Identifier: Apache-2.0 */
/* One team of threads for the process: loops of plugins, of expressions and reductions, copies.
 *
 * Its threads are made when there is work for them, wait for more of it for some microseconds, and
 * sleep. Whoever has work takes part in it, and never waits for a thread that has not begun:
 * without any thread, all is done all the same. Several jobs are under way at once, bodies may have
 * jobs of their own, and a forked child has a team of its own. */
#ifndef CUPLUG_CORE_HOST_TEAM_H
#define CUPLUG_CORE_HOST_TEAM_H

#include <cuplug/plugin.h>

/* n items in chunks of `grain`. In its owner's memory from team_begin to team_end; all zero is one
 * that is done. */
typedef struct cuplug__job {
  cuplug_body *body;
  void *context;
  int64_t n, grain, n_chunks;
  int n_helpers;             /* threads at most, beside its owner */
  _Atomic int64_t next;      /* the first chunk that nobody has taken */
  _Atomic int status;        /* of a chunk that failed */
  _Atomic int n_inside;      /* helpers that have a chunk; changed under the team's lock */
  int is_queued, is_awaited; /* under the lock */
  struct cuplug__job *after;
} cuplug__job;

/* Returns at once. Wakes threads until n_helpers of the team are awake. */
void cuplug__team_begin(cuplug__job *job);

/* Takes part in the job and returns when it is done: CUPLUG_OK, or what a chunk returned. */
int cuplug__team_end(cuplug__job *job);

/* cuplug_parallel of <cuplug/parallel.h>. */
int cuplug__team_run(int64_t n, int64_t grain, cuplug_body *body, void *context);

#endif
