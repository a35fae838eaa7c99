/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cores.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEMBERSHIP "/proc/self/cgroup"
#define MOUNT "/sys/fs/cgroup"
#define MOST_BYTES 1024 /* of a path; longer ones count as not there */

/* 1 where the file was read: its first numbers; 0 stands for other words, "max". */
static int read_numbers(const char *folder, const char *name, long long *a, long long *b) {
  char path[MOST_BYTES], first[32] = "", second[32] = "";
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return 0;
  FILE *file = fopen(path, "re");
  if (!file) return 0;
  const int n = fscanf(file, "%31s %31s", first, second);
  fclose(file);
  *a = atoll(first);
  *b = atoll(second);
  return n > 0;
}

/* Of two, none of which may be one: then it is not positive. */
static long long lower_limit(long long a, long long b) {
  return b > 0 && (a <= 0 || b < a) ? b : a;
}

/* Of one group; 0: no limit. */
static long long limit_of(const char *folder) {
  long long quota = 0, period = 0, none;
  if (!read_numbers(folder, "cpu.max", &quota, &period) &&
      read_numbers(folder, "cpu.cfs_quota_us", &quota, &none))
    read_numbers(folder, "cpu.cfs_period_us", &period, &none);
  return quota > 0 && period > 0 ? (quota + period - 1) / period : 0;
}

/* The least of a group and those that it is in. Containers see their own group at the top, under
 * whatever name: groups that are not there have no limit. */
static long long limit_along(char *folder, size_t mount_bytes) {
  for (long long least = 0;;) {
    least = lower_limit(least, limit_of(folder));
    char *slash = strrchr(folder + mount_bytes, '/');
    if (!slash) return least;
    *slash = 0;
  }
}

static int has_word(const char *list, const char *word) {
  const size_t n = strlen(word);
  for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
    if (!strncmp(at, word, n) && (!at[n] || at[n] == ',')) return 1;
  return 0;
}

/* A line is NUMBER:CONTROLLERS:/PATH; version 2 has one without controllers, version 1 one of the
 * controller "cpu", whose groups have a folder of their own. */
static long long limit_of_line(char *line, const char *mount) {
  char folder[MOST_BYTES];
  char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
  if (!path) return 0;
  *path++ = 0;
  controllers++;
  path[strcspn(path, "\n")] = 0;
  if (*controllers && !has_word(controllers, "cpu")) return 0;
  const int mount_bytes =
      snprintf(folder, sizeof folder, "%s%s", mount, *controllers ? "/cpu" : "");
  const size_t rest = sizeof folder - (size_t)mount_bytes;
  if (snprintf(folder + mount_bytes, rest, "%s", path) >= (int)rest) return 0;
  return limit_along(folder, (size_t)mount_bytes);
}

int cuplug__cgroup_cores(const char *membership, const char *mount) {
  char line[MOST_BYTES];
  long long least = 0;
  FILE *file = fopen(membership, "re");
  if (!file) return 0;
  while (fgets(line, sizeof line, file)) least = lower_limit(least, limit_of_line(line, mount));
  fclose(file);
  return least < INT32_MAX ? (int)least : INT32_MAX;
}

int cuplug__count_cores(void) {
  cpu_set_t cpus;
  const int kept = errno;
  const char *text = secure_getenv("OMP_NUM_THREADS");
  long long n =
      sched_getaffinity(0, sizeof cpus, &cpus) ? sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&cpus);
  n = lower_limit(n, text ? strtol(text, NULL, 10) : 0);
  n = lower_limit(n, cuplug__cgroup_cores(MEMBERSHIP, MOUNT));
  errno = kept;
  return n > 1 ? (int)n : 1;
}
