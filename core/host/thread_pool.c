/* SPDX-License-Identifier: Apache-2.0 */
#include "host/thread_pool.h"

#include "host/jobs.h"

#include <cuplug/nontemporal.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The time for which an idle thread polls for work before it sleeps: calls with shorter pauses need
 * not wake it, which takes about 30 us. It yields the CPU periodically; if others take it, the time
 * is over. */
#define LOOK_NS 1000000
#define N_LOOKS 256 /* before it yields: some ten microseconds */

/* Polls that a thread skips if it has no share of its own: with fewer chunks than threads, the same
 * threads run them in each loop, and the others go to sleep. */
#define N_LEFT 8

/* Threads that one thread wakes for a loop. These wake the same number, if there is still work
 * then: short loops are not delayed by waking threads that come too late. */
#define N_WOKEN 4

/* Room for the blocks of many arrays in generated loops. */
#define STACK_BYTES ((size_t)1 << 20)

/* A thread whose creation failed is tried again after this number of requests. */
#define MAX_CREATE_RETRIES 64

#define MOST_THREADS CPU_SETSIZE

/* ---- How many CPUs the process may use ------------------------------------------------------- */

#define MEMBERSHIP "/proc/self/cgroup"
#define MOUNT "/sys/fs/cgroup"
#define MOST_BYTES 1024 /* of a path; longer ones count as not there */

/* 1 if the file was read: its first numbers; 0 for other words, "max". */
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

/* The minimum for a group and its parents. Containers see their own group at the top, under any
 * name: missing groups have no limit. */
static long long limit_along(char *folder, size_t mount_bytes) {
  for (long long least = 0;;) {
    least = lower_limit(least, limit_of(folder));
    char *slash = strrchr(folder + mount_bytes, '/');
    if (!slash) return least;
    *slash = 0;
  }
}

/* A line is NUMBER:CONTROLLERS:/PATH; version 2 has one without controllers, version 1 one of the
 * controller "cpu", whose groups have a folder of their own. */
static long long limit_of_line(char *line, const char *mount) {
  char folder[MOST_BYTES], list[MOST_BYTES + 2];
  char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
  if (!path) return 0;
  *path++ = 0;
  controllers++;
  path[strcspn(path, "\n")] = 0;
  snprintf(list, sizeof list, ",%s,", controllers);
  if (*controllers && !strstr(list, ",cpu,")) return 0;
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

/* ---- The team ---------------------------------------------------------------------------------
 */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for making threads */
static int n_made;                                       /* under the lock */
static _Atomic int n_refusals;
static _Atomic int n_threads; /* in all, a caller included; 0: not counted yet */
static cpu_set_t cpus;        /* of the first caller: those that come later may be bound to one */
static int has_cpus;

/* Threads have numbers from 1 on; those that are not of the team have 0. */
static _Thread_local int own_number;

/* Threads that are not of the team, and inside of a loop: they keep a CPU busy each. */
static _Alignas(CUPLUG_LINE_BYTES) _Atomic int n_callers;

/* Of the team: at work, looking for it, or called and about to be awake. */
static _Alignas(CUPLUG_LINE_BYTES) _Atomic int n_awake;
static _Atomic uint64_t asleep[MOST_THREADS / 64]; /* bits of threads that can be called */
static _Atomic uint32_t sleep_words[MOST_THREADS]; /* 1: sleep; where each of them does */

/* The child has none of the threads, and the lock may be held by one of them. */
static void reset_pool_after_fork(void) {
  pthread_mutex_init(&lock, NULL);
  cuplug__jobs_forget();
  for (int k = 0; k < MOST_THREADS / 64; k++) atomic_store(&asleep[k], 0);
  n_made = 0;
  n_refusals = 0;
  n_callers = 0;
  n_awake = 0;
  n_threads = 0;
  own_number = 0;
}

/* A process that cannot have its children forget the team has none. */
static void watch_forks(void) {
  if (pthread_atfork(NULL, NULL, reset_pool_after_fork)) n_threads = 1;
}

static int least(int a, int b) { return a < b ? a : b; }

/* Before the lock is taken for anything else: forked children have it free then. */
int cuplug__team_threads(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  const int kept = errno;
  pthread_once(&once, watch_forks);
  if (n_threads) return n_threads;
  pthread_mutex_lock(&lock);
  if (!n_threads) {
    has_cpus = !sched_getaffinity(0, sizeof cpus, &cpus);
    n_threads = least(cuplug__count_cores(), MOST_THREADS);
  }
  pthread_mutex_unlock(&lock);
  errno = kept;
  return n_threads;
}

/* ---- Making threads, and waking them --------------------------------------------------------- */

static void *work(void *number);

/* Signals are for the threads of the program. */
static int make_thread(int number) {
  pthread_attr_t attributes;
  pthread_t thread;
  sigset_t all, previous;
  if (pthread_attr_init(&attributes)) return 0;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  const int is_made = !pthread_create(&thread, &attributes, work, (void *)(intptr_t)number);
  pthread_sigmask(SIG_SETMASK, &previous, NULL);
  pthread_attr_destroy(&attributes);
  if (is_made) pthread_setname_np(thread, "cuplug");
  return is_made;
}

static int add_thread(void) {
  if (n_refusals && n_refusals++ < MAX_CREATE_RETRIES) return 0;
  pthread_mutex_lock(&lock);
  const int is_room = n_made + 1 < n_threads, is_made = is_room && make_thread(n_made + 1);
  n_made += is_made;
  n_awake += is_made;
  n_refusals = is_room && !is_made;
  pthread_mutex_unlock(&lock);
  return is_made;
}

/* 1 for the caller that takes a thread out of the callable ones. */
static int take_out(int number) {
  const uint64_t bit = (uint64_t)1 << number % 64;
  return !!(atomic_fetch_and(&asleep[number / 64], ~bit) & bit);
}

/* The first ones first: with little to do, the others sleep on. */
static int call_thread(void) {
  for (int k = 0; k < MOST_THREADS / 64; k++)
    for (uint64_t mask; (mask = atomic_load(&asleep[k]));) {
      const int number = k * 64 + __builtin_ctzll(mask);
      if (!take_out(number)) continue;
      n_awake++;
      atomic_store(&sleep_words[number], 0);
      cuplug__wake(&sleep_words[number]);
      return 1;
    }
  return 0;
}

static void wake(int n) {
  while (n-- > 0 && (call_thread() || add_thread())) continue;
}

/* For a loop in progress, by its owner and by the threads that join. Polling threads come on their
 * own; with other jobs, they may be busy. None are woken if each CPU has a caller. */
static void spread(cuplug__job *job) {
  const int n_wanted = cuplug__jobs_open() > 1 ? n_threads : cuplug__job_helpers(job);
  const int n_useful = least(n_wanted, n_threads - 1);
  if (n_awake >= n_useful) return; /* mostly: nothing was read that others write */
  const int n_missing = least(n_useful, n_threads - n_callers) - n_awake;
  if (n_missing > 0) wake(least(n_missing, cuplug__job_left(job, N_WOKEN)));
}

/* ---- The threads ----------------------------------------------------------------------------- */

/* 1 with a chunk, 0 when the time is over. */
static int look_for_work(cuplug__taken *taken) {
  int n_seen = 0; /* how often in turn there was a job */
  for (const int64_t end = cuplug__now_ns() + LOOK_NS; cuplug__now_ns() < end; sched_yield())
    for (int k = 0; k < N_LOOKS; k++) {
      n_seen = cuplug__jobs_open() ? n_seen + 1 : 0;
      if (n_seen && cuplug__jobs_join(own_number, n_seen > N_LEFT, taken)) return 1;
      cuplug__pause();
    }
  return 0;
}

/* 1 with a chunk, of a job that came before any thread could call this one; 0 if it was called, or
 * woke on its own. */
static int sleep_until_called(cuplug__taken *taken) {
  atomic_store(&sleep_words[own_number], 1);
  n_awake--;
  atomic_fetch_or(&asleep[own_number / 64], (uint64_t)1 << own_number % 64);
  const int has_work = cuplug__jobs_join(own_number, 1, taken);
  while (!has_work && atomic_load(&sleep_words[own_number]))
    cuplug__sleep(&sleep_words[own_number]);
  n_awake += take_out(own_number);
  return has_work;
}

static void *work(void *number) {
  cuplug__taken taken;
  own_number = (int)(intptr_t)number;
  if (has_cpus) sched_setaffinity(0, sizeof cpus, &cpus);
  for (;;) {
    if (!look_for_work(&taken) && !sleep_until_called(&taken)) continue;
    spread(taken.job);
    cuplug__job_help(&taken);
  }
  return NULL;
}

/* ---- Owners ---------------------------------------------------------------------------------- */

cuplug__job *cuplug__team_begin(const cuplug__loop *loop) {
  const int kept = errno, n = least(loop->n_helpers, cuplug__team_threads() - 1);
  cuplug__job *job = n > 0 ? cuplug__job_open(loop, 1) : NULL;
  if (job) wake(n - n_awake);
  errno = kept;
  return job;
}

int cuplug__team_end(const cuplug__loop *loop, cuplug__job *job) {
  return job ? cuplug__job_close(job, own_number) : cuplug__loop_alone(loop);
}

static int run(cuplug__job *job) {
  const int is_caller = !own_number, kept = errno;
  n_callers += is_caller;
  spread(job);
  errno = kept;
  const int status = cuplug__job_close(job, own_number);
  n_callers -= is_caller;
  return status;
}

int cuplug__team_run(int64_t n, int64_t grain, cuplug_body *body, void *context) {
  if (n <= 0) return CUPLUG_OK;
  if (grain < 1) grain = 1;
  if (n <= grain) return body(context, 0, n);
  cuplug__loop loop = {body, context, n, grain, .n_helpers = INT32_MAX};
  const int64_t n_helpers = cuplug__loop_chunks(&loop) - 1;
  if (n_helpers < INT32_MAX) loop.n_helpers = (int)n_helpers;
  const int n_most = cuplug__team_threads();
  cuplug__job *job = n_most > 1 ? cuplug__job_open(&loop, n_most) : NULL;
  return job ? run(job) : cuplug__loop_alone(&loop);
}
