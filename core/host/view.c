/* SPDX-License-Identifier: Apache-2.0 */
#include "host/view.h"

#include "base/layout.h"
#include "host/strided_copy.h"

#include <stdlib.h>
#include <string.h>

void cuplug__view_bytes(cuplug__view *v, const void *data, uint64_t bytes) {
  v->data = (char *)data;
  v->block_bytes = bytes;
  v->ndim = 0;
}

void cuplug__view_add(cuplug__view *v, int64_t size, int64_t stride) {
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

void cuplug__view_array(cuplug__view *v, const cuplug_tensor *x) {
  const int64_t element = cuplug_element_bytes(x), n = cuplug_n_elements(x);
  const int is_block = !x->strides || !n;
  cuplug__view_bytes(v, x->data, (uint64_t)(is_block ? n * element : element));
  for (int32_t d = is_block ? -1 : x->ndim - 1; d >= 0; d--)
    cuplug__view_add(v, x->shape[d], x->strides[d] * element);
}

/* ---- Places ---------------------------------------------------------------------------------- */

/* A block of a view, and its index in each dimension. */
typedef struct place {
  char *data;
  int64_t index[CUPLUG_MAX_NDIM];
} place;

/* Whole blocks in so many bytes. Their size is mostly a power of two: divisions take long. */
static inline uint64_t blocks_in(const cuplug__view *v, uint64_t bytes) {
  const int shift = __builtin_ctzll(v->block_bytes);
  return v->block_bytes >> shift == 1 ? bytes >> shift : bytes / v->block_bytes;
}

/* Finds the block with byte `first` of C order. Returns which of its bytes that is. */
static inline uint64_t find_byte(const cuplug__view *v, uint64_t first, place *at) {
  uint64_t block = blocks_in(v, first);
  const uint64_t before = first - block * v->block_bytes;
  at->data = v->data;
  for (int32_t d = 0; d < v->ndim; d++) {
    const uint64_t size = (uint64_t)v->shape[d], rest = d + 1 < v->ndim ? block / size : 0;
    at->index[d] = (int64_t)(block - rest * size);
    at->data += at->index[d] * v->strides[d];
    block = rest;
  }
  return before;
}

char *cuplug__view_place(const cuplug__view *v, uint64_t first) {
  place at;
  if (cuplug__view_is_contiguous(v)) return v->data + first;
  const uint64_t before = find_byte(v, first, &at);
  return at.data + before;
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
#define PASS 512  /* rows that are copied together: the output stays in the caches */

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

#define MAX_PIECE ((int64_t)256 << 20) /* bytes; larger ones would be few, for many threads */

#define LEAST_TILE 16 /* blocks; smaller ones cost more than they save */

/* The dimension in which blocks are closest, if the blocks of a row are further apart, or 0. */
static int32_t nearest(const cuplug__view *v) {
  int32_t near = 0;
  for (int32_t d = 1; d < v->ndim; d++)
    if (llabs(v->strides[d]) < llabs(v->strides[near])) near = d;
  return near && v->shape[0] * v->shape[near] >= LEAST_TILE ? near : 0;
}

/* Returns whether close blocks in that dimension share lines, and the blocks of a row do not. */
static int shares_lines(const cuplug__view *v, int32_t near) {
  const int is_apt = near && has_small_blocks(v) && !is_narrow(v);
  return is_apt && llabs(v->strides[0]) >= CUPLUG__LINE && llabs(v->strides[near]) < CUPLUG__LINE;
}

/* Returns whether squares of blocks can be transposed. */
static int has_squares(const cuplug__view *v, int32_t near) {
  const int64_t block = (int64_t)v->block_bytes;
  const int64_t side = has_small_blocks(v) ? cuplug__square_side(block) : 0;
  return side && llabs(v->strides[near]) == block && v->shape[0] >= side && v->shape[near] >= side;
}

/* The dimension along which tiles are copied, or 0. */
static int32_t near_dimension(const cuplug__view *v) {
  const int32_t near = nearest(v);
  return near && (has_squares(v, near) || shares_lines(v, near)) ? near : 0;
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
    cuplug__move_tiles(to + i * row_bytes, n_rows * row_bytes, row.data, v->strides[near],
                       v->strides[0], n, v->shape[0], block);
    if (i + 1 < n_rows) advance(v, &row, 1, 1);
  }
}

int cuplug__view_is_transposed(const cuplug__view *v) { return shares_lines(v, nearest(v)); }

uint64_t cuplug__view_piece(const cuplug__view *v) {
  const int32_t near = near_dimension(v);
  const int64_t unit = unit_of(v, near);
  return near && unit <= MAX_PIECE / CUPLUG__LINE ? (uint64_t)unit * CUPLUG__LINE : 1;
}

/* ---- Ranges ---------------------------------------------------------------------------------- */

/* Whole units from here on, in the dimension `near`, of the next n blocks. */
static int64_t n_units(const cuplug__view *v, const place *at, int32_t near, int64_t n,
                       int64_t unit) {
  if (!near || n < unit) return 0;
  for (int32_t d = 0; d < near; d++)
    if (at->index[d]) return 0;
  return cuplug__min(v->shape[near] - at->index[near], n / unit);
}

/* The next n blocks. Only reads go by tiles. */
static inline __attribute__((always_inline)) void copy_range(direction way, const cuplug__view *v,
                                                             place *at, int64_t n, char *packed) {
  const int32_t near = way == READ ? near_dimension(v) : 0;
  const int64_t unit = unit_of(v, near);
  while (n) {
    const int64_t units = n_units(v, at, near, n, unit);
    int64_t done = units * unit;
    if (done) {
      copy_units(v, near, at, units, packed);
      advance(v, at, near, units);
    } else if (is_narrow(v) && !at->index[0] && n >= v->shape[0]) {
      const int64_t rows = cuplug__min(v->shape[1] - at->index[1], n / v->shape[0]);
      const int64_t n_rows = cuplug__min(rows, PASS);
      done = n_rows * v->shape[0];
      copy_columns(way, v, packed, at->data, n_rows);
      advance(v, at, 1, n_rows);
    } else {
      done = cuplug__min(v->shape[0] - at->index[0], n);
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
  const uint64_t before = find_byte(v, first, &at);
  if (before) {
    const uint64_t rest = cuplug__min(v->block_bytes - before, bytes);
    copy(way, packed, at.data + before, rest);
    advance(v, &at, 0, 1);
    packed += rest, bytes -= rest;
  }
  const uint64_t n = blocks_in(v, bytes), done = n * v->block_bytes;
  copy_range(way, v, &at, (int64_t)n, packed);
  if (done < bytes) copy(way, packed + done, at.data, bytes - done);
}

void cuplug__view_copy(const cuplug__view *v, int is_write, uint64_t first, uint64_t bytes,
                       void *packed) {
  if (is_write)
    copy_bytes(WRITE, v, first, bytes, packed);
  else
    copy_bytes(READ, v, first, bytes, packed);
}
