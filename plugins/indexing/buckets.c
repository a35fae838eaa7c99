/* SPDX-License-Identifier: Apache-2.0 */
/* Values for any positions in x. Chunks of them are sorted into buckets, which are ranges of
 * positions, in their order. One thread processes a bucket of all chunks: no other writes to its
 * range, which stays in the cache, and the last of several values for one position remains. */
#include "indexing/scatter.h"

#include <stdlib.h>
#include <string.h>

/* With MANY threads or more, waking them saves time from FROM values and positions on. Fewer
 * threads are as slow as one that moves all values in order, unless x has CACHED bytes or more. */
#define FROM (1 << 16)
#define MANY 4
#define CACHED (1 << 25)
#define NARROW 16 /* elements of a row; wider ones are written contiguously */
#define PARTS 64  /* rows of x that keep threads busy without splitting */

/* FEW_BUCKETS keep threads busy, and sorting chunks into them takes little time. There are more if
 * a cache would not hold such a bucket. */
#define FEW_BUCKETS 64
#define N_BUCKETS 256
#define LEAST_BITS 10  /* bits of a position in its bucket */
#define CACHED_BITS 16 /* bits of positions that a cache holds */

#define CHUNK 16384     /* values that one thread sorts */
#define ROUND (1 << 24) /* values that are sorted before they are moved */

typedef struct buckets {
  const job *job;
  struct job sorted;
  int64_t first, n; /* values of the round */
  uint32_t *at;     /* their positions in their bucket, for each chunk bucket by bucket, */
  void *kept;       /* and the values, or their numbers, in the same order */
  int32_t (*ends)[N_BUCKETS]; /* of each chunk's buckets */
  int shift;                  /* place >> shift is its bucket */
} buckets;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t n_chunks(int64_t n) { return (n + CHUNK - 1) / CHUNK; }
static int64_t n_elements(const job *j) {
  return j->places.x.n_outer * j->places.x.m * j->places.x.width;
}

/* The positions of a chunk, and the starts of its buckets. */
static int find_and_count(const buckets *b, int64_t c, int64_t n, int64_t *at) {
  int32_t *begins = b->ends[c], begin = 0;
  memset(begins, 0, sizeof *b->ends);
  for (int64_t k = 0; k < n; k += RUN) {
    const int64_t last = smaller(k + RUN, n);
    const int status = find_places(b->job, b->first + c * CHUNK + k, last - k, at + k);
    if (status) return status;
    for (int64_t i = k; i < last; i++) begins[at[i] >> b->shift]++;
  }
  for (int64_t k = 0; k < N_BUCKETS; k++) {
    const int32_t n_own = begins[k];
    begins[k] = begin;
    begin += n_own;
  }
  return CUPLUG_OK;
}

/* Each value advances the start of its bucket, which becomes its end. */
#define SORT(T, value)                                    \
  {                                                       \
    T *restrict kept = (T *)b->kept + c * CHUNK;          \
    for (int64_t k = 0; k < n; k++) {                     \
      const int64_t bucket = at[k] >> shift;              \
      const int32_t to = ends[bucket]++;                  \
      places[to] = (uint32_t)(at[k] - (bucket << shift)); \
      kept[to] = value;                                   \
    }                                                     \
  }
#define SORT_VALUES(T) SORT(T, ((const T *)b->job->values)[first + k])

static void sort(const buckets *b, int64_t c, const int64_t *at, int64_t n) {
  int32_t *restrict ends = b->ends[c];
  uint32_t *restrict places = b->at + c * CHUNK;
  const int64_t first = b->first + c * CHUNK;
  const int shift = b->shift;
  if (!b->job->values)
    SORT(int64_t, first + k)
  else
    ELEMENTS_BY_WIDTH(b->job->element_bytes, SORT_VALUES)
}

static int sort_chunks(void *context, int64_t begin, int64_t end) {
  const buckets *b = context;
  int64_t *at = malloc(CHUNK * sizeof *at); /* a caller's stack may be smaller */
  int status = at ? CUPLUG_OK : CUPLUG_ERROR_MEMORY;
  for (int64_t c = begin; c < end && !status; c++) {
    const int64_t n = smaller(b->n - c * CHUNK, CHUNK);
    status = find_and_count(b, c, n, at);
    if (!status) sort(b, c, at, n);
  }
  free(at);
  return status;
}

/* The values of a bucket, which begins with position `begin`. */
static void move_part(const buckets *b, int64_t begin, int64_t first, int64_t n) {
  int64_t at[RUN];
  for (int64_t i = 0; i < n; i++) at[i] = begin + b->at[first + i];
  b->job->move(&b->sorted, at, first, n);
}

static int move_buckets(void *context, int64_t begin, int64_t end) {
  const buckets *b = context;
  for (int64_t k = begin; k < end; k++)
    for (int64_t c = 0; c < n_chunks(b->n); c++) {
      const int64_t last = c * CHUNK + b->ends[c][k];
      for (int64_t i = c * CHUNK + (k ? b->ends[c][k - 1] : 0); i < last; i += RUN)
        move_part(b, k << b->shift, i, smaller(last - i, RUN));
    }
  return CUPLUG_OK;
}

static int take_memory(buckets *b, int64_t n) {
  const cuplug_call *call = b->job->call;
  const int64_t each = b->job->values ? b->job->element_bytes : (int64_t)sizeof *b->job->numbers;
  b->at = cuplug_workspace(call, (uint64_t)n * sizeof *b->at);
  b->kept = b->at ? cuplug_workspace(call, (uint64_t)(n * each)) : NULL;
  b->ends = b->kept ? cuplug_workspace(call, (uint64_t)n_chunks(n) * sizeof *b->ends) : NULL;
  b->sorted = *b->job;
  if (b->job->values)
    b->sorted.values = b->kept;
  else
    b->sorted.numbers = b->kept;
  return b->ends ? CUPLUG_OK : CUPLUG_ERROR_MEMORY;
}

int wants_buckets(const job *j) {
  const int64_t n = n_elements(j);
  if (j->places.n < FROM || j->places.x.width >= NARROW || j->places.x.n_outer >= PARTS) return 0;
  return n * j->element_bytes >= CACHED || (n >= FROM && cuplug_n_threads(j->call) >= MANY);
}

static int shift_of(int64_t n) {
  int shift = LEAST_BITS;
  while ((n - 1) >> shift >= (shift < CACHED_BITS ? FEW_BUCKETS : N_BUCKETS)) shift++;
  return shift;
}

int move_in_buckets(const job *j) {
  buckets b = {.job = j, .shift = shift_of(n_elements(j))};
  int status = take_memory(&b, smaller(j->places.n, ROUND));
  for (; b.first < j->places.n && !status; b.first += b.n) {
    b.n = smaller(j->places.n - b.first, ROUND);
    status = cuplug_parallel(j->call, n_chunks(b.n), 1, sort_chunks, &b);
    if (!status) status = cuplug_parallel(j->call, N_BUCKETS, 1, move_buckets, &b);
  }
  return status;
}
