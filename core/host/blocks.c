/* SPDX-License-Identifier: Apache-2.0 */
/* Large blocks of host memory. To make their pages takes as long as to fill them three times, so
 * freed blocks are kept, marked as free to the system (MADV_FREE): it takes their pages when it is
 * short of memory, and until then the next block of their size finds them in place. */
#include <cuplug/host.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE ((uint64_t)2 << 20) /* blocks are whole ones */
#define HEADER_BYTES 64               /* before a caller's memory, and its alignment */
#define MAX_KEPT 64                   /* blocks */
#define KEPT_SHARE 8                  /* of the machine's memory, as the device pool's share */

typedef struct block {
  char *address;
  uint64_t bytes;
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block kept[MAX_KEPT]; /* under the lock, like the next two; oldest first */
static uint32_t n_kept;
static uint64_t kept_bytes;

/* The child's copies of the blocks stay mapped, and are lost with it. */
static void forget_blocks(void) {
  pthread_mutex_init(&lock, NULL);
  n_kept = 0;
  kept_bytes = 0;
}

static void watch_forks(void) { pthread_atfork(NULL, NULL, forget_blocks); }

static uint64_t most_kept_bytes(void) {
  return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / KEPT_SHARE;
}

/* ---- The kept blocks, under the lock --------------------------------------------------------- */

static block take_out(uint32_t i) {
  block b = kept[i];
  memmove(&kept[i], &kept[i + 1], (--n_kept - i) * sizeof *kept);
  kept_bytes -= b.bytes;
  return b;
}

static void keep(block b) {
  const uint64_t most = most_kept_bytes();
  int is_kept = b.bytes <= most && !madvise(b.address, b.bytes, MADV_FREE);
  while (is_kept && n_kept && (n_kept == MAX_KEPT || kept_bytes + b.bytes > most)) {
    block oldest = take_out(0);
    munmap(oldest.address, oldest.bytes);
  }
  if (!is_kept) {
    munmap(b.address, b.bytes);
    return;
  }
  kept[n_kept++] = b;
  kept_bytes += b.bytes;
}

/* The smallest that is large enough, and not so much larger that what is shrink off would be
 * missed.
 */
static int find_kept(uint64_t bytes, block *found) {
  uint32_t best = n_kept;
  for (uint32_t i = 0; i < n_kept; i++)
    if (kept[i].bytes >= bytes && kept[i].bytes <= bytes + bytes / 4 &&
        (best == n_kept || kept[i].bytes <= kept[best].bytes))
      best = i;
  if (best == n_kept) return 0;
  *found = take_out(best);
  return 1;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static void shrink(block *b, uint64_t bytes) {
  if (b->bytes > bytes) munmap(b->address + bytes, b->bytes - bytes);
  b->bytes = bytes;
}

static int map(uint64_t bytes, block *b) {
  char *low =
      mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (low == MAP_FAILED) return 0;
  const uint64_t before = -(uint64_t)(uintptr_t)low % HUGE_PAGE;
  if (before) munmap(low, before);
  *b = (block){low + before, bytes + HUGE_PAGE - before};
  shrink(b, bytes);
  madvise(b->address, bytes, MADV_HUGEPAGE);
  return 1;
}

void *cuplug_allocate_host(uint64_t bytes) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  const int kept_errno = errno;
  block b;
  if (!bytes || bytes > INT64_MAX - 2 * HUGE_PAGE) return NULL;
  const uint64_t wanted = (bytes + HEADER_BYTES + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
  pthread_once(&once, watch_forks);
  pthread_mutex_lock(&lock);
  int found = find_kept(wanted, &b);
  pthread_mutex_unlock(&lock);
  if (found) shrink(&b, wanted);
  if (!found) found = map(wanted, &b);
  errno = kept_errno;
  if (!found) return NULL;
  memcpy(b.address, &b.bytes, sizeof b.bytes);
  return b.address + HEADER_BYTES;
}

static block block_of(void *pointer) {
  block b = {.address = (char *)pointer - HEADER_BYTES};
  memcpy(&b.bytes, b.address, sizeof b.bytes);
  return b;
}

void cuplug_free_host(void *pointer) {
  if (!pointer) return;
  const int kept_errno = errno;
  pthread_mutex_lock(&lock);
  keep(block_of(pointer));
  pthread_mutex_unlock(&lock);
  errno = kept_errno;
}

void *cuplug_reallocate_host(void *pointer, uint64_t bytes) {
  void *new = cuplug_allocate_host(bytes);
  if (!new || !pointer) return new;
  const uint64_t before = block_of(pointer).bytes - HEADER_BYTES;
  memcpy(new, pointer, before < bytes ? before : bytes);
  cuplug_free_host(pointer);
  return new;
}

uint64_t cuplug_trim_host(void) {
  pthread_mutex_lock(&lock);
  const uint64_t bytes = kept_bytes;
  while (n_kept) {
    block b = take_out(n_kept - 1);
    munmap(b.address, b.bytes);
  }
  pthread_mutex_unlock(&lock);
  return bytes;
}
