/* SPDX-License-Identifier: Apache-2.0 */
/* permutation(n, key, sequence, first): the numbers below n in the order of the random bits of
 * elements first to first + n - 1 of a sequence, which philox.h defines.     out int64[n]
 *
 * They are sorted by 32 narrow bits; if these are equal, by 64 deciding bits; if these are also
 * equal, which happens for less than n^2 / 2^97 of all seeds, by number. Bytes moved: as in argsort
 * of keys of 32 bits. */
#include "sorting/permutation.h"

#include <string.h>

#include "philox_words.h"
#include "sorting/host/radix.h"
#include "vectors.h"

CUPLUG_ENTRY int permutation_cuda(const cuplug_call *call);

#define AT_ONCE (1 << 14) /* elements that are worth a thread */
#define FEW (1 << 12)     /* elements whose numbers leave most bits for keys */

typedef struct job {
  random_source from;
  sorting s;
  const uint32_t *bits; /* the narrow bits of each element, if not all of them are sorted */
  int64_t *out;
} job;

static void draw_bits(const job *j, int64_t begin, int64_t end, uint32_t *bits) {
  random_fill *const fill = random_fill_by_vectors();
  random_words room;
  for (int64_t i = begin, n; i < end; i += n) {
    n = end - i < RANDOM_CHUNK ? end - i : RANDOM_CHUNK;
    const uint32_t *words = random_words_of(fill, &j->from, (uint64_t)i, n, 0, &room);
    memcpy(bits + i, words, (size_t)n * sizeof *words);
  }
}

static int fill_part(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  draw_bits(j, begin, end, j->s.keys);
  for (int64_t k = begin; k < end; k++) j->s.index[k] = k;
  return CUPLUG_OK;
}

/* Returns whether some key equals the next one, except for the bits below `step`. */
VECTORS static int has_like(const uint32_t *keys, int64_t n, uint32_t step) {
  uint32_t n_like = 0;
  for (int64_t i = 0; i < n; i++) n_like += (keys[i] ^ keys[i + 1]) < step;
  return n_like != 0;
}

static int is_first(const job *j, int64_t a, int64_t b) {
  if (j->bits && j->bits[a] != j->bits[b]) return j->bits[a] < j->bits[b];
  return permutation_is_first(&j->from, a, random_deciding(&j->from, (uint64_t)a), b);
}

/* Sorts n elements with equal keys. */
static void settle(const job *j, int64_t *elements, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    const int64_t own = elements[i];
    int64_t at = i;
    for (; at > 0 && is_first(j, own, elements[at - 1]); at--) elements[at] = elements[at - 1];
    elements[at] = own;
  }
}

/* The thread whose range contains the first of several equal keys writes all of them. */
static int write_part(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  const uint32_t *keys = j->s.keys;
  const int64_t *index = j->s.index, n = j->s.m;
  while (begin > 0 && begin < end && keys[begin] == keys[begin - 1]) begin++;
  if (begin == end) return CUPLUG_OK;
  memcpy(j->out + begin, index + begin, (size_t)(end - begin) * sizeof *index);
  if (!has_like(keys + begin, end - begin - (end == n), 1)) return CUPLUG_OK;
  for (int64_t i = begin, last; i < end; i = last) {
    for (last = i + 1; last < n && keys[last] == keys[i];) last++;
    if (last == i + 1) continue;
    memcpy(j->out + i, index + i, (size_t)(last - i) * sizeof *index);
    settle(j, j->out + i, last - i);
  }
  return CUPLUG_OK;
}

/* The upper bits of each element, with its number in place of the others: one word, which vectors
 * sort. */
static int order_few(const cuplug_call *call, job *j, int64_t n, const sorting_by_vectors *by) {
  uint32_t *const bits = cuplug_workspace(call, (uint64_t)n * sizeof *bits), step = 1;
  uint32_t *const words = bits ? cuplug_workspace(call, (uint64_t)n * sizeof *words) : NULL;
  const sorting s = {
      .call = call, .by = by, .keys = words, .n_lines = 1, .m = n, .n_bytes = 4, .width = 4};
  if (!words) return CUPLUG_ERROR_MEMORY;
  while (step < n) step *= 2;
  draw_bits(j, 0, n, bits);
  for (int64_t i = 0; i < n; i++) words[i] = (bits[i] & ~(step - 1)) | (uint32_t)i;
  const int status = sorting_run_by_vectors(&s, NULL);
  if (status) return status;
  for (int64_t i = 0; i < n; i++) j->out[i] = words[i] & (step - 1);
  j->bits = bits;
  if (!has_like(words, n - 1, step)) return CUPLUG_OK;
  for (int64_t i = 0, last; i < n; i = last) {
    for (last = i + 1; last < n && (words[last] ^ words[i]) < step;) last++;
    settle(j, j->out + i, last - i);
  }
  return CUPLUG_OK;
}

CUPLUG_ENTRY int permutation_host(const cuplug_call *call) {
  job j = {.from = permutation_source(call), .out = call->outputs[0].data};
  const int64_t n = call->scalars[0].i;
  const sorting_by_vectors *by = n <= FEW ? sorting_by_vectors_of(4) : NULL;
  if (n == 0) return CUPLUG_OK;
  if (by) return order_few(call, &j, n, by);
  int status = sorting_begin(&j.s, call, 4, 1, n, SORTING_GIVEN, NULL);
  if (!status) status = cuplug_parallel(call, n, AT_ONCE, fill_part, &j);
  if (!status) status = sorting_run(&j.s);
  return status ? status : cuplug_parallel(call, n, AT_ONCE, write_part, &j);
}

CUPLUG_OPERATOR(permutation_cuda, permutation_host,
                "permutation(n: int, key: uint64, sequence: uint64, first: uint64) -> int64[n] "
                "where n >= 0",
                "The numbers below n in random order." CUPLUG_NONBLOCKING CUPLUG_DETERMINISTIC);
