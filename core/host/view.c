/* SPDX-License-Identifier: Apache-2.0 */
#include "host/view.h"

#include "base/layout.h"
#include "host/move.h"

#include <stdlib.h>
#include <string.h>

/* Takes one more dimension, outside of those before it. */
static void add_dimension(cuplug__view *v, int64_t size, int64_t stride) {
  if (size == 1) return;
  if (!v->ndim && stride == (int64_t)v->block_bytes) {
    v->block_bytes *= (uint64_t)size;
  } else if (v->ndim && stride == v->shape[v->ndim - 1] * v->strides[v->ndim - 1]) {
    v->shape[v->ndim - 1] *= size;
  } else {
    v->shape[v->ndim] = size;
    v->strides[v->ndim++] = stride;
  }
}

void cuplug__view_bytes(cuplug__view *v, const void *data, uint64_t bytes) {
  v->data = (char *)data;
  v->block_bytes = bytes;
  v->ndim = 1;
  v->shape[0] = 1;
  v->strides[0] = 0;
}

void cuplug__view_array(cuplug__view *v, const cuplug_tensor *x) {
  const int64_t element = cuplug_element_bytes(x), n = cuplug_n_elements(x);
  if (!x->strides || !n) {
    cuplug__view_bytes(v, x->data, (uint64_t)(n * element));
    return;
  }
  v->data = x->data;
  v->block_bytes = (uint64_t)element;
  v->ndim = 0;
  for (int32_t d = x->ndim - 1; d >= 0; d--) add_dimension(v, x->shape[d], x->strides[d] * element);
  if (!v->ndim) cuplug__view_bytes(v, v->data, v->block_bytes);
}

/* ---- Places ---------------------------------------------------------------------------------- */

/* A place in a view: a block, and its index in each dimension. */
typedef struct place {
  char *data;
  int64_t index[CUPLUG_MAX_NDIM];
} place;

static void find_block(const cuplug__view *v, uint64_t block, place *at) {
  at->data = v->data;
  for (int32_t d = 0; d < v->ndim; d++) {
    at->index[d] = (int64_t)(block % (uint64_t)v->shape[d]);
    at->data += at->index[d] * v->strides[d];
    block /= (uint64_t)v->shape[d];
  }
}

/* Goes on by n in dimension d, not past its end; the dimensions inside of it are at 0. */
static void advance(const cuplug__view *v, place *at, int32_t d, int64_t n) {
  at->index[d] += n;
  at->data += n * v->strides[d];
  for (; d + 1 < v->ndim && at->index[d] == v->shape[d]; d++) {
    at->data += v->strides[d + 1] - v->shape[d] * v->strides[d];
    at->index[d] = 0;
    at->index[d + 1]++;
  }
}

/* ---- Rows ------------------------------------------------------------------------------------ */

typedef enum direction { READ, WRITE } direction;

static inline void copy(direction way, char *packed, char *host, size_t bytes) {
  if (way == READ)
    memcpy(packed, host, bytes);
  else
    memcpy(host, packed, bytes);
}

/* n blocks, of which there are `step` in `packed` for each one. */
static inline void copy_blocks(direction way, char *packed, int64_t step, char *host, int64_t n,
                               int64_t block, int64_t stride) {
  if (way == READ)
    cuplug__move(packed, step * block, host, stride, n, block);
  else
    cuplug__move(host, stride, packed, step * block, n, block);
}

#define NARROW 16 /* blocks */
#define PASS 512  /* rows that are copied together: what is written stays in the caches */

static inline int has_small_blocks(const cuplug__view *v) {
  return v->block_bytes <= 16 && !(v->block_bytes & (v->block_bytes - 1));
}

/* Loops over the blocks of short rows take longer than to go over the rows several times. */
static inline int is_narrow(const cuplug__view *v) {
  const int is_short = v->ndim > 1 && v->shape[0] <= NARROW && v->shape[0] < v->shape[1];
  return is_short && has_small_blocks(v);
}

/* Whole rows, column by column. */
static void copy_columns(direction way, const cuplug__view *v, char *packed, char *host,
                         int64_t n_rows) {
  const int64_t block = (int64_t)v->block_bytes, n = v->shape[0];
  for (int64_t i = 0; i < n; i++)
    copy_blocks(way, packed + i * block, n, host + i * v->strides[0], n_rows, block, v->strides[1]);
}

/* ---- Tiles ----------------------------------------------------------------------------------- */

/* In transposed arrays a row's blocks lie far apart, each in a line of its own, and the blocks next
 * to them belong to the next rows: tiles of LINE bytes by TILE_ROW blocks read each line once. */
#define LINE 64
#define TILE_ROW 64
#define BELOW (2 * LINE - 1) /* bytes to the end of the tile below, wherever lines begin */
#define MAX_PIECE ((int64_t)256 << 20) /* bytes; larger ones would be few, for many threads */
#define ALIASED 4096 /* of rows at multiples of these bytes, a cache holds few lines at a time */

/* n_rows x n_blocks blocks by way of a buffer: for rows that push each other out of the caches. */
static inline __attribute__((always_inline)) void copy_tile(char *to, int64_t to_stride,
                                                            const char *from, int64_t row_stride,
                                                            int64_t stride, int64_t n_rows,
                                                            int64_t n_blocks, int64_t block) {
  char tile[LINE * TILE_ROW] __attribute__((aligned(LINE)));
  for (int64_t i = 0; i < n_blocks; i++, from += stride) {
    __builtin_prefetch(from + BELOW);
    for (int64_t r = 0; r < n_rows; r++)
      memcpy(tile + (r * TILE_ROW + i) * block, from + r * row_stride, (size_t)block);
  }
  for (int64_t r = 0; r < n_rows; r++)
    memcpy(to + r * to_stride, tile + r * TILE_ROW * block, (size_t)(n_blocks * block));
}

/* The same of wide blocks, whose rows are few enough for any cache: 16 bytes of each at a time. */
static inline __attribute__((always_inline)) void copy_wide(char *to, int64_t to_stride,
                                                            const char *from, int64_t row_stride,
                                                            int64_t stride, int64_t n_rows,
                                                            int64_t n_blocks, int64_t block) {
  const int64_t step = 16 / block;
  int64_t i = 0;
  for (; i + step <= n_blocks; i += step, from += step * stride) {
    for (int64_t k = 0; k < step; k++) __builtin_prefetch(from + k * stride + BELOW);
    for (int64_t r = 0; r < n_rows; r++) {
      char both[16];
      for (int64_t k = 0; k < step; k++)
        memcpy(both + k * block, from + k * stride + r * row_stride, (size_t)block);
      memcpy(to + r * to_stride + i * block, both, 16);
    }
  }
  for (; i < n_blocks; i++, from += stride)
    for (int64_t r = 0; r < n_rows; r++)
      memcpy(to + r * to_stride + i * block, from + r * row_stride, (size_t)block);
}

/* A whole tile of blocks of 4 bytes that lie side by side: four by four in registers. */
typedef uint32_t four __attribute__((vector_size(16), aligned(1), may_alias));
#ifdef __clang__
#define EACH(a, b, p, q, r, s) __builtin_shufflevector(a, b, p, q, r, s)
#else
#define EACH(a, b, p, q, r, s) __builtin_shuffle(a, b, (four){p, q, r, s})
#endif
static void copy_fours(char *to, int64_t to_stride, const char *from, int64_t stride) {
  for (int64_t i = 0; i < TILE_ROW; i += 4, from += 4 * stride, to += 16) {
    for (int64_t k = 0; k < 4; k++) __builtin_prefetch(from + k * stride + BELOW);
    for (int64_t k = 0; k < LINE; k += 16) {
      const four a = *(const four *)(from + k), b = *(const four *)(from + stride + k),
                 c = *(const four *)(from + 2 * stride + k),
                 d = *(const four *)(from + 3 * stride + k);
      const four ab = EACH(a, b, 0, 4, 1, 5), more_ab = EACH(a, b, 2, 6, 3, 7),
                 cd = EACH(c, d, 0, 4, 1, 5), more_cd = EACH(c, d, 2, 6, 3, 7);
      char *row = to + k / 4 * to_stride;
      *(four *)row = EACH(ab, cd, 0, 1, 4, 5);
      *(four *)(row + to_stride) = EACH(ab, cd, 2, 3, 6, 7);
      *(four *)(row + 2 * to_stride) = EACH(more_ab, more_cd, 0, 1, 4, 5);
      *(four *)(row + 3 * to_stride) = EACH(more_ab, more_cd, 2, 3, 6, 7);
    }
  }
}
#undef EACH

/* Of tiles that are whole, the compiler knows all sizes. */
#define COPY_TILE(copy, size)                                                   \
  if (n_rows == LINE / (size) && n_blocks == TILE_ROW && row_stride == (size))  \
    copy(to, to_stride, from, (size), stride, LINE / (size), TILE_ROW, (size)); \
  else                                                                          \
    copy(to, to_stride, from, row_stride, stride, n_rows, n_blocks, (size));    \
  break

static void copy_any_tile(char *to, int64_t to_stride, const char *from, int64_t row_stride,
                          int64_t stride, int64_t n_rows, int64_t n_blocks, int64_t block) {
  switch (block) {
  case 1:
    COPY_TILE(copy_tile, 1);
  case 2:
    COPY_TILE(copy_tile, 2);
  case 4:
    if (n_rows == LINE / 4 && n_blocks == TILE_ROW && row_stride == 4 && to_stride % ALIASED) {
      copy_fours(to, to_stride, from, stride);
      break;
    }
    COPY_TILE(copy_tile, 4);
  case 8:
    COPY_TILE(copy_wide, 8);
  default:
    COPY_TILE(copy_wide, 16);
  }
}

static void copy_rows(char *to, int64_t to_stride, const char *from, int64_t row_stride,
                      int64_t stride, int64_t n_rows, int64_t n_blocks, int64_t block) {
  const int64_t tile_rows = LINE / block;
  for (int64_t i = 0; i < n_blocks; i += TILE_ROW)
    for (int64_t r = 0; r < n_rows; r += tile_rows)
      copy_any_tile(to + r * to_stride + i * block, to_stride, from + r * row_stride + i * stride,
                    row_stride, stride, cuplug__least(tile_rows, n_rows - r),
                    cuplug__least(TILE_ROW, n_blocks - i), block);
}

/* The dimension whose neighbours share lines where those of a row do not, or 0. */
static int32_t near_dimension(const cuplug__view *v) {
  int32_t near = 0;
  for (int32_t d = 1; d < v->ndim; d++)
    if (llabs(v->strides[d]) < llabs(v->strides[near])) near = d;
  const int is_apt = has_small_blocks(v) && !is_narrow(v);
  return is_apt && llabs(v->strides[0]) >= LINE && llabs(v->strides[near]) < LINE ? near : 0;
}

/* Blocks in what dimension d repeats. */
static int64_t unit_of(const cuplug__view *v, int32_t d) {
  int64_t n = 1;
  while (d--) n *= v->shape[d];
  return n;
}

/* n units of dimension `near`: the rows at each place of the dimensions inside of it. */
static void copy_units(const cuplug__view *v, int32_t near, const place *at, int64_t n, char *to) {
  const int64_t block = (int64_t)v->block_bytes, row_bytes = v->shape[0] * block;
  const int64_t n_rows = unit_of(v, near) / v->shape[0];
  place row = *at;
  for (int64_t i = 0; i < n_rows; i++) {
    copy_rows(to + i * row_bytes, n_rows * row_bytes, row.data, v->strides[near], v->strides[0], n,
              v->shape[0], block);
    if (i + 1 < n_rows) advance(v, &row, 1, 1);
  }
}

int cuplug__view_is_transposed(const cuplug__view *v) { return near_dimension(v) > 0; }

uint64_t cuplug__view_piece(const cuplug__view *v) {
  const int32_t near = near_dimension(v);
  const int64_t unit = unit_of(v, near);
  return near && unit <= MAX_PIECE / LINE ? (uint64_t)unit * LINE : 1;
}

/* ---- Ranges ---------------------------------------------------------------------------------- */

/* Whole units from here on, in the dimension `near`, of the next n blocks. */
static int64_t n_units(const cuplug__view *v, const place *at, int32_t near, int64_t n) {
  for (int32_t d = 0; d < near; d++)
    if (at->index[d]) return 0;
  return near ? cuplug__least(v->shape[near] - at->index[near], n / unit_of(v, near)) : 0;
}

/* The next n blocks. Only reads go by tiles. */
static inline __attribute__((always_inline)) void copy_range(direction way, const cuplug__view *v,
                                                             place *at, int64_t n, char *packed) {
  const int32_t near = way == READ ? near_dimension(v) : 0;
  while (n) {
    const int64_t units = n_units(v, at, near, n);
    int64_t done = units * unit_of(v, near);
    if (done) {
      copy_units(v, near, at, units, packed);
      advance(v, at, near, units);
    } else if (is_narrow(v) && !at->index[0] && n >= v->shape[0]) {
      const int64_t rows = cuplug__least(v->shape[1] - at->index[1], n / v->shape[0]);
      const int64_t n_rows = cuplug__least(rows, PASS);
      done = n_rows * v->shape[0];
      copy_columns(way, v, packed, at->data, n_rows);
      advance(v, at, 1, n_rows);
    } else {
      done = cuplug__least(v->shape[0] - at->index[0], n);
      copy_blocks(way, packed, 1, at->data, done, (int64_t)v->block_bytes, v->strides[0]);
      advance(v, at, 0, done);
    }
    packed += done * (int64_t)v->block_bytes, n -= done;
  }
}

/* From the middle of a block to the middle of one. */
static inline __attribute__((always_inline)) void
copy_bytes(direction way, const cuplug__view *v, uint64_t first, uint64_t bytes, char *packed) {
  place at;
  if (!bytes) return;
  if (cuplug__view_is_contiguous(v)) {
    copy(way, packed, v->data + first, bytes);
    return;
  }
  const uint64_t block = v->block_bytes, before = first % block;
  find_block(v, first / block, &at);
  if (before) {
    const uint64_t rest = cuplug__least(block - before, bytes);
    copy(way, packed, at.data + before, rest);
    advance(v, &at, 0, 1);
    packed += rest, bytes -= rest;
  }
  copy_range(way, v, &at, (int64_t)(bytes / block), packed);
  if (bytes % block) copy(way, packed + bytes / block * block, at.data, bytes % block);
}

void cuplug__view_read(const cuplug__view *v, uint64_t first, uint64_t bytes, char *to) {
  copy_bytes(READ, v, first, bytes, to);
}

void cuplug__view_write(const cuplug__view *v, uint64_t first, uint64_t bytes, const char *from) {
  copy_bytes(WRITE, v, first, bytes, (char *)from);
}
