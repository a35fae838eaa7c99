/* SPDX-License-Identifier: Apache-2.0 */
/* Host copies, mostly to or from pinned memory, by several threads: one is slower than the bus. */
#ifndef CUPLUG_CORE_HOST_COPIES_H
#define CUPLUG_CORE_HOST_COPIES_H

#include "host/thread_pool.h"
#include "host/view.h"

/* With the calling one. More threads than keep the bus busy take memory bandwidth from each other.
 */
#define CUPLUG__MAX_COPY_THREADS 12

/* One more thread for each of these bytes of a copy. */
#define CUPLUG__BYTES_OF_HELPER ((uint64_t)512 << 10)

/* A copy in progress, in its owner's memory; all zero: it is done. */
typedef struct cuplug__host_copy {
  cuplug__loop loop; /* bytes in pieces; `lead` bytes before the copy make the first whole */
  cuplug__job *job;
  const cuplug__view *view; /* its bytes from `first` on */
  uint64_t first, lead;
  char *packed;        /* the other side, contiguous; NULL: only the pages of the view are made */
  int is_write;        /* to the view */
  int is_for_dma;      /* the DMA reads the packed bytes */
  _Atomic int is_over; /* no more pages are made */
} cuplug__host_copy;

/* Reads a view into contiguous memory, or writes it from there. Returns at once; both memories, and
 * the view, are in use until host_copy_end. Threads are woken until n_helpers are awake. Reads
 * bypass the cache: from the caches of several cores, the DMA gets half its rate. The written array
 * may be fresh: the pool creates pages of a contiguous one. */
void cuplug__host_copy_begin(cuplug__host_copy *copy, int is_write, const cuplug__view *view,
                             uint64_t first, uint64_t bytes, const void *packed, int n_helpers);
/* Reads a whole view, and waits; small ones on the calling thread only, others on all. */
void cuplug__host_copy_whole(const cuplug__view *view, uint64_t bytes, void *to);

/* Takes part in the copy and returns when it is done, at once if it was. */
void cuplug__host_copy_end(cuplug__host_copy *copy);

/* The same for pages of new memory, a contiguous view's, which the thread pool creates before code
 * writes there. The end leaves the remaining pages to that code. */
void cuplug__host_pages_begin(cuplug__host_copy *pages, const cuplug__view *view, uint64_t first,
                              uint64_t bytes);
void cuplug__host_pages_end(cuplug__host_copy *pages);

#endif
