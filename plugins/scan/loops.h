/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of host scans over the elements of a dtype: along chunks of lines, along short lines, and
 * down adjacent lines. */
#ifndef CUPLUG_PLUGINS_SCAN_LOOPS_H
#define CUPLUG_PLUGINS_SCAN_LOOPS_H

#include "scan/lines.h"

#include <complex.h>
#include <cuplug/halves.h>

#define AT_ONCE 4   /* concurrent chunks: each element waits for the one before */
#define COLUMNS 512 /* maximum number of adjacent lines that one thread scans */
#define BLOCK 256   /* elements of 16 bits that are computed at once */

typedef double complex widest;

typedef struct job {
  scan_lines lines;
  const void *from;
  void *to;
  widest *sums; /* sums of each chunk, then of the chunks before it; NULL for complete lines */
  int64_t n_chunks, each, at_once; /* each: elements of a chunk; at_once: 1 or AT_ONCE */
  int64_t columns, n_blocks;       /* number of columns */
} job;

/* n elements of a line: where the first one is read and written. */
typedef struct chunk {
  int64_t from, to, n;
} chunk;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Consecutive chunks belong to neighboring lines. */
static inline chunk chunk_of(const job *j, int64_t c) {
  const int64_t whole = j->n_chunks == 1 ? 0 : c / j->lines.n_lines;
  const int64_t line = c - whole * j->lines.n_lines, first = whole * j->each;
  const int64_t before = first * j->lines.step, n = smaller(j->each, j->lines.n - first);
  return (chunk){scan_from(&j->lines, line) + before, scan_to(&j->lines, line) + before, n};
}

/* For a dtype, and the dtype of its sums: elements `begin` to `end` of `count` chunks; and ROWS. */
#define PLAIN(name, type, computed, join)                                                        \
  ROWS(name, type, computed, join)                                                               \
  ELEMENTS_INLINE void go_on_##name(const job *j, const chunk *chunks, int count, int64_t begin, \
                                    int64_t end, int stores, computed *sums) {                   \
    const type *from[AT_ONCE];                                                                   \
    type *to[AT_ONCE];                                                                           \
    computed sum[AT_ONCE];                                                                       \
    const int64_t step = j->lines.step;                                                          \
    for (int k = 0; k < count; k++) {                                                            \
      from[k] = (const type *)j->from + chunks[k].from;                                          \
      to[k] = (type *)j->to + chunks[k].to;                                                      \
      sum[k] = sums[k];                                                                          \
    }                                                                                            \
    int64_t i = begin;                                                                           \
    if ((type)0.5 == 0 && count == 1) /* integers wait so short that the loop itself counts */   \
      for (; i + 4 <= end; i += 4)                                                               \
        for (int64_t at = i; at < i + 4; at++) {                                                 \
          sum[0] = join(sum[0], from[0][at * step]);                                             \
          if (stores) to[0][at * step] = sum[0];                                                 \
        }                                                                                        \
    for (; i < end; i++)                                                                         \
      for (int k = 0; k < count; k++) {                                                          \
        sum[k] = join(sum[k], from[k][i * step]);                                                \
        if (stores) to[k][i * step] = sum[k];                                                    \
      }                                                                                          \
    for (int k = 0; k < count; k++) sums[k] = sum[k];                                            \
  }

/* Only for these dtypes: n sums continue by rows of n elements; `count` adjacent short lines, from
 * their starts; the totals. */
#define ROWS(name, type, computed, join)                                                        \
  ELEMENTS_INLINE void go_down_##name(computed *restrict sums, const type *restrict from,       \
                                      type *restrict to, int64_t n, int64_t n_rows) {           \
    for (int64_t i = 0; i < n_rows; i++)                                                        \
      for (int64_t k = 0; k < n; k++) to[i * n + k] = sums[k] = join(sums[k], from[i * n + k]); \
  }                                                                                             \
  ELEMENTS_INLINE void go_along_##name(const scan_lines *lines, const type *from, type *to,     \
                                       int count, computed identity) {                          \
    const int64_t n = lines->n, step = lines->step, in = lines->in.m, out = lines->out.m;       \
    from += lines->first_in, to += lines->first_out;                                            \
    computed sum[AT_ONCE];                                                                      \
    for (int k = 0; k < count && lines->has_initial; k++) to[k * out - step] = identity;        \
    for (int k = 0; k < count; k++) to[k * out] = sum[k] = from[k * in];                        \
    for (int64_t i = 1; i < n; i++)                                                             \
      for (int k = 0; k < count; k++)                                                           \
        to[k * out + i * step] = sum[k] = join(sum[k], from[k * in + i * step]);                \
  }                                                                                             \
  ELEMENTS_INLINE void go_along_all_##name(const scan_lines *lines, const type *from, type *to, \
                                           int64_t n_rows, computed identity) {                 \
    const int64_t in = lines->in.m, out = lines->out.m;                                         \
    for (; n_rows >= AT_ONCE; n_rows -= AT_ONCE, from += AT_ONCE * in, to += AT_ONCE * out)     \
      go_along_##name(lines, from, to, AT_ONCE, identity);                                      \
    for (; n_rows > 0; n_rows--, from += in, to += out)                                         \
      go_along_##name(lines, from, to, 1, identity);                                            \
  }

/* Returns 1 if `own`, a chunk's own value, may have left the range of its dtype, while the
 * combination from `before` on may not. Infinity, 0 and NaN then result only from the order. */
static inline int is_lost(widest before, widest own, int is_product) {
  const double x = creal(before), y = cimag(before), u = creal(own), v = cimag(own);
  const int is_real = y == 0 && v == 0;
  if (x != x && (is_real || y != y)) return 0;
  if (u - u != 0 || v - v != 0) /* an infinite product has no factor that is 0 or NaN */
    return !(is_product && is_real && x - x != 0 && u == u);
  return is_product && u == 0 && v == 0 && (x != 0 || y != 0);
}

/* Converts n elements of a line to float32, and back. */
#define CONVERSIONS(half)                                                              \
  static void load_##half(float *to, const uint16_t *from, int64_t step, int64_t n) {  \
    if (step == 1) {                                                                   \
      cuplug_##half##_load_block(to, from, (size_t)n);                                 \
      return;                                                                          \
    }                                                                                  \
    for (int64_t i = 0; i < n; i++) to[i] = cuplug_##half##_load(from[i * step]);      \
  }                                                                                    \
  static void store_##half(uint16_t *to, const float *from, int64_t step, int64_t n) { \
    if (step == 1) {                                                                   \
      cuplug_##half##_store_block(to, from, (size_t)n);                                \
      return;                                                                          \
    }                                                                                  \
    for (int64_t i = 0; i < n; i++) to[i * step] = cuplug_##half##_store(from[i]);     \
  }
CONVERSIONS(float16)
CONVERSIONS(bfloat16)

/* As PLAIN, for blocks of these. */
#define HALVES(name, half, plain, join)                                                           \
  ELEMENTS_INLINE void go_on_##name(const job *j, const chunk *chunks, int count, int64_t begin,  \
                                    int64_t end, int stores, float *sums) {                       \
    float blocks[AT_ONCE][BLOCK], sum[AT_ONCE];                                                   \
    const int64_t step = j->lines.step;                                                           \
    for (int k = 0; k < count; k++) sum[k] = sums[k];                                             \
    for (int64_t n; begin < end; begin += n) {                                                    \
      n = smaller(BLOCK, end - begin);                                                            \
      for (int k = 0; k < count; k++)                                                             \
        load_##half(blocks[k], (const uint16_t *)j->from + chunks[k].from + begin * step, step,   \
                    n);                                                                           \
      for (int64_t i = 0; i < n; i++)                                                             \
        for (int k = 0; k < count; k++) blocks[k][i] = sum[k] = join(sum[k], blocks[k][i]);       \
      for (int k = 0; k < count && stores; k++)                                                   \
        store_##half((uint16_t *)j->to + chunks[k].to + begin * step, blocks[k], step, n);        \
    }                                                                                             \
    for (int k = 0; k < count; k++) sums[k] = sum[k];                                             \
  }                                                                                               \
  ELEMENTS_INLINE void go_down_##name(float *sums, const uint16_t *from, uint16_t *to, int64_t n, \
                                      int64_t n_rows) {                                           \
    float read[COLUMNS], written[COLUMNS];                                                        \
    const int64_t m = n * n_rows;                                                                 \
    load_##half(read, from, 1, m);                                                                \
    go_down_##plain(sums, read, written, n, n_rows);                                              \
    store_##half(to, written, 1, m);                                                              \
  }                                                                                               \
  ELEMENTS_INLINE void go_along_all_##name(const scan_lines *lines, const uint16_t *from,         \
                                           uint16_t *to, int64_t n_rows, float identity) {        \
    float read[BLOCK], written[BLOCK];                                                            \
    const int64_t in = lines->in.m, out = lines->out.m, most = BLOCK / (in > out ? in : out);     \
    for (int64_t r; n_rows > 0; n_rows -= r) {                                                    \
      r = smaller(most, n_rows);                                                                  \
      const int64_t n_read = r * in, n_written = r * out;                                         \
      load_##half(read, from, 1, n_read);                                                         \
      go_along_all_##plain(lines, read, written, r, identity);                                    \
      store_##half(to, written, 1, n_written);                                                    \
      from += n_read, to += n_written;                                                            \
    }                                                                                             \
  }

#endif
