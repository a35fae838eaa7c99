/* sanitizers: address,undefined */
/* ldflags: -Wl,--wrap=sched_getaffinity */
/* SPDX-License-Identifier: Apache-2.0 */
/* The number of CPUs that the process may use: its affinity, OMP_NUM_THREADS, control groups. */
#include "host/thread_pool.h"

#include "check.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>

static int n_cpus = 4; /* that the core receives; 0: the real ones */

int __real_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *cpus);
int __wrap_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *cpus);

int __wrap_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *cpus) {
  if (!n_cpus) return __real_sched_getaffinity(pid, bytes, cpus);
  CPU_ZERO_S(bytes, cpus);
  for (int k = 0; k < n_cpus; k++) CPU_SET_S((size_t)k, bytes, cpus);
  return 0;
}

static void put(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  CHECK(file);
  if (!file) return;
  fputs(text, file);
  fclose(file);
}

static void check_groups(void) {
  CHECK(cuplug__cgroup_cores("missing", "groups") == 0);
  for (const char *const *at = (const char *const[]){"groups", "groups/a", "groups/a/b",
                                                     "groups/cpu", "groups/cpu/c", NULL};
       *at; at++)
    CHECK(!mkdir(*at, 0700));
  put("second", "0::/a/b\n");
  CHECK(cuplug__cgroup_cores("second", "groups") == 0);
  put("groups/a/b/cpu.max", "max 100000\n");
  CHECK(cuplug__cgroup_cores("second", "groups") == 0);
  put("groups/a/b/cpu.max", "350000 100000\n");
  CHECK(cuplug__cgroup_cores("second", "groups") == 4);
  put("groups/a/cpu.max", "150000 100000\n"); /* the parent's is less, and rounded up */
  CHECK(cuplug__cgroup_cores("second", "groups") == 2);
  put("groups/cpu.max", "1000 100000\n");
  CHECK(cuplug__cgroup_cores("second", "groups") == 1);
  put("first", "3:cpuset:/c\n2:cpuacct,cpu:/c\n1:name=systemd:/c\n");
  CHECK(cuplug__cgroup_cores("first", "groups") == 0);
  put("groups/cpu/c/cpu.cfs_quota_us", "-1\n");
  put("groups/cpu/c/cpu.cfs_period_us", "100000\n");
  CHECK(cuplug__cgroup_cores("first", "groups") == 0);
  put("groups/cpu/c/cpu.cfs_quota_us", "250000\n");
  CHECK(cuplug__cgroup_cores("first", "groups") == 3);
  put("other", "2:cpuset:/c\nnonsense\n3:cpu:/elsewhere\n"); /* a container's own is the top one */
  put("groups/cpu/cpu.cfs_quota_us", "500000\n");
  put("groups/cpu/cpu.cfs_period_us", "100000\n");
  CHECK(cuplug__cgroup_cores("other", "groups") == 5);
}

static void check_cores(void) {
  static const struct {
    const char *text;
    int n;
  } cases[] = {{"3", 3}, {"2,1", 2}, {"9", 4}, {"0", 4}, {"-1", 4}, {"", 4}, {"many", 4}};
  const int limit = cuplug__cgroup_cores("/proc/self/cgroup", "/sys/fs/cgroup");
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    setenv("OMP_NUM_THREADS", cases[k].text, 1);
    CHECK(cuplug__count_cores() == (limit && limit < cases[k].n ? limit : cases[k].n));
  }
}

static void check_affinity(void) {
  cpu_set_t cpus;
  n_cpus = 0;
  CHECK(!__real_sched_getaffinity(0, sizeof cpus, &cpus));
  for (int k = 0, n = 0; k < CPU_SETSIZE; k++)
    if (CPU_ISSET(k, &cpus) && n++) CPU_CLR(k, &cpus);
  CHECK(!sched_setaffinity(0, sizeof cpus, &cpus));
  CHECK(cuplug__count_cores() == 1);
}

int main(void) {
  check_groups();
  check_cores();
  unsetenv("OMP_NUM_THREADS");
  check_affinity();
  return n_failed != 0;
}
