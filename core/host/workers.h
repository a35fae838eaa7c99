/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of host arrays, to and from pinned memory most of all, by several threads: one core alone
 * is slower than the bus. The pool of threads is made at the first copy and serves all calls. */
#ifndef CUPLUG_CORE_HOST_WORKERS_H
#define CUPLUG_CORE_HOST_WORKERS_H

#include "host/view.h"

/* The calling one included. More than keep the bus busy take memory bandwidth from each other. */
#define CUPLUG__MAX_COPY_THREADS 12

/* For smaller copies, waking them costs more than it gains. */
#define CUPLUG__SHARED_BYTES ((uint64_t)4 << 20)

/* A copy under way, in its owner's memory; all zero is one that is done. Done by pieces, which the
 * workers and whoever waits for it take. */
typedef struct cuplug__host_copy {
  char *to;
  const char *from;         /* pinned memory, or NULL: */
  const cuplug__view *view; /* from its bytes from `first` on */
  uint64_t first;
  uint64_t bytes, piece;
  uint64_t taken, done; /* bytes; under the pool's lock */
  struct cuplug__host_copy *next;
} cuplug__host_copy;

/* Both return at once; both memories, and the view, are in use until host_copy_end. Workers are
 * woken until n_helpers are awake. */
void cuplug__host_copy_view(cuplug__host_copy *copy, void *to, const cuplug__view *from,
                            uint64_t first, uint64_t bytes, int n_helpers);
/* The array may be fresh: its pages are made by the workers. */
void cuplug__host_copy_from_pinned(cuplug__host_copy *copy, void *to, const void *from,
                                   uint64_t bytes, int n_helpers);
/* A whole view, at once; small ones without workers. */
void cuplug__host_copy_whole(void *to, const cuplug__view *from, uint64_t bytes);

/* Takes part in the copy and returns when it is done, at once if it was. */
void cuplug__host_copy_end(cuplug__host_copy *copy);

#endif
