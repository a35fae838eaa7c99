/* sanitizers: address,undefined */
/* SPDX-License-Identifier: Apache-2.0 */
/* Keys sorted by each kind of vectors that this CPU has, not only by the best kind. */
#include "sorting/host/quicksort.c"

#include "check.h"

#include <stdlib.h>

#ifdef __x86_64__

static uint64_t state = 1;

/* G. Marsaglia, Xorshift RNGs, 2003. */
static uint64_t drawn(void) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

static uint64_t key_at(const char *keys, int64_t width, int64_t i) {
  uint64_t key = 0;
  memcpy(&key, keys + i * width, (size_t)width); /* the low bytes come first */
  return key;
}

/* Returns key number i: all equal, few different ones, ascending, descending, or random. */
static uint64_t key_of(int kind, int64_t i) {
  switch (kind) {
  case 0:
    return UINT64_MAX;
  case 1:
    return drawn() % 3 - 1;
  case 2:
    return (uint64_t)i;
  case 3:
    return ~(uint64_t)i;
  default:
    return drawn();
  }
}

static void check(const sorting_by_vectors *by, int64_t width, int64_t n, int kind, int depth) {
  char *keys = malloc((size_t)(n * width + 1));
  uint64_t sum = 0, sum_after = 0;
  for (int64_t i = 0; i < n; i++) {
    const uint64_t key = key_of(kind, i);
    memcpy(keys + i * width, &key, (size_t)width);
    sum += key_at(keys, width, i) * key_at(keys, width, i);
  }
  by->sort(keys, n, depth);
  for (int64_t i = 0; i < n; i++) {
    sum_after += key_at(keys, width, i) * key_at(keys, width, i);
    if (i) CHECK(key_at(keys, width, i - 1) <= key_at(keys, width, i));
  }
  CHECK(sum == sum_after);
  free(keys);
}

static void check_all(const sorting_by_vectors *by, int64_t width) {
  for (int kind = 0; kind < 5; kind++) {
    for (int64_t n = 0; n < 600 && n <= by->most; n++) check(by, width, n, kind, 40);
    for (int64_t n = 600; n < 20000 && n <= by->most; n += n / 3) {
      check(by, width, n, kind, 40);
      check(by, width, n, kind, 0); /* the range of keys is halved from the beginning */
    }
  }
}

int main(void) {
  for (int kind = 0; kind < 4; kind++) {
    if (has_avx2()) check_all(&by_256[kind], 1 << kind);
    if (has_avx512()) check_all(&by_512[kind], 1 << kind);
    CHECK((sorting_by_vectors_of(1 << kind) != NULL) == (has_avx2() || has_avx512()));
  }
  return n_failed != 0;
}

#else

int main(void) {
  CHECK(!sorting_by_vectors_of(4));
  return n_failed != 0;
}

#endif
