/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of host memory. Creating their pages takes three times as long as filling them, and the C
 * library releases the pages of freed memory early, so freed blocks are cached. Large ones are
 * marked as free for the system (MADV_FREE): it takes their pages when it is short of memory, and
 * until then the next block of their size finds them. The last one, if it is not very large, is
 * marked once another is freed: a caller that drops a result before each call gets it back without
 * that. Small ones are the C library's, cached unchanged. */
#include <cuplug/host.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE ((uint64_t)2 << 20) /* large blocks are whole ones */
#define LARGE_BYTES ((uint64_t)16 << 20)
#define PAGE 4096
#define ALIGNMENT 256    /* of a caller's memory, at least this far after the start */
#define MAX_KEPT 64      /* blocks of each kind */
#define KEPT_SHARE 8     /* of the machine's memory, as the device pool's share: large blocks */
#define UNMARKED_SHARE 8 /* of those, the last block */
#define KEPT_SMALL_BYTES ((uint64_t)64 << 20)

typedef struct block {
  char *address;
  uint64_t bytes;
  int is_marked;
} block;

typedef struct shelf {
  block kept[MAX_KEPT]; /* oldest first */
  uint32_t n;
  uint64_t bytes;
} shelf;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static shelf small, large; /* under the lock */

static int is_large(uint64_t bytes) { return bytes >= LARGE_BYTES; }

static shelf *shelf_of(uint64_t bytes) { return is_large(bytes) ? &large : &small; }

/* The child's copies of the blocks stay in place, and are lost with it. */
static void forget_blocks(void) {
  pthread_mutex_init(&lock, NULL);
  small = large = (shelf){.n = 0};
}

static void watch_forks(void) { pthread_atfork(NULL, NULL, forget_blocks); }

static uint64_t most_kept_bytes(const shelf *s) {
  if (s == &small) return KEPT_SMALL_BYTES;
  return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / KEPT_SHARE;
}

static void release(block b) {
  if (is_large(b.bytes))
    munmap(b.address, b.bytes);
  else
    free(b.address);
}

/* ---- The kept blocks, under the lock --------------------------------------------------------- */

static block take_out(shelf *s, uint32_t i) {
  block b = s->kept[i];
  memmove(&s->kept[i], &s->kept[i + 1], (--s->n - i) * sizeof *s->kept);
  s->bytes -= b.bytes;
  return b;
}

static void mark_last(shelf *s) {
  if (!s->n) return;
  block *last = &s->kept[s->n - 1];
  if (last->is_marked) return;
  last->is_marked = !madvise(last->address, last->bytes, MADV_FREE);
  if (!last->is_marked) release(take_out(s, s->n - 1));
}

static void keep(block b) {
  shelf *s = shelf_of(b.bytes);
  const uint64_t most = most_kept_bytes(s);
  if (b.bytes > most) return release(b);
  b.is_marked = 0;
  if (s == &large) mark_last(s);
  while (s->n && (s->n == MAX_KEPT || s->bytes + b.bytes > most)) release(take_out(s, 0));
  s->kept[s->n++] = b;
  s->bytes += b.bytes;
  if (s == &large && b.bytes > most / UNMARKED_SHARE) mark_last(s);
}

/* The smallest that is large enough, and not so much larger that the rest would be missed. */
static int find_cached_block(uint64_t bytes, block *found) {
  shelf *s = shelf_of(bytes);
  uint32_t best = s->n;
  for (uint32_t i = 0; i < s->n; i++)
    if (s->kept[i].bytes >= bytes && s->kept[i].bytes <= bytes + bytes / 4 &&
        (best == s->n || s->kept[i].bytes <= s->kept[best].bytes))
      best = i;
  if (best == s->n) return 0;
  *found = take_out(s, best);
  return 1;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static void shrink(block *b, uint64_t bytes) {
  if (b->bytes > bytes) munmap(b->address + bytes, b->bytes - bytes);
  b->bytes = bytes;
}

static uint64_t whole(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

static int make(uint64_t bytes, block *b) {
  *b = (block){.address = aligned_alloc(ALIGNMENT, bytes), .bytes = bytes};
  if (b->address && bytes >= 2 * HUGE_PAGE) {
    const uint64_t before = -(uint64_t)(uintptr_t)b->address % HUGE_PAGE;
    madvise(b->address + before, (bytes - before) / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
  }
  return b->address != NULL;
}

static int map(uint64_t bytes, block *b) {
  char *low =
      mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (low == MAP_FAILED) return 0;
  const uint64_t before = -(uint64_t)(uintptr_t)low % HUGE_PAGE;
  if (before) munmap(low, before);
  *b = (block){.address = low + before, .bytes = bytes + HUGE_PAGE - before};
  shrink(b, bytes);
  madvise(b->address, bytes, MADV_HUGEPAGE);
  return 1;
}

static int make_or_map(uint64_t bytes, block *b) {
  return is_large(bytes) ? map(bytes, b) : make(bytes, b);
}

static block *header_of(void *pointer) { return (block *)((char *)pointer - ALIGNMENT); }

/* From after a header at the start of a block to the caller's memory. If a read follows a write to
 * the same offset of another page, processors wait, for about 100 bytes: arrays must begin at
 * different offsets, and far from the start of pages, where the C library's large ones begin. */
static uint64_t distance_of(const char *address) {
  const uintptr_t number = (uintptr_t)address / PAGE ^ (uintptr_t)address / HUGE_PAGE;
  const uint64_t place = ALIGNMENT + number % 8 * (PAGE / 8);
  return (place - (uintptr_t)address - ALIGNMENT) % PAGE;
}

void *cuplug_allocate_host(uint64_t bytes) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  const int kept_errno = errno;
  block b;
  if (!bytes || bytes > INT64_MAX - 2 * HUGE_PAGE) return NULL;
  uint64_t wanted = whole(bytes + ALIGNMENT + PAGE, ALIGNMENT);
  if (is_large(wanted)) wanted = whole(wanted, HUGE_PAGE);
  pthread_once(&once, watch_forks);
  pthread_mutex_lock(&lock);
  int found = find_cached_block(wanted, &b);
  pthread_mutex_unlock(&lock);
  if (found && is_large(wanted)) shrink(&b, wanted);
  if (!found) found = make_or_map(wanted, &b);
  /* Where the address space is limited, kept blocks count. */
  if (!found && cuplug_trim_host()) found = make_or_map(wanted, &b);
  errno = kept_errno;
  if (!found) return NULL;
  block *header = header_of(b.address + ALIGNMENT + distance_of(b.address));
  *header = b;
  return (char *)header + ALIGNMENT;
}

void cuplug_free_host(void *pointer) {
  if (!pointer) return;
  const int kept_errno = errno;
  pthread_mutex_lock(&lock);
  keep(*header_of(pointer));
  pthread_mutex_unlock(&lock);
  errno = kept_errno;
}

void *cuplug_reallocate_host(void *pointer, uint64_t bytes) {
  void *new = cuplug_allocate_host(bytes);
  if (!new || !pointer) return new;
  const block *b = header_of(pointer);
  const uint64_t before = b->bytes - (uint64_t)((char *)pointer - b->address);
  memcpy(new, pointer, before < bytes ? before : bytes);
  cuplug_free_host(pointer);
  return new;
}

uint64_t cuplug_trim_host(void) {
  pthread_mutex_lock(&lock);
  const uint64_t bytes = small.bytes + large.bytes;
  while (small.n) release(take_out(&small, small.n - 1));
  while (large.n) release(take_out(&large, large.n - 1));
  pthread_mutex_unlock(&lock);
  return bytes;
}
