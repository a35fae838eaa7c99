/* sanitizers: address,undefined | thread */
/* ldflags: -Wl,--wrap=pthread_create,--wrap=sched_getaffinity */
/* SPDX-License-Identifier: Apache-2.0 */
/* The thread pool. Each check has its own process, forked before threads exist, with the number of
 * CPUs that it sets, independent of the machine. */
#include "host/thread_pool.h"

#include "check.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 5000

static int n_cpus = 4;
static _Atomic int n_allowed = 1000; /* threads that can still be created */
static _Atomic int n_made;           /* so far */
static _Atomic int is_held;          /* threads that are made do not begin */
static _Atomic int n_bodies;         /* that run at once */
static _Atomic char seen[MOST];      /* the number of visits of an item */

/* ---- Functions that the core calls ------------------------------------------------------------
 */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
int __real_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *cpus);
int __wrap_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *cpus);

typedef void *start(void *);
static start *routine; /* of the pool's threads */

static void *held(void *argument) {
  while (is_held) usleep(1000);
  return __atomic_load_n(&routine, __ATOMIC_ACQUIRE)(argument);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument) {
  if (n_allowed <= 0) return errno = EAGAIN;
  n_allowed--;
  n_made++;
  __atomic_store_n(&routine, run, __ATOMIC_RELEASE);
  return __real_pthread_create(thread, attributes, held, argument);
}

int __wrap_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *cpus) {
  (void)pid;
  CPU_ZERO_S(bytes, cpus);
  for (int k = 0; k < n_cpus; k++) CPU_SET_S((size_t)k, bytes, cpus);
  return 0;
}

/* ---- Bodies -----------------------------------------------------------------------------------
 */

static int count(void *context, int64_t begin, int64_t end) {
  const int64_t grain = *(const int64_t *)context;
  CHECK(begin < end && end - begin <= grain && begin % grain == 0);
  for (int64_t i = begin; i < end; i++) seen[i]++;
  return CUPLUG_OK;
}

static void check_loop(int64_t n, int64_t grain) {
  memset((void *)seen, 0, sizeof seen);
  CHECK(cuplug__team_run(n, grain, count, &grain) == CUPLUG_OK);
  for (int64_t i = 0; i < MOST; i++) CHECK(seen[i] == (i < n));
}

static void check_loops(void) {
  static const int64_t ns[] = {-1, 0, 1, 2, 3, 7, 8, 64, 65, 1000, MOST};
  static const int64_t grains[] = {1, 2, 3, 7, 8, 63, 64, 999, 1000, MOST, INT64_MAX};
  for (size_t k = 0; k < sizeof ns / sizeof *ns; k++)
    for (size_t j = 0; j < sizeof grains / sizeof *grains; j++) check_loop(ns[k], grains[j]);
}

/* Items without memory: only their numbers. */
static int sum_lengths(void *context, int64_t begin, int64_t end) {
  atomic_fetch_add((_Atomic int64_t *)context, end - begin);
  return CUPLUG_OK;
}

static void check_sizes(void) {
  _Atomic int64_t total = 0;
  CHECK(!cuplug__team_run(INT64_MAX, INT64_MAX / 3, sum_lengths, &total));
  CHECK(total == INT64_MAX);
  total = 0;
  CHECK(!cuplug__team_run(10, -5, sum_lengths, &total)); /* as 1 */
  CHECK(total == 10);
}

/* All of n chunks are in progress at once. */
static int meet(void *context, int64_t begin, int64_t end) {
  (void)begin, (void)end;
  n_bodies++;
  while (n_bodies < *(const int *)context) sched_yield();
  return CUPLUG_OK;
}

static void check_meeting(int n) {
  n_bodies = 0;
  CHECK(!cuplug__team_run(n, 1, meet, &n));
}

/* As many threads as CPUs take part, including the caller; sleeping ones are woken. */
static void check_all_take_part(void) {
  for (int round = 0; round < 5; round++) {
    check_meeting(n_cpus);
    usleep(round * 5000u);
  }
  CHECK(n_made == n_cpus - 1);
}

/* Threads find new work while searching for it, falling asleep, or sleeping. */
static void check_calls(void) {
  for (unsigned round = 0; round < 400; round++) {
    usleep(round % 200);
    check_meeting(n_cpus);
  }
}

static int fail_at(void *context, int64_t begin, int64_t end) {
  (void)end;
  seen[begin]++;
  return begin == *(const int64_t *)context ? 100 + (int)begin : CUPLUG_OK;
}

static void check_failures(void) {
  for (int64_t at = 0; at < 50; at++) CHECK(cuplug__team_run(50, 1, fail_at, &at) == 100 + at);
}

static void check_failures_alone(void) {
  const int64_t at = 20;
  CHECK(cuplug__team_run(50, 1, fail_at, (void *)&at) == 120);
  for (int64_t i = 0; i < 50; i++) CHECK(seen[i] == (i <= at)); /* the others are omitted */
  CHECK(n_made == 0);
}

typedef struct level {
  int depth;
  _Atomic int64_t *total;
} level;

static int nest(void *context, int64_t begin, int64_t end) {
  const level *at = context;
  level below = {at->depth - 1, at->total};
  if (!at->depth) return sum_lengths(at->total, begin, end);
  return cuplug__team_run(8, 1, nest, &below);
}

static void check_nested(void) {
  for (int round = 0; round < 20; round++) {
    _Atomic int64_t total = 0;
    level top = {3, &total};
    CHECK(!cuplug__team_run(8, 1, nest, &top));
    CHECK(total == 8 * 8 * 8 * 8);
  }
}

static void *call_often(void *argument) {
  for (int round = 0; round < 300; round++) {
    _Atomic int64_t total = 0;
    CHECK(!cuplug__team_run(100, 1 + round % 7, sum_lengths, &total));
    CHECK(total == 100);
  }
  return argument;
}

static void check_callers(void) {
  pthread_t threads[8];
  for (int k = 0; k < 8; k++) CHECK(!__real_pthread_create(&threads[k], NULL, call_often, NULL));
  for (int k = 0; k < 8; k++) pthread_join(threads[k], NULL);
}

/* ---- Threads that cannot be made, or do not begin ---------------------------------------------
 */

static int rest(void *context, int64_t begin, int64_t end) {
  (void)context, (void)begin, (void)end;
  usleep(200);
  return CUPLUG_OK;
}

static void check_refusals(void) {
  for (int k = 0; k < 3; k++) {
    n_allowed = k;
    const int made = n_made;
    errno = 77;
    for (int round = 0; round < 200; round++) check_loop(20, 1);
    CHECK(errno == 77);
    CHECK(n_made - made <= k);
  }
  n_allowed = 1000; /* a failure is not permanent */
  for (int round = 0; round < 1000 && n_made < 3; round++)
    CHECK(!cuplug__team_run(8, 1, rest, NULL));
  check_meeting(4);
}

static void check_limit_of_processes(void) {
  const struct rlimit none = {0, 0};
  if (!getuid() && setresuid(65534, 65534, 65534)) return;
  if (setrlimit(RLIMIT_NPROC, &none)) return;
  for (int round = 0; round < 200; round++) check_loop(100, 1);
  _exit(n_failed != 0); /* the leak sanitizer needs a separate process */
}

/* A thread that the machine does not run is not waited for. */
static void check_late_threads(void) {
  is_held = 1;
  for (int round = 0; round < 50; round++) check_loop(1000, 7);
  CHECK(n_made > 0);
  is_held = 0;
  check_meeting(4);
}

static int is_blocked(void *context, int64_t begin, int64_t end) {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  if (!pthread_equal(pthread_self(), *(const pthread_t *)context))
    CHECK(sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGALRM) == 1);
  int n = 4;
  return meet(&n, begin, end);
}

static void check_signals(void) {
  pthread_t self = pthread_self();
  sigset_t mask;
  CHECK(!cuplug__team_run(4, 1, is_blocked, &self));
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  CHECK(!sigismember(&mask, SIGINT));
}

static int n_real_cpus(void) {
  cpu_set_t cpus;
  return __real_sched_getaffinity(0, sizeof cpus, &cpus) ? 0 : CPU_COUNT(&cpus);
}

static int has_all_cpus(void *context, int64_t begin, int64_t end) {
  int n = 4;
  const int status = meet(&n, begin, end);
  if (!pthread_equal(pthread_self(), *(const pthread_t *)context)) CHECK(n_real_cpus() > 1);
  return status;
}

static void *call_bound(void *argument) {
  pthread_t self = pthread_self();
  cpu_set_t one;
  __real_sched_getaffinity(0, sizeof one, &one);
  for (int k = 0, n = 0; k < CPU_SETSIZE; k++)
    if (CPU_ISSET(k, &one) && n++) CPU_CLR(k, &one);
  CHECK(!sched_setaffinity(0, sizeof one, &one) && n_real_cpus() == 1);
  for (int k = 0; k < 100; k++) check_loop(100, 1); /* until a failure is over */
  n_bodies = 0;
  CHECK(!cuplug__team_run(4, 1, has_all_cpus, &self));
  return argument;
}

/* Threads that a caller with one CPU has created are not bound to it. */
static void check_bound_caller(void) {
  pthread_t thread;
  if (n_real_cpus() == 1) return;
  n_allowed = 0;
  check_loop(100, 1); /* the first caller's CPUs */
  n_allowed = 1000;
  CHECK(!__real_pthread_create(&thread, NULL, call_bound, NULL));
  pthread_join(thread, NULL);
}

/* ---- Jobs whose owners do something else ------------------------------------------------------
 */

static int never_two(void *context, int64_t begin, int64_t end) {
  (void)begin, (void)end;
  CHECK(++n_bodies <= *(const int *)context);
  sched_yield();
  n_bodies--;
  return CUPLUG_OK;
}

static void check_jobs(void) {
  enum { N = 40 };
  static cuplug__loop loops[N];
  static cuplug__job *jobs[N];
  _Atomic int64_t total = 0;
  for (int round = 0; round < 20; round++) {
    for (int k = 0; k < N; k++) {
      loops[k] = (cuplug__loop){sum_lengths, &total, .n = k, .grain = 3, .n_helpers = 3};
      if (k) jobs[k] = cuplug__team_begin(&loops[k]);
    }
    for (int k = N; k-- > 0;) /* the first was never begun */
      CHECK(!cuplug__team_end(&loops[k], jobs[k]));
  }
  CHECK(total == 20 * N * (N - 1) / 2);
}

static void check_few_helpers(void) {
  int most = 2; /* one helper, and the owner at the end */
  for (int round = 0; round < 50; round++) {
    const cuplug__loop loop = {never_two, &most, .n = 50, .grain = 1, .n_helpers = 1};
    CHECK(!cuplug__team_end(&loop, cuplug__team_begin(&loop)));
    check_loop(100, 1); /* wakes the others */
  }
}

/* ---- Forks ------------------------------------------------------------------------------------
 */

static _Atomic int has_begun, is_over;

static void *call_until_over(void *argument) {
  _Atomic int64_t total = 0;
  has_begun = 1;
  while (!is_over) CHECK(!cuplug__team_run(100, 1, sum_lengths, &total));
  return argument;
}

/* The thread sanitizer ends children that create threads: there, they have one CPU. */
static void run_child(void) {
#ifdef __SANITIZE_THREAD__
  n_cpus = 1;
#endif
  n_made = n_failed = 0;
  alarm(60);
  check_loop(1000, 3);
  check_meeting(n_cpus);
  CHECK(n_made == n_cpus - 1);
  _exit(n_failed != 0);
}

static void check_forks(void) {
  pthread_t thread;
  int status;
  check_meeting(4);
  CHECK(!__real_pthread_create(&thread, NULL, call_until_over, NULL));
  while (!has_begun) sched_yield(); /* threads that begin hold locks of the address sanitizer */
  for (int round = 0; round < 20; round++) {
    const pid_t child = fork();
    if (!child) run_child();
    check_loop(1000, 3);
    CHECK(waitpid(child, &status, 0) == child && !status);
  }
  is_over = 1;
  pthread_join(thread, NULL);
}

/* ------------------------------------------------------------------------------------------------
 */

static void run_check(const char *name, void (*check)(void), int cpus) {
  int status = -1;
  const pid_t child = fork();
  if (!child) {
    n_failed = 0;
    n_cpus = cpus;
    alarm(120);
    check();
    exit(n_failed != 0);
  }
  waitpid(child, &status, 0);
  if (!status) return;
  fprintf(stderr, "%s on %d CPUs: status %d\n", name, cpus, status);
  n_failed++;
}

#define run(check, cpus) run_check(#check, check, cpus)

int main(void) {
  unsetenv("OMP_NUM_THREADS");
  for (int cpus = 1; cpus <= 5; cpus += 2) {
    run(check_loops, cpus);
    run(check_sizes, cpus);
    run(check_failures, cpus);
    run(check_nested, cpus);
    run(check_callers, cpus);
    run(check_jobs, cpus);
    run(check_all_take_part, cpus);
    run(check_calls, cpus);
  }
  run(check_failures_alone, 1);
  run(check_refusals, 4);
  run(check_limit_of_processes, 4);
  run(check_late_threads, 4);
  run(check_signals, 4);
  run(check_few_helpers, 4);
  run(check_bound_caller, 4);
  run(check_forks, 4);
  return n_failed != 0;
}
