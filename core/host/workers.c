/* SPDX-License-Identifier: Apache-2.0 */
#include "host/workers.h"

#include "host/view.h"

#include <cuplug/nontemporal.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; older ones refuse it, and pages come one by one */
#endif

/* Small pieces: all threads work on the same few chunks, so that the next DMA can begin soon.
 * Larger ones for fresh memory, whose pages are made piece by piece, where `to` is a multiple of
 * these. */
#define VIEW_PIECE ((uint64_t)256 << 10)
#define FRESH_PIECE ((uint64_t)512 << 10)

/* How often a worker without work looks for some before it sleeps: about 100 us, less than the
 * pauses between the chunks of a copy that the bus limits cost in waking it up. */
#define N_LOOKS 200

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queued = PTHREAD_COND_INITIALIZER, finished = PTHREAD_COND_INITIALIZER;
static cuplug__host_copy *first; /* with pieces that nobody has taken; oldest first */
static _Atomic int n_queued;     /* written under the lock; workers look at it without */
/* Under the lock. Those that are called are still among the sleeping. */
static int started, n_workers, n_sleeping, n_called;

/* The child has none of the threads, and the lock may be held by one of them. */
static void forget_workers(void) {
  pthread_mutex_init(&lock, NULL);
  pthread_cond_init(&queued, NULL);
  pthread_cond_init(&finished, NULL);
  first = NULL;
  atomic_store(&n_queued, 0);
  started = n_workers = n_sleeping = n_called = 0;
}

/* ---- The queue, under the lock -------------------------------------------------------------- */

static void append(cuplug__host_copy *copy) {
  cuplug__host_copy **at = &first;
  while (*at) at = &(*at)->next;
  *at = copy;
  atomic_fetch_add_explicit(&n_queued, 1, memory_order_relaxed);
}

static void take_out(cuplug__host_copy *copy) {
  cuplug__host_copy **at = &first;
  while (*at != copy) at = &(*at)->next;
  *at = copy->next;
  atomic_fetch_sub_explicit(&n_queued, 1, memory_order_relaxed);
}

/* Written to memory that may have no pages yet. */
static int is_fresh(const cuplug__host_copy *copy) {
  return copy->is_write && cuplug__view_is_contiguous(copy->view);
}

static uint64_t next_piece(const cuplug__host_copy *copy) {
  const uint64_t taken = copy->taken, left = copy->bytes - taken;
  const uint64_t place =
      (is_fresh(copy) ? (uint64_t)(uintptr_t)copy->view->data : 0) + copy->first + taken;
  const uint64_t piece = copy->piece - place % copy->piece;
  return piece < left ? piece : left;
}

/* Makes the pages inside of the range at once; what fails here is left to the copy. */
static void make_pages(char *to, uint64_t bytes) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t low = ((uintptr_t)to + page - 1) / page * page;
  uintptr_t high = ((uintptr_t)to + bytes) / page * page;
  int kept = errno;
  if (low < high) madvise((void *)low, high - low, MADV_POPULATE_WRITE);
  errno = kept;
}

/* Past the caches: lines that are written whole are not read from memory before, as others are.
 * The reads come from pinned memory, which the DMA has just written and the caches still hold. */
static void copy_out(char *to, const char *from, uint64_t bytes) {
  const uint64_t before = -(uint64_t)(uintptr_t)to % CUPLUG_LINE_BYTES;
  const uint64_t head = before < bytes ? before : bytes;
  const uint64_t tail = (bytes - head) % CUPLUG_LINE_BYTES, lines = bytes - head - tail;
  memcpy(to, from, head);
  cuplug_copy_nontemporal(to + head, from + head, lines);
  cuplug_nontemporal_fence(); /* before anybody is told that it is done */
  memcpy(to + head + lines, from + head + lines, tail);
}

/* The lock is given back while the bytes are copied. */
static void copy_piece(cuplug__host_copy *copy) {
  const uint64_t at = copy->taken, place = copy->first + at, bytes = next_piece(copy);
  copy->taken += bytes;
  if (copy->taken == copy->bytes) take_out(copy);
  pthread_mutex_unlock(&lock);
  if (is_fresh(copy)) {
    make_pages(copy->view->data + place, bytes);
    copy_out(copy->view->data + place, copy->packed + at, bytes);
  } else if (copy->is_write) {
    cuplug__view_write(copy->view, place, bytes, copy->packed + at);
  } else {
    cuplug__view_read(copy->view, place, bytes, copy->packed + at);
  }
  pthread_mutex_lock(&lock);
  copy->done += bytes;
  if (copy->done == copy->bytes) pthread_cond_broadcast(&finished);
}

/* ---- The workers ---------------------------------------------------------------------------- */

static void look_for_work(void) {
  for (int i = 0; i < N_LOOKS; i++) {
    if (atomic_load_explicit(&n_queued, memory_order_relaxed)) return;
    sched_yield();
  }
}

static void *work(void *unused) {
  pthread_mutex_lock(&lock);
  for (;;) {
    while (first) copy_piece(first);
    pthread_mutex_unlock(&lock);
    look_for_work();
    pthread_mutex_lock(&lock);
    n_sleeping++;
    while (!first) {
      pthread_cond_wait(&queued, &lock);
      if (n_called) n_called--;
    }
    n_sleeping--;
  }
  return unused;
}

/* Workers get the mask of the thread that makes them, so it is its CPUs that count. */
static long n_copy_threads(void) {
  cpu_set_t cpus;
  const char *text = secure_getenv("OMP_NUM_THREADS");
  long wanted = text ? strtol(text, NULL, 10) : 0;
  long n =
      sched_getaffinity(0, sizeof cpus, &cpus) ? sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&cpus);
  if (wanted > 0 && wanted < n) n = wanted;
  return n < CUPLUG__MAX_COPY_THREADS ? n : CUPLUG__MAX_COPY_THREADS;
}

/* Under the lock. Without workers, whoever waits for a copy does all of it. Signals are for the
 * threads of the program. */
static void start_workers(void) {
  static int watches_forks;
  pthread_attr_t attributes;
  pthread_t thread;
  sigset_t all, previous;
  started = 1;
  if (!watches_forks) watches_forks = !pthread_atfork(NULL, NULL, forget_workers);
  if (!watches_forks || pthread_attr_init(&attributes)) return;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  for (long n = n_copy_threads(); n > 1; n--)
    if (!pthread_create(&thread, &attributes, work, NULL)) {
      pthread_setname_np(thread, "cuplug");
      n_workers++;
    }
  pthread_sigmask(SIG_SETMASK, &previous, NULL);
  pthread_attr_destroy(&attributes);
}

/* Under the lock, until so many are awake. All at once where all are wanted: one by one they would
 * come too late. */
static void wake(int n_wanted) {
  const int n_asleep = n_sleeping - n_called, n_missing = n_wanted - (n_workers - n_asleep);
  if (n_missing < n_asleep) {
    for (int i = 0; i < n_missing; i++, n_called++) pthread_cond_signal(&queued);
  } else if (n_asleep) {
    n_called = n_sleeping;
    pthread_cond_broadcast(&queued);
  }
}

static void begin(cuplug__host_copy *copy, int n_helpers) {
  if (!copy->bytes) return;
  pthread_mutex_lock(&lock);
  if (!started) start_workers();
  append(copy);
  wake(n_helpers);
  pthread_mutex_unlock(&lock);
}

void cuplug__host_copy_read(cuplug__host_copy *copy, const cuplug__view *view, uint64_t first,
                            uint64_t bytes, void *to, int n_helpers) {
  const uint64_t best = cuplug__view_piece(view), piece = (VIEW_PIECE + best - 1) / best * best;
  *copy = (cuplug__host_copy){
      .view = view, .first = first, .packed = to, .bytes = bytes, .piece = piece};
  begin(copy, n_helpers);
}

void cuplug__host_copy_write(cuplug__host_copy *copy, const cuplug__view *view, uint64_t first,
                             uint64_t bytes, const void *from, int n_helpers) {
  const uint64_t piece = cuplug__view_is_contiguous(view) ? FRESH_PIECE : VIEW_PIECE;
  *copy = (cuplug__host_copy){.view = view,
                              .first = first,
                              .packed = (char *)from,
                              .is_write = 1,
                              .bytes = bytes,
                              .piece = piece};
  begin(copy, n_helpers);
}

void cuplug__host_copy_end(cuplug__host_copy *copy) {
  if (!copy->bytes) return;
  pthread_mutex_lock(&lock);
  while (copy->taken < copy->bytes) copy_piece(copy);
  while (copy->done < copy->bytes) pthread_cond_wait(&finished, &lock);
  pthread_mutex_unlock(&lock);
}

void cuplug__host_copy_whole(const cuplug__view *view, uint64_t bytes, void *to) {
  cuplug__host_copy copy;
  if (bytes < CUPLUG__SHARED_BYTES) {
    cuplug__view_read(view, 0, bytes, to);
    return;
  }
  cuplug__host_copy_read(&copy, view, 0, bytes, to, CUPLUG__MAX_COPY_THREADS);
  cuplug__host_copy_end(&copy);
}
