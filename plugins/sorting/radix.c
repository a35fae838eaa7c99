/* SPDX-License-Identifier: Apache-2.0 */
/* Keys with what goes with them, and those that are sorted without vectors: a radix sort by bytes,
 * from the last one on. Short lines are sorted by insertion, each by one
 * thread; long ones by all threads: each counts the digits of a chunk, then moves the chunk's keys
 * behind those of the chunks before it. */
#include "sorting/radix.h"

#include "vectors.h"

#include <string.h>

#define FEW 40            /* keys that are sorted by insertion */
#define LONG (1 << 18)    /* keys of a line that is sorted by all threads */
#define AT_ONCE (1 << 15) /* keys that are worth a thread */
#define MOST_CHUNKS 64

int sorting_begin(sorting *s, const cuplug_call *call, int64_t n_bytes, int64_t n_lines, int64_t m,
                  int has_index, void *home) {
  const uint64_t n = (uint64_t)(n_lines * m), width = n_bytes == 8 ? 8 : 4;
  *s = (sorting){.call = call, .n_lines = n_lines, .m = m, .n_bytes = n_bytes};
  if (!has_index && n_bytes >= 4) s->by = sorting_by_vectors_of(n_bytes);
  s->keys = s->by && home ? home : cuplug_workspace(call, n * width);
  if (!s->keys) return CUPLUG_ERROR_MEMORY;
  if (s->by) return CUPLUG_OK;
  if (!has_index || !sorting_can_pack(s)) {
    s->spare = cuplug_workspace(call, n * width);
    if (!s->spare) return CUPLUG_ERROR_MEMORY;
  }
  if (!has_index) return CUPLUG_OK;
  s->index = cuplug_workspace(call, n * sizeof *s->index);
  if (!s->index) return CUPLUG_ERROR_MEMORY;
  s->spare_index = cuplug_workspace(call, n * sizeof *s->index);
  return s->spare_index ? CUPLUG_OK : CUPLUG_ERROR_MEMORY;
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

VECTORS static void read_keys(const order *o, const void *x, int64_t step, int64_t n, void *keys) {
  const struct order order = *o;
  switch (o->n_bytes) {
  case 1:
    READ(uint8_t, uint32_t, order_key32)
    break;
  case 2:
    READ(uint16_t, uint32_t, order_key32)
    break;
  case 4:
    READ(uint32_t, uint32_t, order_key32)
    break;
  default:
    READ(uint64_t, uint64_t, order_key64)
  }
}

/* Of its own: compilers export functions with clones, hidden or not. */
void sorting_read(const order *o, const void *x, int64_t step, int64_t n, void *keys) {
  read_keys(o, x, step, n, keys);
}

/* Keys from number `begin` on, of line begin / m. */
static int load(void *context, int64_t begin, int64_t end) {
  const loading *j = context;
  const sorting *s = j->s;
  const int64_t n_bytes = s->n_bytes, step = j->axis.width, width = n_bytes == 8 ? 8 : 4;
  for (int64_t i = begin, last; i < end; i = last) {
    const int64_t line = i / s->m, first = line * s->m;
    last = first + s->m < end ? first + s->m : end;
    const char *x = j->x + (elements_line(&j->axis, line) + (i - first) * step) * n_bytes;
    sorting_read(&j->order, x, step, last - i, (char *)s->keys + i * width);
    for (int64_t at = i; at < last && s->index; at++) s->index[at] = at - first;
  }
  return CUPLUG_OK;
}

int sorting_load(sorting *s, const cuplug_tensor *x, const elements_axis *axis, const order *o) {
  loading j = {s, x->data, *axis, *o};
  return cuplug_parallel(s->call, s->n_lines * s->m, AT_ONCE, load, &j);
}

/* ---- One line -------------------------------------------------------------------------------- */

/* From how often each digit is there to where the first key with it goes. Returns whether all n
 * keys have the same. */
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

#define EXCHANGE(T, a, b) \
  do {                    \
    T *exchanged_ = a;    \
    a = b;                \
    b = exchanged_;       \
  } while (0)

#define LINES_OF(K, name)                                                                          \
  static void insert_##name(K *keys, int64_t *index, int64_t n) {                                  \
    for (int64_t i = 1; i < n; i++) {                                                              \
      const K key = keys[i];                                                                       \
      const int64_t its = index ? index[i] : 0;                                                    \
      int64_t at = i;                                                                              \
      for (; at > 0 && keys[at - 1] > key; at--) {                                                 \
        keys[at] = keys[at - 1];                                                                   \
        if (index) index[at] = index[at - 1];                                                      \
      }                                                                                            \
      keys[at] = key;                                                                              \
      if (index) index[at] = its;                                                                  \
    }                                                                                              \
  }                                                                                                \
  static void sort_line_##name(K *keys, K *spare, int64_t *index, int64_t *spare_index, int64_t n, \
                               int64_t n_bytes) {                                                  \
    int64_t counts[sizeof(K)][256] = {{0}};                                                        \
    K *const home = keys;                                                                          \
    int64_t *const index_home = index;                                                             \
    for (int64_t i = 0; i < n; i++)                                                                \
      for (int64_t p = 0; p < n_bytes; p++) counts[p][keys[i] >> (8 * p) & 255]++;                 \
    for (int64_t p = 0; p < n_bytes; p++) {                                                        \
      if (place_digits(counts[p], n)) continue;                                                    \
      for (int64_t i = 0; i < n; i++) {                                                            \
        const int64_t to = counts[p][keys[i] >> (8 * p) & 255]++;                                  \
        spare[to] = keys[i];                                                                       \
        if (index) spare_index[to] = index[i];                                                     \
      }                                                                                            \
      EXCHANGE(K, keys, spare);                                                                    \
      EXCHANGE(int64_t, index, spare_index);                                                       \
    }                                                                                              \
    if (keys == home) return;                                                                      \
    memcpy(home, keys, (size_t)n * sizeof(K));                                                     \
    if (index_home) memcpy(index_home, index, (size_t)n * sizeof *index);                          \
  }                                                                                                \
  static int sort_lines_##name(void *context, int64_t begin, int64_t end) {                        \
    const sorting *s = context;                                                                    \
    for (int64_t line = begin; line < end; line++) {                                               \
      K *keys = (K *)s->keys + line * s->m;                                                        \
      int64_t *index = s->index ? s->index + line * s->m : NULL;                                   \
      if (s->m <= FEW)                                                                             \
        insert_##name(keys, index, s->m);                                                          \
      else                                                                                         \
        sort_line_##name(keys, (K *)s->spare + line * s->m, index,                                 \
                         index ? s->spare_index + line * s->m : NULL, s->m, s->n_bytes);           \
    }                                                                                              \
    return CUPLUG_OK;                                                                              \
  }

LINES_OF(uint32_t, narrow)
LINES_OF(uint64_t, wide)

/* ---- All threads on one line ----------------------------------------------------------------- */

typedef struct pass {
  const void *keys;
  void *to;
  const int64_t *index;
  int64_t *index_to;
  int64_t n, chunk;
  int shift;
  int64_t (*places)[256]; /* of each chunk: how often each digit is there, then where they go */
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
    for (int64_t c = begin; c < end; c++) {                            \
      const int64_t first = c * p->chunk, last = first + p->chunk;     \
      for (int64_t i = first; i < (last < p->n ? last : p->n); i++) {  \
        const int64_t to = p->places[c][keys[i] >> p->shift & 255]++;  \
        ((K *)p->to)[to] = keys[i];                                    \
        if (p->index) p->index_to[to] = p->index[i];                   \
      }                                                                \
    }                                                                  \
    return CUPLUG_OK;                                                  \
  }

PASSES_OF(uint32_t, narrow)
PASSES_OF(uint64_t, wide)

/* Returns whether all keys have the same digit: they stay where they are. */
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
  const int is_wide = s->n_bytes == 8;
  const int64_t width = is_wide ? 8 : 4, at = line * s->m;
  char *keys = (char *)s->keys + at * width, *spare = (char *)s->spare + at * width;
  int64_t *index = s->index ? s->index + at : NULL;
  int64_t *spare_index = s->index ? s->spare_index + at : NULL;
  pass p = {.n = s->m, .chunk = (s->m + MOST_CHUNKS - 1) / MOST_CHUNKS, .places = places};
  const int64_t n_chunks = (s->m + p.chunk - 1) / p.chunk;
  for (p.shift = 0; p.shift < 8 * s->n_bytes; p.shift += 8) {
    p.keys = keys, p.to = spare, p.index = index, p.index_to = spare_index;
    int status = cuplug_parallel(s->call, n_chunks, 1, is_wide ? count_wide : count_narrow, &p);
    if (status) return status;
    if (place_chunks(&p, n_chunks)) continue;
    status = cuplug_parallel(s->call, n_chunks, 1, is_wide ? move_wide : move_narrow, &p);
    if (status) return status;
    EXCHANGE(char, keys, spare);
    EXCHANGE(int64_t, index, spare_index);
  }
  if (keys == (char *)s->keys + at * width) return CUPLUG_OK;
  memcpy(spare, keys, (size_t)(s->m * width));
  if (s->index) memcpy(spare_index, index, (size_t)s->m * sizeof *index);
  return CUPLUG_OK;
}

int sorting_run(sorting *s) {
  if (s->m < 2 || s->n_lines == 0) return CUPLUG_OK;
  if (s->by) return sorting_run_by_vectors(s, NULL);
  if (s->index && sorting_can_pack(s)) return sorting_run_packed(s);
  if (s->m < LONG)
    return cuplug_parallel(s->call, s->n_lines, 1 + AT_ONCE / s->m,
                           s->n_bytes == 8 ? sort_lines_wide : sort_lines_narrow, s);
  int64_t(*places)[256] = cuplug_workspace(s->call, MOST_CHUNKS * sizeof *places);
  int status = places ? CUPLUG_OK : CUPLUG_ERROR_MEMORY;
  for (int64_t line = 0; line < s->n_lines && !status; line++) status = sort_long(s, line, places);
  return status;
}
