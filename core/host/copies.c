/* SPDX-License-Identifier: Apache-2.0 */
#include "host/copies.h"

#include "base/layout.h"

#include <cuplug/nontemporal.h>
#include <errno.h>
#include <internal/functions.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; older ones create pages one by one */
#endif

/* Small pieces: all threads work on the same few chunks, so that the next DMA can begin soon.
 * Larger ones for fresh memory, whose pages are made piece by piece, where `to` is a multiple of
 * these. */
#define SHARED_PIECE ((uint64_t)32 << 10) /* of copies that all threads share */
#define LEAST_PIECE ((uint64_t)64 << 10)  /* of others, of few bytes */
#define VIEW_PIECE ((uint64_t)256 << 10)
#define FRESH_PIECE ((uint64_t)512 << 10)

/* For arrays that are not contiguous: from this size on, several threads copy them. */
#define STRIDED_BYTES ((uint64_t)256 << 10)

/* Arrays of less are in the caches still when the DMA comes, and mostly have their pages. */
#define CACHED_BYTES ((uint64_t)32 << 20)

/* Pages are made ahead in pieces of this size: threads that share one make, and clear, it each. */
#define HUGE_PAGE ((uint64_t)2 << 20)

/* Threads that make pages: faster than the bus, and the others copy meanwhile. */
#define N_PAGE_MAKERS 6

/* Written to memory that may have no pages yet. */
static int is_fresh(const cuplug__host_copy *copy) {
  return copy->is_write && cuplug__view_is_contiguous(copy->view);
}

static int is_small(const cuplug__view *view) {
  return cuplug__view_is_contiguous(view) && view->block_bytes < CACHED_BYTES;
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

/* Past the caches: lines that are written whole are not read from memory before, as others are. */
static void copy_out(char *to, const char *from, uint64_t bytes) {
  const uint64_t before = -(uint64_t)(uintptr_t)to % CUPLUG_LINE_BYTES;
  const uint64_t head = before < bytes ? before : bytes;
  const uint64_t tail = (bytes - head) % CUPLUG_LINE_BYTES, lines = bytes - head - tail;
  memcpy(to, from, head);
  cuplug_copy_nontemporal(to + head, from + head, lines);
  cuplug_nontemporal_fence(); /* before other threads are notified of the end */
  memcpy(to + head + lines, from + head + lines, tail);
}

/* Bytes of the copy and of the lead before it. */
static int copy_piece(void *context, int64_t begin, int64_t end) {
  const cuplug__host_copy *copy = context;
  const uint64_t from = (uint64_t)begin < copy->lead ? copy->lead : (uint64_t)begin;
  const uint64_t bytes = (uint64_t)end - from, at = from - copy->lead, place = copy->first + at;
  if (!copy->packed) {
    if (copy->is_over) return CUPLUG_ERROR_VALUE; /* none of the others begins */
    make_pages(copy->view->data + place, bytes);
  } else if (copy->is_for_dma && is_small(copy->view)) {
    copy_out(copy->packed + at, copy->view->data + place, bytes);
  } else if (is_fresh(copy)) {
    if (!is_small(copy->view)) make_pages(copy->view->data + place, bytes);
    copy_out(copy->view->data + place, copy->packed + at, bytes);
  } else {
    cuplug__view_copy(copy->view, copy->is_write, place, bytes, copy->packed + at);
  }
  return CUPLUG_OK;
}

/* In pieces of `wanted` bytes or more, that end at multiples of this: of the array's address if it
 * is fresh, else of the position in the view. */
static void describe(cuplug__host_copy *copy, int is_write, const cuplug__view *view,
                     uint64_t first, uint64_t bytes, const void *packed, uint64_t wanted) {
  const uint64_t best = is_write ? 1 : cuplug__view_piece(view);
  const uint64_t piece = (wanted + best - 1) / best * best;
  *copy = (cuplug__host_copy){
      .view = view, .first = first, .packed = (char *)packed, .is_write = is_write};
  copy->lead = ((is_fresh(copy) ? (uint64_t)(uintptr_t)view->data : 0) + first) % piece;
  if (!bytes) return;
  copy->loop = (cuplug__loop){.body = copy_piece,
                              .context = copy,
                              .n = (int64_t)(copy->lead + bytes),
                              .grain = (int64_t)piece};
}

/* Enough for some threads, whole pages. */
static uint64_t piece_of(int is_write, const cuplug__view *view, uint64_t bytes) {
  const uint64_t most = is_write && cuplug__view_is_contiguous(view) ? FRESH_PIECE : VIEW_PIECE;
  const uint64_t wanted = bytes / 8 / LEAST_PIECE * LEAST_PIECE;
  return wanted < LEAST_PIECE ? LEAST_PIECE : wanted < most ? wanted : most;
}

void cuplug__host_copy_begin(cuplug__host_copy *copy, int is_write, const cuplug__view *view,
                             uint64_t first, uint64_t bytes, const void *packed, int n_helpers) {
  const int most = CUPLUG__MAX_COPY_THREADS - 1;
  describe(copy, is_write, view, first, bytes, packed, piece_of(is_write, view, bytes));
  copy->is_for_dma = !is_write;
  copy->loop.n_helpers = n_helpers < most ? n_helpers : most;
  if (copy->loop.n) copy->job = cuplug__team_begin(&copy->loop);
}

void cuplug__host_copy_end(cuplug__host_copy *copy) {
  (void)cuplug__team_end(&copy->loop, copy->job);
  copy->loop = (cuplug__loop){0};
  copy->job = NULL;
}

void cuplug__host_pages_begin(cuplug__host_copy *pages, const cuplug__view *view, uint64_t first,
                              uint64_t bytes) {
  describe(pages, 1, view, first, bytes, NULL, HUGE_PAGE);
  pages->loop.n_helpers = N_PAGE_MAKERS;
  if (bytes) pages->job = cuplug__team_begin(&pages->loop);
}

void cuplug__host_pages_end(cuplug__host_copy *pages) {
  pages->is_over = 1;
  cuplug__host_copy_end(pages);
}

static void copy_whole(int is_write, const cuplug__view *view, uint64_t bytes, void *packed,
                       uint64_t piece) {
  cuplug__host_copy copy;
  if (bytes < STRIDED_BYTES) {
    cuplug__view_copy(view, is_write, 0, bytes, packed);
    return;
  }
  describe(&copy, is_write, view, 0, bytes, packed, piece);
  (void)cuplug__team_run(copy.loop.n, copy.loop.grain, copy_piece, &copy);
}

void cuplug__host_copy_whole(const cuplug__view *view, uint64_t bytes, void *to) {
  copy_whole(0, view, bytes, to, bytes < CACHED_BYTES ? SHARED_PIECE : VIEW_PIECE);
}

int cuplug_copy_array(const cuplug_tensor *to, const cuplug_tensor *from) {
  const uint64_t bytes = (uint64_t)(cuplug_n_elements(from) * cuplug_element_bytes(from));
  cuplug__view view;
  cuplug__view_array(&view, to);
  if (cuplug__view_is_contiguous(&view)) {
    cuplug__view_array(&view, from);
    cuplug__host_copy_whole(&view, bytes, to->data);
  } else if (cuplug__shares_elements(to)) {
    return 0;
  } else {
    copy_whole(1, &view, bytes, from->data, piece_of(1, &view, bytes));
  }
  return 1;
}
