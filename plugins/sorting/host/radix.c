/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lines of keys, and sorts them if no vectors are available, or with an index if keys and
 * positions do not fit in one word: a radix sort by bytes, from the last one on. Short lines are
 * sorted by insertion, each by one thread. Long ones are sorted by all threads: each counts the
 * digits of a chunk, then moves the chunk's keys after the keys of earlier chunks. */
#include "sorting/host/radix.h"

#include "vectors.h"

#include <string.h>

#define FEW 40            /* keys that are sorted by insertion */
#define LONG (1 << 18)    /* keys of a line that all threads sort */
#define AT_ONCE (1 << 15) /* keys that are worth a thread */
#define MOST_CHUNKS 64

int sorting_begin(sorting *s, const cuplug_call *call, int64_t n_bytes, int64_t n_lines, int64_t m,
                  sorting_index index, void *home) {
  const uint64_t n = (uint64_t)(n_lines * m);
  const int is_alone = index == SORTING_ALONE;
  *s = (sorting){.call = call, .n_lines = n_lines, .m = m, .n_bytes = n_bytes, .width = n_bytes};
  s->is_given = index == SORTING_GIVEN;
  if (s->is_given && n_bytes < 4) s->width = 4;
  if (is_alone) s->by = sorting_by_vectors_of(n_bytes);
  s->keys = is_alone && home ? home : cuplug_workspace(call, n * (uint64_t)s->width);
  if (!s->keys) return CUPLUG_ERROR_MEMORY;
  if (is_alone) return CUPLUG_OK;
  s->index = home ? home : cuplug_workspace(call, n * sizeof *s->index);
  return s->index ? CUPLUG_OK : CUPLUG_ERROR_MEMORY;
}

/* ---- Reading --------------------------------------------------------------------------------- */

typedef struct loading {
  const sorting *s;
  const char *x;
  elements_axis axis;
  order order;
} loading;

#define READ(T, K, key_of)                                                              \
  if (step == 1)                                                                        \
    for (int64_t i = 0; i < n; i++) ((K *)keys)[i] = key_of(&order, ((const T *)x)[i]); \
  else                                                                                  \
    for (int64_t i = 0; i < n; i++) ((K *)keys)[i] = key_of(&order, ((const T *)x)[i * step]);

VECTORS static void read_keys(const order *o, const void *x, int64_t step, int64_t n, int64_t width,
                              void *keys) {
  const struct order order = *o;
  switch (o->n_bytes) {
  case 1:
    if (width == 1) {
      READ(uint8_t, uint8_t, order_key8)
    } else {
      READ(uint8_t, uint32_t, order_key32)
    }
    break;
  case 2:
    if (width == 2) {
      READ(uint16_t, uint16_t, order_key16)
    } else {
      READ(uint16_t, uint32_t, order_key32)
    }
    break;
  case 4:
    READ(uint32_t, uint32_t, order_key32)
    break;
  default:
    READ(uint64_t, uint64_t, order_key64)
  }
}

/* A separate function: compilers export functions with clones, hidden or not. */
void sorting_read(const order *o, const void *x, int64_t step, int64_t n, int64_t width,
                  void *keys) {
  read_keys(o, x, step, n, width, keys);
}

/* Keys from number `begin` on, of line begin / m. */
static int load(void *context, int64_t begin, int64_t end) {
  const loading *j = context;
  const sorting *s = j->s;
  const int64_t n_bytes = s->n_bytes, step = j->axis.width, width = s->width;
  if (step == 1) {
    sorting_read(&j->order, j->x + begin * n_bytes, 1, end - begin, width,
                 (char *)s->keys + begin * width);
    return CUPLUG_OK;
  }
  for (int64_t i = begin, last; i < end; i = last) {
    const int64_t line = i / s->m, first = line * s->m;
    last = first + s->m < end ? first + s->m : end;
    const char *x = j->x + (elements_line(&j->axis, line) + (i - first) * step) * n_bytes;
    sorting_read(&j->order, x, step, last - i, width, (char *)s->keys + i * width);
  }
  return CUPLUG_OK;
}

int sorting_load(sorting *s, const cuplug_tensor *x, const elements_axis *axis, const order *o) {
  loading j = {s, x->data, *axis, *o};
  return cuplug_parallel(s->call, s->n_lines * s->m, AT_ONCE, load, &j);
}

/* ---- One line -------------------------------------------------------------------------------- */

/* Converts the count of each digit to the position of the first key with it. Returns whether all n
 * keys have the same digit. */
static int place_digits(int64_t *counts, int64_t n) {
  int64_t at = 0;
  for (int d = 0; d < 256; d++) {
    const int64_t count = counts[d];
    if (count == n) return 1;
    counts[d] = at;
    at += count;
  }
  return 0;
}

/* The buffers for the values of keys. Positions are not read initially, so that the last pass can
 * write them to the output. */
typedef struct turns {
  int64_t *index, *spare;
  const int64_t *from;
  int64_t *to;
} turns;

static turns first_turn(const sorting *s, int64_t first, int n_passes) {
  turns t = {NULL, NULL, NULL, NULL};
  if (!s->index) return t;
  t.index = s->index + first, t.spare = s->spare_index + first;
  if (s->is_given) t.from = t.index;
  t.to = !s->is_given && n_passes % 2 ? t.index : t.spare;
  return t;
}

static void next_turn(turns *t) {
  t->from = t->to;
  t->to = t->to == t->index ? t->spare : t->index;
}

static void last_turn(const turns *t, int64_t n) {
  if (t->from == t->index) return;
  if (t->from) memcpy(t->index, t->from, (size_t)n * sizeof *t->index);
  for (int64_t i = 0; i < n && !t->from; i++) t->index[i] = i;
}

#define LINES_OF(K, name)                                                             \
  static void insert_##name(K *keys, int64_t *index, int64_t n) {                     \
    for (int64_t i = 1; i < n; i++) {                                                 \
      const K key = keys[i];                                                          \
      const int64_t its = index ? index[i] : 0;                                       \
      int64_t at = i;                                                                 \
      for (; at > 0 && keys[at - 1] > key; at--) {                                    \
        keys[at] = keys[at - 1];                                                      \
        if (index) index[at] = index[at - 1];                                         \
      }                                                                               \
      keys[at] = key;                                                                 \
      if (index) index[at] = its;                                                     \
    }                                                                                 \
  }                                                                                   \
  static void sort_line_##name(const sorting *s, int64_t first) {                     \
    K *const home = (K *)s->keys + first;                                             \
    K *keys = home, *spare = (K *)s->spare + first;                                   \
    const int64_t n = s->m;                                                           \
    int64_t counts[sizeof(K)][256] = {{0}};                                           \
    int is_same[sizeof(K)] = {0}, n_passes = 0;                                       \
    for (int64_t i = 0; i < n; i++)                                                   \
      for (int64_t p = 0; p < s->n_bytes; p++) counts[p][keys[i] >> (8 * p) & 255]++; \
    for (int64_t p = 0; p < s->n_bytes; p++)                                          \
      n_passes += !(is_same[p] = place_digits(counts[p], n));                         \
    turns t = first_turn(s, first, n_passes);                                         \
    for (int64_t p = 0; p < s->n_bytes; p++) {                                        \
      if (is_same[p]) continue;                                                       \
      for (int64_t i = 0; i < n; i++) {                                               \
        const int64_t at = counts[p][keys[i] >> (8 * p) & 255]++;                     \
        spare[at] = keys[i];                                                          \
        if (t.to) t.to[at] = t.from ? t.from[i] : i;                                  \
      }                                                                               \
      K *const moved = spare;                                                         \
      spare = keys, keys = moved;                                                     \
      next_turn(&t);                                                                  \
    }                                                                                 \
    last_turn(&t, n);                                                                 \
    if (keys != home) memcpy(home, keys, (size_t)n * sizeof(K));                      \
  }                                                                                   \
  static int sort_lines_##name(void *context, int64_t begin, int64_t end) {           \
    const sorting *s = context;                                                       \
    for (int64_t line = begin; line < end; line++) {                                  \
      const int64_t first = line * s->m;                                              \
      const turns t = first_turn(s, first, 0);                                        \
      if (s->m <= FEW) {                                                              \
        last_turn(&t, s->m);                                                          \
        insert_##name((K *)s->keys + first, t.index, s->m);                           \
      } else {                                                                        \
        sort_line_##name(s, first);                                                   \
      }                                                                               \
    }                                                                                 \
    return CUPLUG_OK;                                                                 \
  }

LINES_OF(uint8_t, bytes)
LINES_OF(uint16_t, halves)
LINES_OF(uint32_t, narrow)
LINES_OF(uint64_t, wide)

/* ---- All threads on one line ----------------------------------------------------------------- */

typedef struct pass {
  const void *keys;
  void *to;
  turns turn;
  int64_t n, chunk;
  int shift;
  int64_t (*places)[256]; /* for each chunk: the count of each digit, then its position */
} pass;

#define PASSES_OF(K, name)                                             \
  static int count_##name(void *context, int64_t begin, int64_t end) { \
    const pass *p = context;                                           \
    const K *keys = p->keys;                                           \
    for (int64_t c = begin; c < end; c++) {                            \
      const int64_t first = c * p->chunk, last = first + p->chunk;     \
      memset(p->places[c], 0, sizeof *p->places);                      \
      for (int64_t i = first; i < (last < p->n ? last : p->n); i++)    \
        p->places[c][keys[i] >> p->shift & 255]++;                     \
    }                                                                  \
    return CUPLUG_OK;                                                  \
  }                                                                    \
  static int move_##name(void *context, int64_t begin, int64_t end) {  \
    const pass *p = context;                                           \
    const K *keys = p->keys;                                           \
    K *const to = p->to;                                               \
    const int shift = p->shift;                                        \
    const turns t = p->turn;                                           \
    for (int64_t c = begin; c < end; c++) {                            \
      const int64_t first = c * p->chunk, after = first + p->chunk;    \
      const int64_t last = after < p->n ? after : p->n;                \
      int64_t *places = p->places[c];                                  \
      for (int64_t i = first; i < last; i++) {                         \
        const int64_t at = places[keys[i] >> shift & 255]++;           \
        to[at] = keys[i];                                              \
        if (t.to) t.to[at] = t.from ? t.from[i] : i;                   \
      }                                                                \
    }                                                                  \
    return CUPLUG_OK;                                                  \
  }

PASSES_OF(uint8_t, bytes)
PASSES_OF(uint16_t, halves)
PASSES_OF(uint32_t, narrow)
PASSES_OF(uint64_t, wide)

/* By the logarithm of the width of keys. */
static cuplug_body *const BY_LINES[] = {sort_lines_bytes, sort_lines_halves, sort_lines_narrow,
                                        sort_lines_wide};
static cuplug_body *const COUNTS[] = {count_bytes, count_halves, count_narrow, count_wide};
static cuplug_body *const MOVES[] = {move_bytes, move_halves, move_narrow, move_wide};

/* Returns whether all keys have the same digit, so that they are not moved. */
static int place_chunks(pass *p, int64_t n_chunks) {
  int64_t at = 0;
  for (int d = 0; d < 256; d++) {
    const int64_t before = at;
    for (int64_t c = 0; c < n_chunks; c++) {
      const int64_t count = p->places[c][d];
      p->places[c][d] = at;
      at += count;
    }
    if (at - before == p->n) return 1;
  }
  return 0;
}

/* Sorts line `line`, in passes from `keys` to `spare` and back. */
static int sort_long(const sorting *s, int64_t line, int64_t (*places)[256]) {
  const int kind = __builtin_ctz((unsigned)s->width);
  const int64_t first = line * s->m, at = first * s->width;
  char *keys = (char *)s->keys + at, *spare = (char *)s->spare + at;
  pass p = {.n = s->m, .chunk = (s->m + MOST_CHUNKS - 1) / MOST_CHUNKS, .places = places};
  const int64_t n_chunks = (s->m + p.chunk - 1) / p.chunk;
  p.turn = first_turn(s, first, (int)s->n_bytes);
  for (p.shift = 0; p.shift < 8 * s->n_bytes; p.shift += 8) {
    p.keys = keys, p.to = spare;
    int status = cuplug_parallel(s->call, n_chunks, 1, COUNTS[kind], &p);
    if (status) return status;
    if (place_chunks(&p, n_chunks)) continue;
    status = cuplug_parallel(s->call, n_chunks, 1, MOVES[kind], &p);
    if (status) return status;
    spare = keys, keys = p.to;
    next_turn(&p.turn);
  }
  last_turn(&p.turn, s->m);
  if (keys != (char *)s->keys + at) memcpy(spare, keys, (size_t)(s->m * s->width));
  return CUPLUG_OK;
}

int sorting_run(sorting *s) {
  const uint64_t n = (uint64_t)(s->n_lines * s->m);
  if (n == 0) return CUPLUG_OK;
  if (!s->index && (s->by || s->width == 1)) return sorting_run_by_vectors(s, NULL);
  int is_done = 0, status = s->index ? sorting_run_packed(s, &is_done) : CUPLUG_OK;
  if (status || is_done) return status;
  s->spare = cuplug_workspace(s->call, n * (uint64_t)s->width);
  if (s->index) s->spare_index = cuplug_workspace(s->call, n * sizeof *s->index);
  if (!s->spare || (s->index && !s->spare_index)) return CUPLUG_ERROR_MEMORY;
  if (s->m < LONG)
    return cuplug_parallel(s->call, s->n_lines, 1 + AT_ONCE / s->m,
                           BY_LINES[__builtin_ctz((unsigned)s->width)], s);
  int64_t(*places)[256] = cuplug_workspace(s->call, MOST_CHUNKS * sizeof *places);
  status = places ? CUPLUG_OK : CUPLUG_ERROR_MEMORY;
  for (int64_t line = 0; line < s->n_lines && !status; line++) status = sort_long(s, line, places);
  return status;
}
