/* SPDX-License-Identifier: Apache-2.0 */
/* One team of threads for the process: loops of plugins, of expressions and reductions, copies.
 *
 * Its threads are made when there is work for them, look for more of it for some microseconds, and
 * sleep. Whoever has work takes part in it, and never waits for a thread that has not begun:
 * without any thread, all is done all the same. Several loops are under way at once, bodies may
 * have loops of their own, and a forked child has a team of its own. */
#ifndef CUPLUG_CORE_HOST_THREAD_POOL_H
#define CUPLUG_CORE_HOST_THREAD_POOL_H

#include "host/jobs.h"

/* Returns at once. Wakes threads until n_helpers of the team are awake; they take the chunks in
 * their order. The loop's context is in use until team_end. */
cuplug__job *cuplug__team_begin(const cuplug__loop *loop);

/* Takes part in the loop and returns when it is done: CUPLUG_OK, or what a chunk returned. `job` is
 * what team_begin returned, if only NULL. */
int cuplug__team_end(const cuplug__loop *loop, cuplug__job *job);

/* How many there are with the caller: as many as the process has cores for. */
int cuplug__team_threads(void);

/* cuplug_parallel of <cuplug/parallel.h>. */
int cuplug__team_run(int64_t n, int64_t grain, cuplug_body *body, void *context);

/* Threads that are worth having, at least 1: the CPUs that the calling thread may run on, no more
 * than OMP_NUM_THREADS, and than the control groups give time for. */
int cuplug__count_cores(void);

/* CPUs that control groups give the process time for, rounded up; 0: no limit. `membership` is
 * /proc/self/cgroup, `mount` where the groups are, /sys/fs/cgroup. */
int cuplug__cgroup_cores(const char *membership, const char *mount);

#endif
