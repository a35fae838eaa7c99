/* SPDX-License-Identifier: Apache-2.0 */
/* permutation(n, key, sequence, first): the numbers below n in the order of random bits, those of
 * elements first to first + n - 1 of a sequence: philox.h says which.     out int64[n]
 *
 * First in the order of 32 narrow bits; where these are equal, of 64 deciding ones; where these are
 * equal, too, in their own order: for less than n^2 / 2^97 of all seeds.
 * Bytes moved: those of argsort of keys of 32 bits. */
#include "sorting/permutation.h"

#include <string.h>

#include "philox_words.h"
#include "sorting/radix.h"
#include "vectors.h"

CUPLUG_ENTRY int permutation_cuda(const cuplug_call *call);

#define AT_ONCE (1 << 14) /* elements that are worth a thread */

typedef struct job {
  random_source from;
  sorting s;
  int64_t *out;
} job;

static int fill_part(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  random_fill *const fill = random_fill_by_vectors();
  random_words room;
  for (int64_t i = begin, n; i < end; i += n) {
    n = end - i < RANDOM_CHUNK ? end - i : RANDOM_CHUNK;
    const uint32_t *words = random_words_of(fill, &j->from, (uint64_t)i, n, 0, &room);
    memcpy((uint32_t *)j->s.keys + i, words, (size_t)n * sizeof *words);
    for (int64_t k = i; k < i + n; k++) j->s.index[k] = k;
  }
  return CUPLUG_OK;
}

/* Whether some of these keys is like the one behind it. */
VECTORS static int has_equal(const uint32_t *keys, int64_t n) {
  uint32_t n_equal = 0;
  for (int64_t i = 0; i < n; i++) n_equal += keys[i] == keys[i + 1];
  return n_equal != 0;
}

/* Puts n elements whose keys are equal in their order. */
static void settle(const job *j, const int64_t *index, int64_t n, int64_t *out) {
  for (int64_t i = 0; i < n; i++) {
    const uint64_t deciding = random_deciding(&j->from, (uint64_t)index[i]);
    int64_t n_before = n - 1;
    for (int64_t k = 0; k < n; k++)
      n_before -= k != i && permutation_is_first(&j->from, index[i], deciding, index[k]);
    out[n_before] = index[i];
  }
}

/* Equal keys are written with the first of them, whose range it may be. */
static int write_part(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  const uint32_t *keys = j->s.keys;
  const int64_t *index = j->s.index, n = j->s.m;
  while (begin > 0 && begin < end && keys[begin] == keys[begin - 1]) begin++;
  if (begin == end) return CUPLUG_OK;
  memcpy(j->out + begin, index + begin, (size_t)(end - begin) * sizeof *index);
  if (!has_equal(keys + begin, end - begin - (end == n))) return CUPLUG_OK;
  for (int64_t i = begin, last; i < end; i = last) {
    for (last = i + 1; last < n && keys[last] == keys[i];) last++;
    if (last > i + 1) settle(j, index + i, last - i, j->out + i);
  }
  return CUPLUG_OK;
}

CUPLUG_ENTRY int permutation_host(const cuplug_call *call) {
  job j = {.from = permutation_source(call), .out = call->outputs[0].data};
  const int64_t n = call->scalars[0].i;
  if (n == 0) return CUPLUG_OK;
  int status = sorting_begin(&j.s, call, 4, 1, n, 1, NULL);
  if (!status) status = cuplug_parallel(call, n, AT_ONCE, fill_part, &j);
  if (!status) status = sorting_run(&j.s);
  return status ? status : cuplug_parallel(call, n, AT_ONCE, write_part, &j);
}

CUPLUG_OPERATOR(permutation_cuda, permutation_host,
                "permutation(n: int, key: uint64, sequence: uint64, first: uint64) -> int64[n] "
                "where n >= 0",
                "The numbers below n in random order." CUPLUG_NEVER_WAITS CUPLUG_DETERMINISTIC);
