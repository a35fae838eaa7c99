/* SPDX-License-Identifier: Apache-2.0 */
/* histogram(x, bins, low, high): the counts of numbers in even bins from low to high, as in NumPy:
 * a number at an edge is in the bin above it, and high in the last one. Others and NaN are in none.
 *   x T[*n], low < high, a finite distance; out int64[bins]
 * histogram(x, edges): the same between edges, which must ascend, else ValueError.
 *   edges T[m]; out int64[m - 1]
 * bincount(x, size): the counts of 0 to size - 1. Other values raise IndexError.
 *   x I[*n]; out int64[size]
 *
 * T: bool, integers, floating dtypes. Bytes moved: x once. On the host, each thread has its own
 * counts. On a GPU, each block has its own, in shared memory, if the bins fit. */
#include "indexing/bins.h"

#include <string.h>

CUPLUG_ENTRY int histogram_cuda(const cuplug_call *call);
CUPLUG_ENTRY int histogram_edges_cuda(const cuplug_call *call);
CUPLUG_ENTRY int bincount_cuda(const cuplug_call *call);

#define MOST_PARTS 64
#define LEAST (1 << 15)       /* numbers that are worth a thread */
#define MOST_COUNTS (1 << 22) /* of all threads together */

typedef struct job {
  const cuplug_call *call;
  bins bins;
  int64_t n_parts, *counts; /* of each part */
} job;

/* In each branch, the choices of bins_of are constants for the compiler. */
#define COUNT(...)                                                                           \
  {                                                                                          \
    bins b = j->bins;                                                                        \
    __VA_ARGS__;                                                                             \
    for (int64_t i = first; i < last; i++) {                                                 \
      const int64_t bin = bins_of(&b, i);                                                    \
      if ((uint64_t)bin < (uint64_t)b.n_bins)                                                \
        counts[bin]++;                                                                       \
      else if (is_strict)                                                                    \
        return cuplug_failf(j->call, CUPLUG_ERROR_INDEX,                                     \
                            "x: index %lld at position %lld is out of bounds for size %lld", \
                            (long long)bin, (long long)i, (long long)b.n_bins);              \
    }                                                                                        \
    break;                                                                                   \
  }

static int count_parts(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  const int is_strict = !j->bins.is_even && !j->bins.edges;
  for (int64_t part = begin; part < end; part++) {
    const int64_t first = j->bins.n * part / j->n_parts, last = j->bins.n * (part + 1) / j->n_parts;
    int64_t *counts = j->counts + part * j->bins.n_bins;
    memset(counts, 0, (size_t)j->bins.n_bins * sizeof *counts);
    switch (j->bins.type) {
    case CUPLUG_FLOAT32:
      COUNT(b.type = CUPLUG_FLOAT32)
    case CUPLUG_FLOAT64:
      COUNT(b.type = CUPLUG_FLOAT64)
    case CUPLUG_INT64:
      COUNT(b.type = CUPLUG_INT64)
    default:
      COUNT()
    }
  }
  return CUPLUG_OK;
}

static int count(const cuplug_call *call, int what) {
  job j = {call, bins_of_call(call, what), 1, call->outputs[0].data};
  const int64_t n_bins = j.bins.n_bins, wanted = j.bins.n / LEAST,
                most = MOST_COUNTS / (n_bins + 1);
  int status = bins_check(call, &j.bins);
  if (status) return status;
  j.n_parts = wanted > MOST_PARTS ? MOST_PARTS : wanted;
  if (j.n_parts > most) j.n_parts = most;
  if (j.n_parts < 2) j.n_parts = 1;
  if (n_bins == 0 && j.bins.n == 0) return CUPLUG_OK;
  if (j.n_parts > 1)
    j.counts = cuplug_workspace(call, (uint64_t)(j.n_parts * n_bins + 1) * sizeof *j.counts);
  if (!j.counts && n_bins) return CUPLUG_ERROR_MEMORY;
  status = cuplug_parallel(call, j.n_parts, 1, count_parts, &j);
  int64_t *out = call->outputs[0].data;
  if (status || j.n_parts == 1) return status;
  memcpy(out, j.counts, (size_t)n_bins * sizeof *out);
  for (int64_t k = n_bins; k < j.n_parts * n_bins; k++) out[k % n_bins] += j.counts[k];
  return CUPLUG_OK;
}

CUPLUG_ENTRY int histogram_host(const cuplug_call *call) { return count(call, BINS_EVEN); }
CUPLUG_ENTRY int histogram_edges_host(const cuplug_call *call) {
  const bins b = bins_of_call(call, BINS_EDGES);
  for (int64_t k = 1; k <= b.n_bins; k++)
    if (bins_key(&b, b.edges, k) < bins_key(&b, b.edges, k - 1))
      return cuplug_failf(call, CUPLUG_ERROR_VALUE,
                          "edges: got a smaller number at position %lld, expected ascending ones",
                          (long long)k);
  return count(call, BINS_EDGES);
}
CUPLUG_ENTRY int bincount_host(const cuplug_call *call) { return count(call, BINS_COUNTS); }

#define NUMBERS "T: bool | integer | floating"

CUPLUG_OPERATOR(histogram_edges_cuda, histogram_edges_host,
                "histogram(x: T[*n], edges: T[m]) -> int64[m - 1] where " NUMBERS ", m > 0",
                "The number of elements in each bin between ascending edges." CUPLUG_DETERMINISTIC);
CUPLUG_OPERATOR(
    histogram_cuda, histogram_host,
    "histogram(x: T[*n], bins: int, low: float, high: float) -> int64[bins] "
    "where " NUMBERS ", bins > 0, low < high",
    "The number of elements in each of the equal bins from low to high." CUPLUG_NONBLOCKING
        CUPLUG_DETERMINISTIC);
CUPLUG_OPERATOR(bincount_cuda, bincount_host,
                "bincount(x: I[*n], size: int) -> int64[size] where I: integer, size >= 0",
                "The number of occurrences of each integer from 0 to size - 1." CUPLUG_NONBLOCKING
                    CUPLUG_DETERMINISTIC);
