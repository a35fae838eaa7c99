/* SPDX-License-Identifier: Apache-2.0 */
#include "host/team.h"

#include "host/cores.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

/* How long a thread without work looks for some before it sleeps: less than the pauses between the
 * chunks of a copy that the bus limits cost in waking it up. It yields the CPU each time; where
 * others take it, the time is over. */
#define LOOK_NS 100000

/* How long an owner looks whether its helpers are done before it sleeps. It does not yield: where
 * others want the CPU, it would have it back after milliseconds. */
#define SPIN_NS 10000

#define N_TRIES 100 /* to have the lock before sleeping for it; a few microseconds */

/* Threads that one thread wakes for a loop. These wake as many, if there is still work then: short
 * loops are not held up by waking threads that come too late. */
#define N_WOKEN 2

/* Room for the blocks of many arrays in generated loops. */
#define STACK_BYTES ((size_t)1 << 20)

/* A thread that cannot be made is tried again when it was wanted so often. */
#define N_WISHES 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queued = PTHREAD_COND_INITIALIZER, finished = PTHREAD_COND_INITIALIZER;
static cuplug__job *first;    /* with chunks that nobody has taken; oldest first */
static _Atomic int n_queued;  /* written under the lock; threads look at it without */
static _Atomic int n_threads; /* in all, the callers' included; 0: not counted yet */
static cpu_set_t cpus;        /* of the first caller: those that come later may be bound to one */
static int has_cpus;
/* Under the lock. A thread of the team is awake, or asleep, or called and about to be awake, which
 * counts as awake. Those that are busy are inside of a job. */
static int n_made, n_asleep, n_called, n_busy, n_refusals;
static int n_callers; /* in team_run, which keep a CPU busy each */

/* The child has none of the threads, and the lock may be held by one of them. */
static void forget_team(void) {
  pthread_mutex_init(&lock, NULL);
  pthread_cond_init(&queued, NULL);
  pthread_cond_init(&finished, NULL);
  first = NULL;
  atomic_store(&n_queued, 0);
  atomic_store(&n_threads, 0);
  n_made = n_asleep = n_called = n_busy = n_refusals = n_callers = 0;
}

/* A process that cannot have its children forget the team has none. */
static void watch_forks(void) {
  if (pthread_atfork(NULL, NULL, forget_team)) atomic_store(&n_threads, 1);
}

static void pause_a_little(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* It is held for less than a microsecond, mostly: a thread that slept for it would come late. */
static void take_lock(void) {
  for (int i = 0; i < N_TRIES; i++) {
    if (!pthread_mutex_trylock(&lock)) return;
    pause_a_little();
  }
  pthread_mutex_lock(&lock);
}

/* Before the lock is taken for anything else: forked children have it free then. */
static int count_threads(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch_forks);
  if (atomic_load_explicit(&n_threads, memory_order_relaxed)) return n_threads;
  take_lock();
  if (!n_threads) {
    has_cpus = !sched_getaffinity(0, sizeof cpus, &cpus);
    n_threads = cuplug__count_cores();
  }
  pthread_mutex_unlock(&lock);
  return n_threads;
}

static int least(int a, int b) { return a < b ? a : b; }

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

/* ---- Chunks ---------------------------------------------------------------------------------- */

/* The number of a chunk that is now the caller's; n_chunks or more where there is none left. */
static int64_t take(cuplug__job *job) {
  return atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
}

static int64_t n_left(cuplug__job *job) {
  return job->n_chunks - atomic_load_explicit(&job->next, memory_order_relaxed);
}

static void run_chunk(cuplug__job *job, int64_t chunk) {
  const int64_t begin = chunk * job->grain, left = job->n - begin;
  const int status =
      job->body(job->context, begin, left < job->grain ? job->n : begin + job->grain);
  if (!status) return;
  atomic_store_explicit(&job->status, status, memory_order_relaxed);
  atomic_store_explicit(&job->next, job->n_chunks, memory_order_relaxed);
}

static void run_chunks(cuplug__job *job, int64_t chunk) {
  for (; chunk < job->n_chunks; chunk = take(job)) run_chunk(job, chunk);
}

/* ---- The queue, under the lock --------------------------------------------------------------- */

static void append(cuplug__job *job) {
  cuplug__job **at = &first;
  while (*at) at = &(*at)->after;
  *at = job;
  job->is_queued = 1;
  atomic_fetch_add_explicit(&n_queued, 1, memory_order_relaxed);
}

static void take_out(cuplug__job *job) {
  cuplug__job **at = &first;
  if (!job->is_queued) return;
  while (*at != job) at = &(*at)->after;
  *at = job->after;
  job->is_queued = 0;
  atomic_fetch_sub_explicit(&n_queued, 1, memory_order_relaxed);
}

/* The oldest job that has room, and a chunk of it: whoever joins has work, so that its owner never
 * waits for one that has not begun. */
static cuplug__job *join(int64_t *chunk) {
  for (cuplug__job *job = first, *after; job; job = after) {
    after = job->after;
    if (atomic_load_explicit(&job->n_inside, memory_order_relaxed) >= job->n_helpers) continue;
    *chunk = take(job);
    if (*chunk < job->n_chunks) {
      atomic_fetch_add_explicit(&job->n_inside, 1, memory_order_relaxed);
      n_busy++;
      return job;
    }
    take_out(job);
  }
  return NULL;
}

/* The owner may be gone as soon as nobody is inside. */
static void leave(cuplug__job *job) {
  const int is_awaited = job->is_awaited;
  n_busy--;
  if (n_left(job) <= 0) take_out(job);
  if (atomic_fetch_sub_explicit(&job->n_inside, 1, memory_order_release) == 1 && is_awaited)
    pthread_cond_broadcast(&finished);
}

/* ---- The threads ----------------------------------------------------------------------------- */

static void *work(void *unused);

/* Under the lock. Signals are for the threads of the program. */
static int make_thread(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  sigset_t all, previous;
  if (pthread_attr_init(&attributes)) return 0;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  const int is_made = !pthread_create(&thread, &attributes, work, NULL);
  pthread_sigmask(SIG_SETMASK, &previous, NULL);
  pthread_attr_destroy(&attributes);
  if (is_made) pthread_setname_np(thread, "cuplug");
  return is_made;
}

/* Under the lock, until so many are awake; those that are there before others are made. All that
 * sleep are woken at once where all are wanted: one by one they would come too late. */
static void wake(int n_wanted) {
  const int n_missing = least(n_wanted, n_threads - 1) - (n_made - n_asleep);
  const int n_woken = least(n_missing, n_asleep);
  if (n_missing <= 0) return;
  for (int i = 0; i < n_woken && n_woken < n_asleep; i++) pthread_cond_signal(&queued);
  if (n_woken == n_asleep) pthread_cond_broadcast(&queued);
  n_asleep -= n_woken;
  n_called += n_woken;
  for (int n = n_missing - n_woken; n > 0; n--) {
    if (n_refusals && n_refusals++ < N_WISHES) return;
    n_refusals = !make_thread();
    n_made += !n_refusals;
  }
}

/* Under the lock: threads for a loop that is under way, none where each CPU has a caller. */
static void spread(const cuplug__job *job, int64_t n_chunks_left) {
  const int n_more = n_chunks_left < N_WOKEN ? (int)n_chunks_left : N_WOKEN;
  wake(least(least(n_busy + n_more, job->n_helpers), n_threads - n_callers));
}

/* Returns with the lock. */
static void look_for_work(void) {
  for (const int64_t end = now_ns() + LOOK_NS; now_ns() < end;) {
    if (atomic_load_explicit(&n_queued, memory_order_relaxed) && !pthread_mutex_trylock(&lock))
      return;
    sched_yield();
  }
  take_lock();
}

static void sleep_until_called(void) {
  n_asleep++;
  pthread_cond_wait(&queued, &lock);
  if (n_called)
    n_called--;
  else
    n_asleep--; /* it woke by itself */
}

static void *work(void *unused) {
  int64_t chunk;
  if (has_cpus) sched_setaffinity(0, sizeof cpus, &cpus);
  take_lock();
  for (;;) {
    cuplug__job *job = join(&chunk);
    if (!job) {
      pthread_mutex_unlock(&lock);
      look_for_work();
      job = join(&chunk);
    }
    if (!job) {
      sleep_until_called();
      continue;
    }
    spread(job, n_left(job));
    pthread_mutex_unlock(&lock);
    run_chunks(job, chunk);
    take_lock();
    leave(job);
  }
  return unused;
}

/* ---- Owners ---------------------------------------------------------------------------------- */

static int is_occupied(const cuplug__job *job) {
  return atomic_load_explicit(&job->n_inside, memory_order_acquire) != 0;
}

/* All chunks are taken, and the job is not in the queue. */
static void await_helpers(cuplug__job *job) {
  if (!is_occupied(job)) return;
  for (const int64_t end = now_ns() + SPIN_NS; is_occupied(job) && now_ns() < end;)
    pause_a_little();
  if (!is_occupied(job)) return;
  take_lock();
  job->is_awaited = 1;
  while (is_occupied(job)) pthread_cond_wait(&finished, &lock);
  pthread_mutex_unlock(&lock);
}

void cuplug__team_begin(cuplug__job *job) {
  const int kept = errno;
  count_threads();
  take_lock();
  append(job);
  wake(job->n_helpers);
  pthread_mutex_unlock(&lock);
  errno = kept;
}

static int end(cuplug__job *job, int is_caller) {
  run_chunks(job, take(job));
  take_lock();
  take_out(job);
  n_callers -= is_caller;
  pthread_mutex_unlock(&lock);
  await_helpers(job);
  return atomic_load_explicit(&job->status, memory_order_relaxed);
}

int cuplug__team_end(cuplug__job *job) { return job->n_chunks ? end(job, 0) : CUPLUG_OK; }

int cuplug__team_run(int64_t n, int64_t grain, cuplug_body *body, void *context) {
  if (n <= 0) return CUPLUG_OK;
  if (grain < 1) grain = 1;
  if (n <= grain) return body(context, 0, n);
  cuplug__job job = {.body = body,
                     .context = context,
                     .n = n,
                     .grain = grain,
                     .n_chunks = (n - 1) / grain + 1,
                     .n_helpers = INT32_MAX};
  const int kept = errno;
  if (count_threads() == 1) {
    run_chunks(&job, take(&job));
    return job.status;
  }
  take_lock();
  n_callers++;
  append(&job);
  spread(&job, job.n_chunks - 1);
  pthread_mutex_unlock(&lock);
  errno = kept;
  return end(&job, 1);
}
