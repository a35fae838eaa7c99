/* sanitizers: address,undefined | thread */
/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of host memory, cached for later arrays. */
#include "check.h"

#include <cuplug/host.h>

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

static void check_reuse(void) {
  char *first = cuplug_allocate_host(32 * MIB), *other;
  CHECK(first && !((uintptr_t)first % 256));
  memset(first, 1, 32 * MIB);
  cuplug_free_host(first);
  other = cuplug_allocate_host(31 * MIB); /* somewhat smaller: the same, cut */
  CHECK(other == first);
  memset(other, 2, 31 * MIB);
  first = cuplug_allocate_host(31 * MIB); /* in use: another */
  CHECK(first && first != other);
  cuplug_free_host(first);
  cuplug_free_host(other);
  other = cuplug_allocate_host(16 * MIB); /* not for half of its size */
  CHECK(other && other != first);
  cuplug_free_host(other);
  CHECK(cuplug_trim_host() == (32 + 32 + 18) * MIB);
  CHECK(cuplug_trim_host() == 0);
}

static void check_sizes(void) {
  CHECK(!cuplug_allocate_host(0));
  CHECK(!cuplug_allocate_host((uint64_t)-1));
  CHECK(!cuplug_allocate_host((uint64_t)1 << 62));
  cuplug_free_host(NULL);
  char *small = cuplug_allocate_host(1);
  CHECK(small);
  *small = 7;
  small = cuplug_reallocate_host(small, 5 * MIB);
  CHECK(small && *small == 7);
  small[5 * MIB - 1] = 8;
  CHECK(!cuplug_reallocate_host(small, (uint64_t)-1) && small[5 * MIB - 1] == 8);
  small = cuplug_reallocate_host(small, 1);
  CHECK(small && *small == 7);
  cuplug_free_host(small);
  small = cuplug_reallocate_host(NULL, 3);
  CHECK(small);
  cuplug_free_host(small);
  cuplug_trim_host();
}

static _Atomic int n_marked; /* as free, to the system */
static int is_refusing;      /* that: kernels before 4.5 */

int madvise(void *address, size_t bytes, int advice) {
  n_marked += advice == MADV_FREE;
  if (advice == MADV_FREE && is_refusing) return errno = EINVAL, -1;
  return (int)syscall(SYS_madvise, address, bytes, advice);
}

/* The block that was freed last is not, unless it is very large. */
static void check_marks(void) {
  const uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  n_marked = 0;
  for (int k = 0; k < 3; k++) cuplug_free_host(cuplug_allocate_host(16 * MIB));
  CHECK(n_marked == 0);
  void *first = cuplug_allocate_host(16 * MIB), *second = cuplug_allocate_host(16 * MIB);
  cuplug_free_host(first);
  CHECK(n_marked == 0);
  cuplug_free_host(second);
  CHECK(n_marked == 1);
  CHECK(cuplug_allocate_host(16 * MIB) == second);
  cuplug_free_host(second);
  CHECK(n_marked == 1); /* the first is already */
  cuplug_free_host(cuplug_allocate_host(memory / 64 + MIB));
  CHECK(n_marked == 3);
  CHECK(cuplug_trim_host() > memory / 64 + 2 * 16 * MIB);
  is_refusing = 1; /* then nothing else is cached */
  first = cuplug_allocate_host(16 * MIB);
  cuplug_free_host(cuplug_allocate_host(17 * MIB));
  cuplug_free_host(first);
  CHECK(cuplug_trim_host() == 18 * MIB);
  is_refusing = 0;
}

/* More blocks than the cache holds: the oldest are freed. errno does not change. */
static void check_many(void) {
  enum { N = 100 };
  void *blocks[N];
  errno = 33;
  for (int i = 0; i < N; i++) CHECK(blocks[i] = cuplug_allocate_host(MIB));
  for (int i = 0; i < N; i++) cuplug_free_host(blocks[i]);
  CHECK(errno == 33);
  const uint64_t kept = cuplug_trim_host();
  CHECK(kept > 62 * MIB && kept <= 64 * MIB);
  for (int i = 0; i < N; i++) CHECK(blocks[i] = cuplug_allocate_host(16 * MIB));
  for (int i = 0; i < N; i++) cuplug_free_host(blocks[i]);
  CHECK(cuplug_trim_host() == 64 * 18 * MIB);
}

static void check_small(void) {
  char *first = cuplug_allocate_host(100 << 10), *other;
  CHECK(first && !((uintptr_t)first % 256));
  memset(first, 1, 100 << 10);
  cuplug_free_host(first);
  other = cuplug_allocate_host(60 << 10); /* not for much less */
  CHECK(other && other != first);
  cuplug_free_host(other);
  other = cuplug_allocate_host(90 << 10);
  CHECK(other == first);
  memset(other, 2, 90 << 10);
  other = cuplug_reallocate_host(other, 300 << 10);
  CHECK(other[(90 << 10) - 1] == 2);
  cuplug_free_host(other);
  CHECK(cuplug_trim_host() < 500 << 10);
}

/* Cached blocks count if the address space is limited: they are freed before memory runs out. */
static void check_limit(void) {
  struct rlimit before, limit;
  unsigned long pages = 0;
  cuplug_free_host(cuplug_allocate_host(40 * MIB));
  FILE *file = fopen("/proc/self/statm", "r");
  CHECK(file && fscanf(file, "%lu", &pages) == 1);
  fclose(file);
  getrlimit(RLIMIT_AS, &before);
  limit = before;
  limit.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + 30 * MIB;
  setrlimit(RLIMIT_AS, &limit);
  char *large = cuplug_allocate_host(60 * MIB);
  CHECK(large);
  cuplug_free_host(large);
  CHECK(!cuplug_allocate_host(160 * MIB));
  setrlimit(RLIMIT_AS, &before);
  CHECK(cuplug_trim_host() == 0);
}

static void *churn(void *seed) {
  unsigned state = (unsigned)(uintptr_t)seed;
  for (int i = 0; i < 200; i++) {
    state = state * 1103515245 + 12345;
    uint64_t bytes = 1 + state % (8 * MIB);
    char *block = cuplug_allocate_host(bytes);
    CHECK(block);
    block[0] = block[bytes - 1] = (char)(uintptr_t)seed;
    CHECK(block[0] == block[bytes - 1] && block[0] == (char)(uintptr_t)seed);
    cuplug_free_host(block);
  }
  return NULL;
}

static void check_threads(void) {
  pthread_t threads[4];
  for (uintptr_t i = 0; i < 4; i++) CHECK(!pthread_create(&threads[i], NULL, churn, (void *)i));
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  cuplug_trim_host();
}

/* A child begins with an empty cache. */
static void check_fork(void) {
  int status;
  char *before = cuplug_allocate_host(MIB);
  cuplug_free_host(cuplug_allocate_host(20 * MIB));
  *before = 5;
  pid_t child = fork();
  if (!child) {
    char *block = cuplug_allocate_host(20 * MIB);
    int fine = block && *before == 5 && !cuplug_trim_host();
    cuplug_free_host(before);
    cuplug_free_host(block);
    const uint64_t kept = cuplug_trim_host(); /* 22 MiB, whole huge pages, and 1 MiB and somewhat */
    _exit(fine && kept > 23 * MIB && kept < 24 * MIB ? 0 : 1);
  }
  CHECK(waitpid(child, &status, 0) == child && !status);
  cuplug_free_host(before);
  cuplug_trim_host();
}

int main(void) {
  check_reuse();
  check_sizes();
  check_marks();
  check_many();
  check_small();
  check_limit();
  check_threads();
  check_fork();
  return n_failed ? 1 : 0;
}
