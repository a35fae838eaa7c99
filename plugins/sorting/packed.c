/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of keys with an index by vectors: a word is a key and its place in the line, so that equal
 * keys stay in their order. Of keys of 8 bytes it has 32 bits, from the first one on that differs
 * between keys; those whose 32 bits are equal are sorted once more, by the bits that are left. */
#include "sorting/radix.h"

#include <stdatomic.h>

#define AT_ONCE (1 << 15)  /* keys that are worth a thread */
#define DEPTH 64           /* bad divisions of few keys */
#define FEW_BYTES (1 << 9) /* more of them are sooner counted */

typedef struct packing packing;
typedef void packing_run(const packing *p, int64_t first, int64_t i, int64_t last);

struct packing {
  packing_run *run;
  const sorting *s;
  const sorting_by_vectors *by;
  void *words;
  int64_t *to; /* what goes with each key, in order */
  _Atomic uint64_t differing;
  int shift;
  uint64_t left; /* bits of keys that differ and are not in words */
};

/* For keys number i to `last` of the line whose first one is number `first`. */
#define PACKING(K, W, bits, name)                                                       \
  static void pack_##name(const packing *p, int64_t first, int64_t i, int64_t last) {   \
    const K *keys = p->s->keys;                                                         \
    W *words = p->words;                                                                \
    const int shift = p->shift;                                                         \
    for (; i < last; i++) words[i] = (W)(keys[i] >> shift) << bits | (W)(i - first);    \
  }                                                                                     \
  static void unpack_##name(const packing *p, int64_t first, int64_t i, int64_t last) { \
    K *keys = p->s->keys;                                                               \
    const W *words = p->words;                                                          \
    const int64_t *index = p->s->index;                                                 \
    const int is_given = p->to != index;                                                \
    for (; i < last; i++) {                                                             \
      const int64_t place = (int64_t)(words[i] & (((W)1 << bits) - 1));                 \
      p->to[i] = is_given ? index[first + place] : place;                               \
      keys[i] = (K)(words[i] >> bits);                                                  \
    }                                                                                   \
  }

PACKING(uint8_t, uint32_t, 16, bytes)
PACKING(uint16_t, uint32_t, 16, halves)
PACKING(uint32_t, uint32_t, 16, few)
PACKING(uint32_t, uint64_t, 32, narrow)

static void pack_wide(const packing *p, int64_t first, int64_t i, int64_t last) {
  const uint64_t *keys = p->s->keys;
  uint64_t *words = p->words;
  const int shift = p->shift;
  for (; i < last; i++) words[i] = keys[i] >> shift << 32 | (uint64_t)(i - first);
}

/* Sorts n words from number i on, whose keys differ in bits that are left alone, into `to`. */
static void settle(const packing *p, int64_t first, int64_t i, int64_t n) {
  const uint64_t *keys = (const uint64_t *)p->s->keys + first, *words = (uint64_t *)p->words + i;
  uint64_t *to = (uint64_t *)p->to + i, differing = 0;
  for (int64_t k = 0; k < n; k++) {
    const uint64_t place = (uint32_t)words[k];
    to[k] = (keys[place] & p->left) << 32 | place;
    differing |= to[k] ^ to[0];
  }
  if (differing >> 32) p->by->sort(to, n, DEPTH);
  for (int64_t k = 0; k < n; k++) to[k] = (uint32_t)to[k];
}

/* Words that are alike are settled with the first of them, whose range it may be. */
static void unpack_wide(const packing *p, int64_t first, int64_t i, int64_t last) {
  const uint64_t *words = p->words;
  const int64_t end = first + p->s->m;
  if (p->left)
    while (i > first && i < last && words[i] >> 32 == words[i - 1] >> 32) i++;
  for (int64_t next; i < last; i = next) {
    p->to[i] = (uint32_t)words[i];
    for (next = i + 1; p->left && next < end && words[next] >> 32 == words[i] >> 32;) next++;
    if (next > i + 1) settle(p, first, i, next - i);
  }
}

/* What is at the places, in place of them. */
static void take_wide(const packing *p, int64_t first, int64_t i, int64_t last) {
  const uint64_t *keys = p->s->keys;
  const int64_t *index = p->s->index;
  for (; i < last; i++) {
    const int64_t from = first + p->to[i];
    ((uint64_t *)p->s->spare)[i] = keys[from];
    if (p->to != index) p->to[i] = index[from];
  }
}

static int compare_wide(void *context, int64_t begin, int64_t end) {
  packing *p = context;
  const uint64_t *keys = p->s->keys;
  uint64_t differing = 0;
  for (int64_t i = begin; i < end; i++) differing |= keys[i] ^ keys[0];
  atomic_fetch_or(&p->differing, differing);
  return CUPLUG_OK;
}

static int run_lines(void *context, int64_t begin, int64_t end) {
  const packing *p = context;
  const int64_t m = p->s->m;
  for (int64_t first = begin / m * m, i = begin, last; i < end; first = i = last) {
    last = first + m < end ? first + m : end;
    p->run(p, first, i, last);
  }
  return CUPLUG_OK;
}

static int run(packing *p, packing_run *run) {
  p->run = run;
  return cuplug_parallel(p->s->call, p->s->n_lines * p->s->m, AT_ONCE, run_lines, p);
}

/* Chooses which bits of keys come into words. */
static int choose_bits(packing *p) {
  const int status = cuplug_parallel(p->s->call, p->s->n_lines * p->s->m, AT_ONCE, compare_wide, p);
  const uint64_t differing = p->differing;
  if (differing >> 32) p->shift = 32 - __builtin_clzll(differing);
  p->left = differing & (((uint64_t)1 << p->shift) - 1);
  return status;
}

int sorting_can_pack(const sorting *s) {
  if (s->n_bytes == 1 && s->m > FEW_BYTES) return 0;
  return s->n_bytes <= 2 ? s->m <= 1 << 16 && sorting_by_vectors_of(4)
                         : s->m <= UINT32_MAX && sorting_by_vectors_of(8);
}

int sorting_run_packed(sorting *s) {
  const int is_wide = s->n_bytes == 8,
            kind = s->n_bytes == 4 ? 3 : __builtin_ctz((unsigned)s->width);
  static packing_run *const packs[] = {pack_bytes, pack_halves, pack_few, pack_narrow};
  static packing_run *const unpacks[] = {unpack_bytes, unpack_halves, unpack_few, unpack_narrow};
  const uint64_t n = (uint64_t)(s->n_lines * s->m);
  sorting words = {.call = s->call, .n_lines = s->n_lines, .m = s->m};
  words.n_bytes = words.width = s->n_bytes <= 2 ? 4 : 8;
  words.by = sorting_by_vectors_of(words.n_bytes);
  words.keys = cuplug_workspace(s->call, n * (uint64_t)words.n_bytes);
  packing p = {.s = s, .by = words.by, .words = words.keys, .to = s->index};
  if (s->is_given) p.to = cuplug_workspace(s->call, n * sizeof *p.to);
  const int takes = is_wide && (s->is_given || s->wants_keys);
  if (takes) s->spare = cuplug_workspace(s->call, n * sizeof(uint64_t));
  if (!p.words || !p.to || (takes && !s->spare)) return CUPLUG_ERROR_MEMORY;
  int status = is_wide ? choose_bits(&p) : CUPLUG_OK;
  if (!status) status = run(&p, is_wide ? pack_wide : packs[kind]);
  if (!status) status = sorting_run_by_vectors(&words, NULL);
  if (!status) status = run(&p, is_wide ? unpack_wide : unpacks[kind]);
  if (!status && takes) status = run(&p, take_wide);
  if (takes) s->keys = s->spare;
  s->index = p.to;
  return status;
}
