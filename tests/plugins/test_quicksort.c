/* sanitizers: address,undefined */
/* SPDX-License-Identifier: Apache-2.0 */
/* Keys sorted by each kind of vectors that this CPU has, not by the best kind alone. */
#include "sorting/quicksort.c"

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

static uint64_t key_at(const void *keys, int is_wide, int64_t i) {
  return is_wide ? ((const uint64_t *)keys)[i] : ((const uint32_t *)keys)[i];
}

/* Which key number i is: equal ones, few that differ, ascending, descending, any. */
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

static void check(const sorting_by_vectors *by, int is_wide, int64_t n, int kind, int depth) {
  const int64_t width = is_wide ? 8 : 4;
  char *keys = malloc((size_t)(n * width + 1));
  uint64_t sum = 0, sum_after = 0;
  for (int64_t i = 0; i < n; i++) {
    const uint64_t key = key_of(kind, i);
    memcpy(keys + i * width, &key, (size_t)width); /* the low bytes come first */
    sum += key_at(keys, is_wide, i) * key_at(keys, is_wide, i);
  }
  by->sort(keys, n, depth);
  for (int64_t i = 0; i < n; i++) {
    sum_after += key_at(keys, is_wide, i) * key_at(keys, is_wide, i);
    if (i) CHECK(key_at(keys, is_wide, i - 1) <= key_at(keys, is_wide, i));
  }
  CHECK(sum == sum_after);
  free(keys);
}

static void check_all(const sorting_by_vectors *by, int is_wide) {
  for (int kind = 0; kind < 5; kind++) {
    for (int64_t n = 0; n < 300; n++) check(by, is_wide, n, kind, 40);
    for (int64_t n = 300; n < 20000; n += n / 3) {
      check(by, is_wide, n, kind, 40);
      check(by, is_wide, n, kind, 0); /* the range of keys is halved from the beginning */
    }
  }
}

int main(void) {
  static const sorting_by_vectors all[] = {{sort_8x32, split_8x32},
                                           {sort_4x64, split_4x64},
                                           {sort_16x32, split_16x32},
                                           {sort_8x64, split_8x64}};
  const int n = has_avx512() ? 4 : has_avx2() ? 2 : 0;
  for (int k = 0; k < n; k++) check_all(&all[k], k % 2);
  CHECK((sorting_by_vectors_of(4) != NULL) == (n > 0));
  return n_failed != 0;
}

#else

int main(void) {
  CHECK(!sorting_by_vectors_of(4));
  return n_failed != 0;
}

#endif
