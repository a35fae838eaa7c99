/* SPDX-License-Identifier: Apache-2.0 */
#include "host/strided_copy.h"

#include "base/layout.h"

#include <stdlib.h>
#include <string.h>

/* The elements of a and b, consecutive, at these positions, as a vector of the same type. */
#ifdef __clang__
#define SHUFFLE(T, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(T, a, b, ...) __builtin_shuffle(a, b, (T){__VA_ARGS__})
#endif

/* ---- Along one dimension --------------------------------------------------------------------- */

#define LONG_BYTES 1024 /* from there on it pays to begin an instruction that fills memory */
#define AVX2_BYTES 256  /* from there on wider vectors pay, without a change of order */

#define ONE(size, k) memcpy(to + (k)*to_step, from + (k)*from_step, (size_t)(size));

/* Four at a time: a jump for each element may take as long as to move it. */
#define MOVE(label, size)                                            \
  label:                                                             \
  for (; n >= 4; n -= 4, to += 4 * to_step, from += 4 * from_step) { \
    ONE(size, 0) ONE(size, 1) ONE(size, 2) ONE(size, 3)              \
  }                                                                  \
  for (int64_t i = 0; i < n; i++) ONE(size, i)                       \
  break;

static __attribute__((noinline)) void move_any(char *restrict to, int64_t to_step,
                                               const char *restrict from, int64_t from_step,
                                               int64_t n, int64_t bytes) {
  switch (bytes) {
    MOVE(case 1, 1)
    MOVE(case 2, 2)
    MOVE(case 4, 4)
    MOVE(case 8, 8)
    MOVE(case 16, 16)
    MOVE(default, bytes)
  }
}

#define EACH(size, FROM) \
  for (int64_t i = 0; i < n; i++) memcpy(to + i * (size), from + i * (FROM), (size_t)(size));

/* Steps that are constants for the compiler become vector instructions. */
#define MOVE_KNOWN(size)              \
  case size:                          \
    if (from_step == 0)               \
      EACH(size, 0)                   \
    else if (from_step == 2 * (size)) \
      EACH(size, 2 * (size))          \
    else if (from_step == -(size))    \
      EACH(size, -(size))             \
    else                              \
      break;                          \
    return 1;

/* Elements whose copy is contiguous. 0: nothing was done. */
static inline __attribute__((always_inline)) int move_steps(char *restrict to,
                                                            const char *restrict from,
                                                            int64_t from_step, int64_t n,
                                                            int64_t bytes) {
  switch (bytes) {
    MOVE_KNOWN(1)
    MOVE_KNOWN(2)
    MOVE_KNOWN(4)
    MOVE_KNOWN(8)
    MOVE_KNOWN(16)
  }
  return 0;
}

#ifdef __x86_64__
/* Writes an element many times by the instruction that stores whole lines. Returns how many. */
static inline int64_t fill_words(char *to, const char *from, int64_t n, int64_t bytes) {
  if (bytes > 8 || bytes & (bytes - 1) || n * bytes < LONG_BYTES) return 0;
  uint64_t word = 0;
  memcpy(&word, from, (size_t)bytes);
  for (int64_t k = bytes; k < 8; k *= 2) word |= word << 8 * k;
  int64_t n_words = n * bytes / 8;
  const int64_t n_done = n_words * 8 / bytes;
  __asm__ volatile("rep stosq" : "+D"(to), "+c"(n_words) : "a"(word) : "memory");
  return n_done;
}

/* Other instructions reverse small elements one by one. */
__attribute__((target("avx2"))) static int move_steps_avx2(char *restrict to,
                                                           const char *restrict from,
                                                           int64_t from_step, int64_t n,
                                                           int64_t bytes) {
  return move_steps(to, from, from_step, n, bytes);
}

static int move_known(char *to, const char *from, int64_t from_step, int64_t n, int64_t bytes) {
  if (!from_step) {
    const int64_t n_done = fill_words(to, from, n, bytes);
    to += n_done * bytes, n -= n_done;
  } else if ((from_step < 0 || n * bytes >= AVX2_BYTES) && __builtin_cpu_supports("avx2")) {
    return move_steps_avx2(to, from, from_step, n, bytes);
  }
  return move_steps(to, from, from_step, n, bytes);
}
#else
#define move_known move_steps
#endif

void cuplug__move(void *to, int64_t to_step, const void *from, int64_t from_step, int64_t n,
                  int64_t bytes) {
  if (to_step == bytes && from_step == bytes)
    memcpy(to, from, (size_t)(n * bytes));
  else if (to_step != bytes || !move_known(to, from, from_step, n, bytes))
    move_any(to, to_step, from, from_step, n, bytes);
}

/* Tiles of a line by TILE_ROW blocks read each line once. */
#define TILE_ROW 64
#define BELOW (2 * CUPLUG__LINE - 1) /* to the end of the tile below, wherever lines begin */
#define AT_ONCE 4                    /* blocks of a row, without squares */
#define ALIASED 1024 /* blocks: of rows this far apart, a cache holds few lines at a time */

/* ---- Squares --------------------------------------------------------------------------------- */

#define LIST(...) __VA_ARGS__

/* Squares of N x N blocks in registers: each step interleaves rows of the upper and the lower
 * half, block by block. The last squares share blocks with the squares before them. */
#define DEFINE_SQUARES(T, type, N, LOW, HIGH)                                                \
  typedef type T __attribute__((vector_size(N * sizeof(type)), aligned(1), may_alias));      \
  static inline void square_of_##T(char *to, int64_t to_stride, const char *from,            \
                                   int64_t stride) {                                         \
    T x[N], y[N];                                                                            \
    for (int k = 0; k < N; k++) x[k] = *(const T *)(from + k * stride);                      \
    for (int step = 1; step < N; step *= 2) {                                                \
      for (int k = 0; k < N / 2; k++) {                                                      \
        y[2 * k] = SHUFFLE(T, x[k], x[k + N / 2], LOW);                                      \
        y[2 * k + 1] = SHUFFLE(T, x[k], x[k + N / 2], HIGH);                                 \
      }                                                                                      \
      for (int k = 0; k < N; k++) x[k] = y[k];                                               \
    }                                                                                        \
    for (int k = 0; k < N; k++) *(T *)(to + k * to_stride) = x[k];                           \
  }                                                                                          \
  static void squares_of_##T(char *to, int64_t to_stride, const char *from, int64_t stride,  \
                             int64_t n_rows, int64_t n_blocks) {                             \
    const int64_t block = sizeof(type);                                                      \
    for (int64_t i = 0; i < n_blocks; i += N) {                                              \
      const int64_t first = cuplug__min(i, n_blocks - N);                                    \
      const char *column = from + first * stride;                                            \
      for (int k = 0; k < N; k++) __builtin_prefetch(column + k * stride + BELOW);           \
      for (int64_t r = 0; r < n_rows; r += N) {                                              \
        const int64_t row = cuplug__min(r, n_rows - N);                                      \
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

/* A tile with adjacent rows, `block` bytes from one to the next. */
static void copy_squares(char *to, int64_t to_stride, const char *from, int64_t stride,
                         int64_t n_rows, int64_t n_blocks, int64_t block) {
#define COPY_SQUARES(size, T) \
  if (block == (size)) squares_of_##T(to, to_stride, from, stride, n_rows, n_blocks);
  COPY_SQUARES(1, ones)
  COPY_SQUARES(2, twos)
  COPY_SQUARES(4, fours)
  COPY_SQUARES(8, eights)
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

static void copy_tile(char *to, int64_t to_stride, const char *from, int64_t row_stride,
                      int64_t stride, int64_t n_rows, int64_t n_blocks, int64_t block) {
#define COPY_EACH(size) \
  if (block == (size)) copy_each(to, to_stride, from, row_stride, stride, n_rows, n_blocks, (size));
  COPY_EACH(1)
  COPY_EACH(2)
  COPY_EACH(4)
  COPY_EACH(8)
  COPY_EACH(16)
}

/* Returns whether a tile's rows evict each other from the caches: a buffer takes them first. Rows
 * of wide blocks are few enough. */
static int are_aliased(int64_t to_stride, int64_t block) {
  const int64_t rest = llabs(to_stride) / block % ALIASED;
  return block < 8 && (rest < 4 || rest > ALIASED - 4);
}

void cuplug__move_tiles(char *to, int64_t to_stride, const char *from, int64_t row_stride,
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
    const int64_t column = cuplug__min(i, n_blocks - least);
    const int64_t width = cuplug__min(TILE_ROW, n_blocks - column);
    for (int64_t r = 0; r < n_rows; r += tile_rows) {
      const int64_t row = cuplug__min(r, n_rows - least);
      const int64_t height = cuplug__min(tile_rows, n_rows - row);
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
