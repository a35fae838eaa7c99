/* sanitizers: address,undefined */
/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers by each kind of vectors that this CPU has, not only by the best kind. */
#include "random/random.c"

#include "check.h"

/* A C program has no CUDA entries. */
int uniform_cuda(const cuplug_call *call) { return call != NULL; }
int normal_cuda(const cuplug_call *call) { return call != NULL; }
int integers_cuda(const cuplug_call *call) { return call != NULL; }

#define N_KINDS 3
static random_fill *fills[N_KINDS] = {random_fill_plain};
static draw_chunk *chunks[N_KINDS] = {chunk_plain};

static int find_kinds(void) {
  int n = 1;
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    fills[n] = random_fill_256, chunks[n++] = chunk_256;
  if (chunk_by_vectors() == chunk_512) fills[n] = random_fill_512, chunks[n++] = chunk_512;
#endif
  return n;
}

static void draw_by(int kind, const random_draw *d, uint64_t i, int64_t n, void *to) {
  random_words room;
  const uint32_t *words = random_words_of(fills[kind], &d->from, i, n, d->is_wide, &room);
  chunks[kind](d, i, n, words, to);
}

static void check_draw(int n_kinds, random_draw d, int64_t n) {
  static uint64_t wanted[RANDOM_CHUNK], found[RANDOM_CHUNK];
  const size_t bytes = (size_t)(n * d.element_bytes);
  for (uint64_t first = 0; first < 9; first++) {
    d.from.first = first < 5 ? first : 0 - first;
    draw_by(0, &d, 7, n, wanted);
    for (int kind = 1; kind < n_kinds; kind++) {
      draw_by(kind, &d, 7, n, found);
      CHECK(!memcmp(wanted, found, bytes));
    }
  }
}

int main(void) {
  const int n_kinds = find_kinds();
  const uint64_t many[] = {3, 1 << 24, (1 << 24) + 1, (uint64_t)1 << 63, 0};
  const int64_t sizes[] = {1, 5, 100, RANDOM_CHUNK};
  random_draw d = {.from = {random_keys_of(0x123456789abcdef), 42, 0}, .range = {1, 3, 5, 0}};
  for (int s = 0; s < 4; s++) {
    for (d.element_bytes = 4; d.element_bytes <= 8; d.element_bytes *= 2) {
      d.is_wide = d.element_bytes == 8;
      d.kind = RANDOM_UNIFORM, check_draw(n_kinds, d, sizes[s]);
      d.kind = RANDOM_NORMAL, check_draw(n_kinds, d, sizes[s]);
    }
    d.kind = RANDOM_INTEGERS;
    for (d.element_bytes = 1; d.element_bytes <= 8; d.element_bytes *= 2)
      for (int k = 0; k < (d.element_bytes < 4 ? 2 : 5); k++) {
        d.range.n = many[k];
        d.is_wide = k > 1;
        check_draw(n_kinds, d, sizes[s]);
      }
  }
  return n_failed != 0;
}
