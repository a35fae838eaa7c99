/* SPDX-License-Identifier: Apache-2.0 */
/* One thread pool for the process: loops of plugins, of expressions and reductions, copies.
 *
 * Its threads are created when work exists for them, poll for more work for some microseconds,
 * and sleep. A caller takes part in its work, and never waits for a thread that has not begun: even
 * without any thread, all work is done. Several loops run at once, bodies may have loops of their
 * own, and a forked child has its own pool. */
#ifndef CUPLUG_CORE_HOST_THREAD_POOL_H
#define CUPLUG_CORE_HOST_THREAD_POOL_H

#include "host/jobs.h"

/* Returns at once. Wakes threads until n_helpers of the pool are awake; they take the chunks in
 * their order. The loop's context is in use until team_end. */
cuplug__job *cuplug__team_begin(const cuplug__loop *loop);

/* Takes part in the loop and returns when it is done: CUPLUG_OK, or the result of a chunk. `job` is
 * the result of team_begin, even if it is NULL. */
int cuplug__team_end(const cuplug__loop *loop, cuplug__job *job);

/* The number of threads with the caller: the number of cores for the process. */
int cuplug__team_threads(void);

/* cuplug_parallel of <cuplug/parallel.h>. */
int cuplug__team_run(int64_t n, int64_t grain, cuplug_body *body, void *context);

/* The useful number of threads, at least 1: the CPUs that the calling thread may run on, no more
 * than OMP_NUM_THREADS and the CPU time of the control groups. */
int cuplug__count_cores(void);

/* The CPUs whose time the control groups grant to the process, rounded up; 0: no limit.
 * `membership` is /proc/self/cgroup, and `mount` is the directory of the groups, /sys/fs/cgroup. */
int cuplug__cgroup_cores(const char *membership, const char *mount);

#endif
