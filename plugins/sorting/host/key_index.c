/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts lines of keys with an index, by vectors. A word is a key and its position in the line, so
 * that equal keys stay in their order. Bits that all keys share are omitted. If the others and a
 * position have 32 bits together, words have 32 bits, else 64, half of them for each. Keys of 8
 * bytes whose half is equal are sorted again, by the remaining bits. */
#include "sorting/host/radix.h"

#include <stdatomic.h>

#define AT_ONCE (1 << 15)  /* keys that are worth a thread */
#define DEPTH 64           /* bad divisions of few keys */
#define FEW_BYTES (1 << 9) /* elements for which counting is not faster */

typedef struct packing packing;
typedef void packing_run(const packing *p, int64_t first, int64_t i, int64_t last);

struct packing {
  packing_run *run;
  const sorting *s;
  const sorting_by_vectors *by;
  void *words;
  int64_t *to; /* the value of each key, in order */
  _Atomic uint64_t differing;
  uint64_t same, left; /* bits that all keys share, and bits that are not in words */
  int shift, bits;     /* bits of keys; of positions */
};

/* For keys number i to `last` of the line whose first key is number `first`. */
#define PACKING(K, W, name)                                                             \
  static void pack_##name(const packing *p, int64_t first, int64_t i, int64_t last) {   \
    const K *keys = p->s->keys;                                                         \
    W *words = p->words;                                                                \
    const int shift = p->shift, bits = p->bits;                                         \
    for (; i < last; i++) words[i] = (W)(keys[i] >> shift) << bits | (W)(i - first);    \
  }                                                                                     \
  static void unpack_##name(const packing *p, int64_t first, int64_t i, int64_t last) { \
    K *keys = p->s->keys;                                                               \
    const K same = (K)p->same;                                                          \
    const W *words = p->words, places = ((W)1 << p->bits) - 1;                          \
    const int64_t *index = p->s->index;                                                 \
    int64_t *const to = p->to;                                                          \
    const int is_given = to != index, shift = p->shift, bits = p->bits;                 \
    for (; i < last; i++) {                                                             \
      const int64_t place = (int64_t)(words[i] & places);                               \
      to[i] = is_given ? index[first + place] : place;                                  \
      keys[i] = (K)((K)(words[i] >> bits) << shift) | same;                             \
    }                                                                                   \
  }

#define COMPARING(K, name)                                                     \
  static int compare_##name(void *context, int64_t begin, int64_t end) {       \
    packing *p = context;                                                      \
    const K *keys = p->s->keys;                                                \
    K differing = 0;                                                           \
    for (int64_t i = begin; i < end; i++) differing |= (K)(keys[i] ^ keys[0]); \
    atomic_fetch_or(&p->differing, differing);                                 \
    return CUPLUG_OK;                                                          \
  }

PACKING(uint8_t, uint32_t, 8_in_32)
PACKING(uint16_t, uint32_t, 16_in_32)
PACKING(uint32_t, uint32_t, 32_in_32)
PACKING(uint64_t, uint32_t, 64_in_32)
PACKING(uint32_t, uint64_t, 32_in_64)
PACKING(uint64_t, uint64_t, 64_in_64)
COMPARING(uint32_t, 32)
COMPARING(uint64_t, 64)

/* By the logarithm of the width of keys: in words of 32 bits, and of 64. */
static const struct kind {
  cuplug_body *compare;
  packing_run *packs[2], *unpacks[2];
} KINDS[] = {
    {NULL, {pack_8_in_32, NULL}, {unpack_8_in_32, NULL}},
    {NULL, {pack_16_in_32, NULL}, {unpack_16_in_32, NULL}},
    {compare_32, {pack_32_in_32, pack_32_in_64}, {unpack_32_in_32, unpack_32_in_64}},
    {compare_64, {pack_64_in_32, pack_64_in_64}, {unpack_64_in_32, unpack_64_in_64}},
};

/* Sorts n words from number i on, whose keys differ in omitted bits, into `to`. */
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

/* For keys with omitted bits. The thread whose range contains the first of several equal words
 * sorts all of them. */
static void unpack_wide(const packing *p, int64_t first, int64_t i, int64_t last) {
  const uint64_t *words = p->words;
  const int64_t end = first + p->s->m;
  while (i > first && i < last && words[i] >> 32 == words[i - 1] >> 32) i++;
  for (int64_t next; i < last; i = next) {
    p->to[i] = (uint32_t)words[i];
    for (next = i + 1; next < end && words[next] >> 32 == words[i] >> 32;) next++;
    if (next > i + 1) settle(p, first, i, next - i);
  }
}

/* Replaces the positions by their elements. */
static void take_wide(const packing *p, int64_t first, int64_t i, int64_t last) {
  const uint64_t *keys = p->s->keys;
  const int64_t *index = p->s->index;
  for (; i < last; i++) {
    const int64_t from = first + p->to[i];
    ((uint64_t *)p->s->spare)[i] = keys[from];
    if (p->to != index) p->to[i] = index[from];
  }
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

/* Selects the bits of words. Returns the bytes of a word. */
static int choose_bits(packing *p, const struct kind *kind, int *status) {
  const sorting *s = p->s;
  p->bits = s->m > 1 ? 64 - __builtin_clzll((uint64_t)s->m - 1) : 1;
  if (8 * s->n_bytes + p->bits <= 32) return 4;
  *status = cuplug_parallel(s->call, s->n_lines * s->m, AT_ONCE, kind->compare, p);
  const uint64_t differing = p->differing | (p->differing == 0);
  const int top = 64 - __builtin_clzll(differing);
  p->same = s->n_bytes == 8 ? *(const uint64_t *)s->keys : *(const uint32_t *)s->keys;
  p->same &= ~differing;
  p->shift = __builtin_ctzll(differing);
  if (top - p->shift + p->bits <= 32) return 4;
  p->bits = 32;
  p->shift = top > 32 ? top - 32 : 0;
  p->left = differing & (((uint64_t)1 << p->shift) - 1);
  return 8;
}

/* Sorting many bytes or pairs of bytes by digits is faster. */
static int can_pack(const sorting *s) {
  const int64_t most = s->n_bytes == 1 ? FEW_BYTES : s->n_bytes == 2 ? 1 << 16 : UINT32_MAX;
  return s->m <= most && sorting_by_vectors_of(8);
}

int sorting_run_packed(sorting *s, int *is_done) {
  const uint64_t n = (uint64_t)(s->n_lines * s->m);
  const struct kind *kind = &KINDS[__builtin_ctz((unsigned)s->width)];
  sorting words = {.call = s->call, .n_lines = s->n_lines, .m = s->m};
  packing p = {.s = s, .to = s->index};
  int status = CUPLUG_OK;
  *is_done = can_pack(s);
  if (!*is_done) return CUPLUG_OK;
  words.n_bytes = words.width = choose_bits(&p, kind, &status);
  if (status) return status;
  p.by = words.by = sorting_by_vectors_of(words.n_bytes);
  p.words = words.keys = cuplug_workspace(s->call, n * (uint64_t)words.n_bytes);
  if (s->is_given) p.to = cuplug_workspace(s->call, n * sizeof *p.to);
  const int takes = p.left && (s->is_given || s->wants_keys);
  if (takes) s->spare = cuplug_workspace(s->call, n * sizeof(uint64_t));
  if (!p.words || !p.to || (takes && !s->spare)) return CUPLUG_ERROR_MEMORY;
  status = run(&p, kind->packs[words.n_bytes == 8]);
  if (!status) status = sorting_run_by_vectors(&words, NULL);
  if (!status) status = run(&p, p.left ? unpack_wide : kind->unpacks[words.n_bytes == 8]);
  if (!status && takes) status = run(&p, take_wide);
  if (takes) s->keys = s->spare;
  s->index = p.to;
  return status;
}
