/* SPDX-License-Identifier: Apache-2.0 */
#include "host/tiles.h"

#include "base/layout.h"
#include "host/shuffle.h"

#include <stdlib.h>
#include <string.h>

/* Tiles of a line by TILE_ROW blocks read each line once. */
#define TILE_ROW 64
#define BELOW (2 * CUPLUG__LINE - 1) /* to the end of the tile below, wherever lines begin */
#define AT_ONCE 4                    /* blocks of a row, where there are no squares */
#define ALIASED 1024 /* blocks: of rows this far apart, a cache holds few lines at a time */

/* ---- Squares --------------------------------------------------------------------------------- */

#define LIST(...) __VA_ARGS__

/* Squares of N x N blocks in registers: each step lays rows of the upper half between those of the
 * lower half, block by block. The last squares share blocks with those before them. */
#define DEFINE_SQUARES(T, type, N, LOW, HIGH)                                                \
  typedef type T __attribute__((vector_size(N * sizeof(type)), aligned(1), may_alias));      \
  static inline void square_of_##T(char *to, int64_t to_stride, const char *from,            \
                                   int64_t stride) {                                         \
    T x[N], y[N];                                                                            \
    for (int k = 0; k < N; k++) x[k] = *(const T *)(from + k * stride);                      \
    for (int step = 1; step < N; step *= 2) {                                                \
      for (int k = 0; k < N / 2; k++) {                                                      \
        y[2 * k] = CUPLUG__SHUFFLE(T, x[k], x[k + N / 2], LOW);                              \
        y[2 * k + 1] = CUPLUG__SHUFFLE(T, x[k], x[k + N / 2], HIGH);                         \
      }                                                                                      \
      for (int k = 0; k < N; k++) x[k] = y[k];                                               \
    }                                                                                        \
    for (int k = 0; k < N; k++) *(T *)(to + k * to_stride) = x[k];                           \
  }                                                                                          \
  static void squares_of_##T(char *to, int64_t to_stride, const char *from, int64_t stride,  \
                             int64_t n_rows, int64_t n_blocks) {                             \
    const int64_t block = sizeof(type);                                                      \
    for (int64_t i = 0; i < n_blocks; i += N) {                                              \
      const int64_t first = cuplug__least(i, n_blocks - N);                                  \
      const char *column = from + first * stride;                                            \
      for (int k = 0; k < N; k++) __builtin_prefetch(column + k * stride + BELOW);           \
      for (int64_t r = 0; r < n_rows; r += N) {                                              \
        const int64_t row = cuplug__least(r, n_rows - N);                                    \
        square_of_##T(to + row * to_stride + first * block, to_stride, column + row * block, \
                      stride);                                                               \
      }                                                                                      \
    }                                                                                        \
  }
DEFINE_SQUARES(ones, uint8_t, 8, LIST(0, 8, 1, 9, 2, 10, 3, 11), LIST(4, 12, 5, 13, 6, 14, 7, 15))
DEFINE_SQUARES(twos, uint16_t, 8, LIST(0, 8, 1, 9, 2, 10, 3, 11), LIST(4, 12, 5, 13, 6, 14, 7, 15))
DEFINE_SQUARES(fours, uint32_t, 4, LIST(0, 4, 1, 5), LIST(2, 6, 3, 7))
DEFINE_SQUARES(eights, uint64_t, 2, LIST(0, 2), LIST(1, 3))

int64_t cuplug__square_side(int64_t block) { return block > 8 ? 0 : block < 2 ? 8 : 16 / block; }

/* A tile whose rows lie side by side, `block` bytes from one to the next. */
static void copy_squares(char *to, int64_t to_stride, const char *from, int64_t stride,
                         int64_t n_rows, int64_t n_blocks, int64_t block) {
  switch (block) {
  case 1:
    squares_of_ones(to, to_stride, from, stride, n_rows, n_blocks);
    break;
  case 2:
    squares_of_twos(to, to_stride, from, stride, n_rows, n_blocks);
    break;
  case 4:
    squares_of_fours(to, to_stride, from, stride, n_rows, n_blocks);
    break;
  default:
    squares_of_eights(to, to_stride, from, stride, n_rows, n_blocks);
  }
}

/* ---- Tiles ----------------------------------------------------------------------------------- */

#define COPY(n)                                                                        \
  for (int64_t r = 0; r < n_rows; r++)                                                 \
    for (int64_t k = 0; k < (n); k++)                                                  \
      memcpy(to + r * to_stride + (i + k) * block, from + r * row_stride + k * stride, \
             (size_t)block);

/* Any tile, some blocks of each row at a time. */
static inline __attribute__((always_inline)) void copy_each(char *to, int64_t to_stride,
                                                            const char *from, int64_t row_stride,
                                                            int64_t stride, int64_t n_rows,
                                                            int64_t n_blocks, int64_t block) {
  for (int64_t i = 0, n; i < n_blocks; i += n, from += n * stride) {
    n = i + AT_ONCE <= n_blocks ? AT_ONCE : 1;
    for (int64_t k = 0; k < n; k++) __builtin_prefetch(from + k * stride + BELOW);
    if (n == AT_ONCE)
      COPY(AT_ONCE)
    else
      COPY(1)
  }
}

#define COPY_EACH(size)                                                           \
  case size:                                                                      \
    copy_each(to, to_stride, from, row_stride, stride, n_rows, n_blocks, (size)); \
    break;

static void copy_tile(char *to, int64_t to_stride, const char *from, int64_t row_stride,
                      int64_t stride, int64_t n_rows, int64_t n_blocks, int64_t block) {
  switch (block) {
    COPY_EACH(1)
    COPY_EACH(2)
    COPY_EACH(4)
    COPY_EACH(8)
    COPY_EACH(16)
  }
}

/* Whether a tile's rows push each other out of the caches: a buffer takes them first. Wide blocks'
 * rows are few enough. */
static int are_aliased(int64_t to_stride, int64_t block) {
  const int64_t rest = llabs(to_stride) / block % ALIASED;
  return block < 8 && (rest < 4 || rest > ALIASED - 4);
}

void cuplug__copy_tiles(char *to, int64_t to_stride, const char *from, int64_t row_stride,
                        int64_t stride, int64_t n_rows, int64_t n_blocks, int64_t block) {
  char tile[CUPLUG__LINE * TILE_ROW] __attribute__((aligned(CUPLUG__LINE)));
  const int64_t tile_rows = CUPLUG__LINE / block, side = cuplug__square_side(block);
  const int has_squares =
      side && (row_stride == block || row_stride == -block) && n_rows >= side && n_blocks >= side;
  const int64_t least = has_squares ? side : 1;
  const int is_direct = !are_aliased(to_stride, block);
  if (row_stride < 0) { /* from the last row to the first */
    to += (n_rows - 1) * to_stride, from += (n_rows - 1) * row_stride;
    to_stride = -to_stride, row_stride = -row_stride;
  }
  for (int64_t i = 0; i < n_blocks; i += TILE_ROW) {
    const int64_t column = cuplug__least(i, n_blocks - least);
    const int64_t width = cuplug__least(TILE_ROW, n_blocks - column);
    for (int64_t r = 0; r < n_rows; r += tile_rows) {
      const int64_t row = cuplug__least(r, n_rows - least);
      const int64_t height = cuplug__least(tile_rows, n_rows - row);
      const char *source = from + row * row_stride + column * stride;
      char *target = to + row * to_stride + column * block;
      char *at = is_direct ? target : tile;
      const int64_t at_stride = is_direct ? to_stride : TILE_ROW * block;
      if (has_squares)
        copy_squares(at, at_stride, source, stride, height, width, block);
      else
        copy_tile(at, at_stride, source, row_stride, stride, height, width, block);
      for (int64_t k = 0; !is_direct && k < height; k++)
        memcpy(target + k * to_stride, tile + k * at_stride, (size_t)(width * block));
    }
  }
}
