/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by host entries that move elements in the order of their output. The output is split into
 * ranges for threads, and these into blocks that stay in the cache. A large output is stored
 * bypassing the cache, in complete lines. */
#ifndef CUPLUG_INDEXING_BLOCKS_H
#define CUPLUG_INDEXING_BLOCKS_H

#include <cuplug/nontemporal.h>
#include <cuplug/plugin.h>

#define BLOCKS_PARALLEL_FROM (1 << 18) /* bytes; below, waking threads costs more time */
#define BLOCKS_GRAIN (1 << 16)         /* bytes of a thread's range */
#define BLOCKS_PAST 2048               /* bytes that are stored bypassing the caches at once */
#define BLOCKS_NEAR 8192               /* bytes of a block that stays in the cache */

/* Writes elements `first` to first + n - 1 of the output to `to`. */
typedef void blocks_fill(const void *job, char *to, int64_t first, int64_t n);

typedef struct blocks_job {
  const void *job;
  blocks_fill *fill;
  char *out;
  int64_t bytes;      /* bytes of an element */
  int is_nontemporal; /* the caches */
} blocks_job;

static inline int64_t blocks_min(int64_t a, int64_t b) { return a < b ? a : b; }

static int blocks_range(void *context, int64_t begin, int64_t end) {
  const blocks_job *j = context;
  char block[BLOCKS_PAST] __attribute__((aligned(CUPLUG_LINE_BYTES)));
  const int64_t step = (j->is_nontemporal ? BLOCKS_PAST : BLOCKS_NEAR) / j->bytes;
  const uintptr_t start = (uintptr_t)j->out + (uintptr_t)(begin * j->bytes);
  int64_t line = begin - (j->is_nontemporal ? (int64_t)(start % CUPLUG_LINE_BYTES) / j->bytes : 0);
  for (; line < end; line += step) {
    const int64_t at = line < begin ? begin : line, n = blocks_min(line + step, end) - at;
    char *to = j->out + at * j->bytes;
    j->fill(j->job, j->is_nontemporal ? block : to, at, n);
    if (j->is_nontemporal) cuplug_copy_nontemporal(to, block, (size_t)(n * j->bytes));
  }
  if (j->is_nontemporal) cuplug_nontemporal_fence();
  return CUPLUG_OK;
}

/* Fills memory of n elements with this number of bytes, on several threads if that saves time. */
static inline int blocks_run_to(const cuplug_call *call, void *to, const void *job,
                                blocks_fill *fill, int64_t n, int64_t bytes) {
  blocks_job j = {job, fill, to, bytes, n * bytes >= CUPLUG_NONTEMPORAL_FROM};
  if (n * bytes < BLOCKS_PARALLEL_FROM) return blocks_range(&j, 0, n);
  return cuplug_parallel(call, n, BLOCKS_GRAIN / bytes, blocks_range, &j);
}

/* The same for the output. */
static inline int blocks_run(const cuplug_call *call, const void *job, blocks_fill *fill, int64_t n,
                             int64_t bytes) {
  return blocks_run_to(call, call->outputs[0].data, job, fill, n, bytes);
}

#endif
