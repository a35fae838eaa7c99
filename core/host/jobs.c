/* SPDX-License-Identifier: Apache-2.0 */
#include "host/jobs.h"

#include "base/rounding.h"

#include <cuplug/nontemporal.h>
#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define N_JOBS 32 /* at once; their bits are one word */
#define MOST_SHARES 64

/* A share is one word, so that a worker takes its seat and a chunk at once. Workers stay until no
 * chunk is left: no seat is returned. */
#define CHUNK ((uint64_t)1)
#define SEAT ((uint64_t)1 << 48)
#define CHUNKS (SEAT - 1)
#define MOST_SEATS 65535

/* The time for which an owner polls whether its workers are done before it sleeps. It does not
 * yield: if others need the CPU, it would get it back after milliseconds. */
#define SPIN_NS 10000

typedef struct share {
  _Alignas(CUPLUG_LINE_BYTES) _Atomic uint64_t left;
} share;

struct cuplug__job {
  _Alignas(CUPLUG_LINE_BYTES) cuplug__loop loop; /* written while no share has chunks */
  cuplug__rounding rounding;                     /* of the owner's thread */
  int64_t n_chunks;
  _Atomic int n_shares;                               /* also read by threads without a chunk */
  _Alignas(CUPLUG_LINE_BYTES) _Atomic int64_t n_done; /* chunks of helpers that have left,
                                                       * less those that the owner waits for */
  _Atomic uint32_t is_awaited;                        /* the owner sleeps */
  _Atomic int status;                                 /* of a chunk that failed */
  share shares[MOST_SHARES];
};

static cuplug__job jobs[N_JOBS];
static _Alignas(CUPLUG_LINE_BYTES) _Atomic uint32_t owned;  /* bits of jobs that have an owner */
static _Alignas(CUPLUG_LINE_BYTES) _Atomic uint32_t opened; /* threads without work look at it */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static uint32_t bit_of(const cuplug__job *job) { return (uint32_t)1 << (job - jobs); }

void cuplug__jobs_forget(void) {
  for (int k = 0; k < N_JOBS; k++)
    for (int s = 0; s < MOST_SHARES; s++) atomic_store(&jobs[k].shares[s].left, 0);
  atomic_store(&owned, 0);
  atomic_store(&opened, 0);
}

int cuplug__jobs_open(void) { return __builtin_popcount(atomic_load(&opened)); }
int cuplug__job_helpers(const cuplug__job *job) { return job->loop.n_helpers; }

/* ---- Loops ----------------------------------------------------------------------------------- */

int64_t cuplug__loop_chunks(const cuplug__loop *loop) {
  return loop->n > 0 ? (loop->n - 1) / loop->grain + 1 : 0;
}

static int run_chunk(const cuplug__loop *loop, int64_t chunk) {
  const int64_t begin = chunk * loop->grain, left = loop->n - begin;
  return loop->body(loop->context, begin, left < loop->grain ? loop->n : begin + loop->grain);
}

int cuplug__loop_alone(const cuplug__loop *loop) {
  const int64_t n = cuplug__loop_chunks(loop);
  int status = CUPLUG_OK;
  for (int64_t chunk = 0; chunk < n && !status; chunk++) status = run_chunk(loop, chunk);
  return status;
}

/* ---- Shares ---------------------------------------------------------------------------------- */

/* The first chunk of a share; of the one after the last, the number of chunks. */
static int64_t first_of(const cuplug__job *job, int share) {
  const int n = atomic_load_explicit(&job->n_shares, memory_order_relaxed);
  return job->n_chunks / n * share + least(job->n_chunks % n, share);
}

/* How many chunks the share had; 0: none, or no seat, and nothing was taken. */
static int64_t take(cuplug__job *job, int share, uint64_t price) {
  _Atomic uint64_t *left = &job->shares[share].left;
  uint64_t seen = atomic_load_explicit(left, memory_order_relaxed);
  do {
    if (!(seen & CHUNKS) || seen < price) return 0;
  } while (!atomic_compare_exchange_weak_explicit(left, &seen, seen - price, memory_order_acquire,
                                                  memory_order_relaxed));
  return (int64_t)(seen & CHUNKS);
}

int cuplug__job_left(cuplug__job *job, int most) {
  int64_t n = 0;
  for (int s = 0; s < job->n_shares && n < most; s++)
    n += (int64_t)(atomic_load_explicit(&job->shares[s].left, memory_order_relaxed) & CHUNKS);
  return (int)least(n, most);
}

/* After a failure: no chunk begins any more. Returns how many there were. */
static int64_t drop(cuplug__job *job, int status) {
  int64_t n = 0;
  atomic_store_explicit(&job->status, status, memory_order_relaxed);
  for (int s = 0; s < job->n_shares; s++)
    n +=
        (int64_t)(atomic_exchange_explicit(&job->shares[s].left, 0, memory_order_acquire) & CHUNKS);
  return n;
}

/* Runs chunks of all shares, from `share` on; n_left of them are left for the caller if it has
 * already taken one. `price` of the following ones: a chunk, and for workers a seat. Returns their
 * number. */
static int64_t work(cuplug__job *job, int share, int64_t n_left, uint64_t price) {
  const int n_shares = job->n_shares;
  int64_t n = 0;
  for (int k = 0; k < n_shares; k++, share = (share + 1) % n_shares) {
    if (!n_left) n_left = take(job, share, price);
    for (; n_left; n_left = take(job, share, CHUNK)) {
      const int status = run_chunk(&job->loop, first_of(job, share + 1) - n_left);
      n += 1 + (status ? drop(job, status) : 0);
    }
  }
  return n;
}

/* ---- Helpers --------------------------------------------------------------------------------- */

static int join(cuplug__job *job, int number, int any, cuplug__taken *taken) {
  const int n = atomic_load_explicit(&job->n_shares, memory_order_relaxed);
  for (int k = 0; k < (any ? n : number < n); k++) {
    const int share = (number + k) % n;
    *taken = (cuplug__taken){job, share, take(job, share, CHUNK + SEAT)};
    if (taken->n_left) return 1;
  }
  return 0;
}

static int join_one(uint32_t mask, int number, int any, cuplug__taken *taken) {
  for (; mask; mask &= mask - 1)
    if (join(&jobs[__builtin_ctz(mask)], number, any, taken)) return 1;
  return 0;
}

/* Threads begin with different jobs. */
int cuplug__jobs_join(int number, int any, cuplug__taken *taken) {
  const uint32_t mask = atomic_load(&opened);
  uint32_t later = mask;
  if (!mask) return 0;
  for (int k = number % __builtin_popcount(mask); k; k--) later &= later - 1;
  return join_one(later, number, any, taken) || join_one(mask & ~later, number, any, taken);
}

/* The owner may be gone once its chunks are done, and another job be where this one was: whose
 * owner looks again when it is woken. */
void cuplug__job_help(const cuplug__taken *taken) {
  cuplug__job *job = taken->job;
  const cuplug__rounding rounding = job->rounding;
  cuplug__rounding_restore(rounding);
  const int64_t n = work(job, taken->share, taken->n_left, CHUNK + SEAT);
  if (cuplug__rounding_restore(rounding)) cuplug__rounding_note_change();
  if (atomic_fetch_add(&job->n_done, n) + n) return;
  if (atomic_load(&job->is_awaited) && atomic_exchange(&job->is_awaited, 0))
    cuplug__wake(&job->is_awaited);
}

/* ---- Owners ---------------------------------------------------------------------------------- */

static cuplug__job *find_room(void) {
  uint32_t seen = atomic_load(&owned);
  do {
    if (!~seen) return NULL;
  } while (!atomic_compare_exchange_weak(&owned, &seen, seen | (seen + 1)));
  return &jobs[__builtin_ctz(~seen)];
}

cuplug__job *cuplug__job_open(const cuplug__loop *loop, int n_shares) {
  const int64_t n_chunks = cuplug__loop_chunks(loop);
  const uint64_t seats = (uint64_t)least(loop->n_helpers, MOST_SEATS) * SEAT;
  cuplug__job *job = n_chunks < (int64_t)CHUNKS ? find_room() : NULL;
  if (!job) return NULL;
  n_shares = (int)least(n_shares, least(n_chunks, MOST_SHARES));
  job->loop = *loop;
  job->rounding = cuplug__rounding_read();
  job->n_chunks = n_chunks;
  atomic_store_explicit(&job->n_shares, n_shares, memory_order_relaxed);
  atomic_store_explicit(&job->n_done, 0, memory_order_relaxed);
  atomic_store_explicit(&job->is_awaited, 0, memory_order_relaxed);
  atomic_store_explicit(&job->status, CUPLUG_OK, memory_order_relaxed);
  for (int s = 0; s < n_shares; s++)
    atomic_store_explicit(&job->shares[s].left,
                          seats + (uint64_t)(first_of(job, s + 1) - first_of(job, s)),
                          memory_order_release);
  atomic_fetch_or(&opened, bit_of(job));
  return job;
}

static int is_done(cuplug__job *job) { return !atomic_load(&job->n_done); }

/* Helpers have taken n chunks. */
static void await_helpers(cuplug__job *job, int64_t n) {
  if (!n || atomic_fetch_sub(&job->n_done, n) == n) return;
  for (const int64_t end = cuplug__now_ns() + SPIN_NS; !is_done(job) && cuplug__now_ns() < end;)
    cuplug__pause();
  while (!is_done(job)) {
    atomic_store(&job->is_awaited, 1);
    if (!is_done(job)) cuplug__sleep(&job->is_awaited);
  }
}

int cuplug__job_close(cuplug__job *job, int number) {
  const int64_t n = work(job, number % job->n_shares, 0, CHUNK);
  atomic_fetch_and(&opened, ~bit_of(job));
  await_helpers(job, job->n_chunks - n);
  const int status = atomic_load_explicit(&job->status, memory_order_relaxed);
  atomic_fetch_and(&owned, ~bit_of(job));
  return status;
}

/* ---- Waiting --------------------------------------------------------------------------------- */

int64_t cuplug__now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

void cuplug__pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static void futex(_Atomic uint32_t *word, int operation) {
  const int kept = errno;
  syscall(SYS_futex, word, operation, 1, NULL, NULL, 0);
  errno = kept;
}

void cuplug__sleep(_Atomic uint32_t *word) { futex(word, FUTEX_WAIT_PRIVATE); }
void cuplug__wake(_Atomic uint32_t *word) { futex(word, FUTEX_WAKE_PRIVATE); }
