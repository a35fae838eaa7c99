/* SPDX-License-Identifier: Apache-2.0 */
/* How many CPUs the process may use. */
#ifndef CUPLUG_CORE_HOST_CORES_H
#define CUPLUG_CORE_HOST_CORES_H

/* Threads that are worth having, at least 1: the CPUs that the calling thread may run on, no more
 * than OMP_NUM_THREADS, and than the control groups give time for. */
int cuplug__count_cores(void);

/* CPUs that control groups give the process time for, rounded up; 0: no limit. `membership` is
 * /proc/self/cgroup, `mount` where the groups are, /sys/fs/cgroup. */
int cuplug__cgroup_cores(const char *membership, const char *mount);

#endif
