/* sanitizers: address,undefined */
/* SPDX-License-Identifier: Apache-2.0 */
/* Loops and their division: divisors, the walk for a layout, packs of each line. */
#include "check.h"

#include <cuplug/walk.h>
#include <stdlib.h>

static uint64_t next(void) { /* Knuth's MMIX generator */
  static uint64_t state = 1;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 1;
}

static uint64_t divide(uint64_t n, const cuplug_divisor *by) { /* as kernels do */
  __extension__ typedef unsigned __int128 uint128;
  if (!by->wide_magic) return (uint32_t)(((n * by->magic) >> 32) + n) >> by->shift;
  return ((uint64_t)(((uint128)n * by->wide_magic) >> 64) + n) >> by->shift;
}

static void check_divisors(void) {
  for (int k = 0; k < 200000; k++) {
    const int bits = (int)(next() % 62) + 1;
    const uint64_t size = next() >> (63 - bits) ? next() >> (63 - bits) : 1;
    const cuplug_divisor wide = cuplug__divisor((long long)(size ? size : 1), 1);
    const uint64_t n = next() >> next() % 62, by = (uint64_t)wide.size;
    const uint64_t near = n / by * by;
    CHECK(divide(n, &wide) == n / by && divide(near, &wide) == near / by);
    CHECK(!near || divide(near - 1, &wide) == (near - 1) / by);
    if (by >> 31) continue;
    const cuplug_divisor narrow = cuplug__divisor((long long)by, 0);
    const uint64_t few = n & INT32_MAX, multiple = few / by * by;
    CHECK(divide(few, &narrow) == few / by && divide(multiple, &narrow) == multiple / by);
    CHECK(!multiple || divide(multiple - 1, &narrow) == (multiple - 1) / by);
  }
}

/* A walk of an input and an output of float32, whose strides and sizes are given; two dimensions.
 */
static long long strides[65][CUPLUG_MAX_LOOP_ARRAYS];
static cuplug_loop loop;
static cuplug_loop_split cut;
static char memory[64] __attribute__((aligned(64)));

static cuplug_walk_kind walk(const int64_t sizes[2], const int64_t in[2], const int64_t out[2],
                             int64_t in_at, int64_t out_at) {
  cuplug_tensor x[2] = {{.data = memory + 4 * in_at, .ndim = 2, .dtype = {2, 32, 1}},
                        {.data = memory + 4 * out_at, .ndim = 2, .dtype = {2, 32, 1}}};
  x[0].shape = x[1].shape = (int64_t *)sizes;
  x[0].strides = (int64_t *)in;
  x[1].strides = (int64_t *)out;
  cuplug__loop_start(&loop, 2, strides);
  for (int d = 0; d < 2; d++) cuplug__loop_add(&loop, x, d, 0);
  cuplug__loop_collapse(&loop, 1);
  return cuplug__walk(&loop, x, 2, 4, 64, &cut);
}

#define S(a, b) ((const int64_t[2]){a, b})

static void check_walks(void) {
  CHECK(walk(S(6, 10), S(10, 1), NULL, 0, 4) == CUPLUG_WALK_PACKS && cut.n_items == 15);
  CHECK(walk(S(6, 10), S(1, 6), S(1, 6), 0, 4) == CUPLUG_WALK_PACKS && loop.ndim == 0);
  /* misaligned: packs begin at the output's */
  CHECK(walk(S(6, 10), NULL, NULL, 1, 0) == CUPLUG_WALK_LINES && cut.n_items == 15 && !cut.lead);
  CHECK(walk(S(6, 10), NULL, NULL, 1, 3) == CUPLUG_WALK_LINES && cut.n_items == 16);
  CHECK(cut.lead == 3 && cut.line == 60 && !cut.items.size && cut.near == 3);
  /* too few for a pack: nothing is loaded at once */
  CHECK(walk(S(1, 3), NULL, NULL, 1, 3) == CUPLUG_WALK_PACKS && cut.n_items == 0);
  /* rows of a matrix: one line if the output has no gaps, else a line for each */
  CHECK(walk(S(6, 10), S(12, 1), NULL, 0, 0) == CUPLUG_WALK_LINES && cut.line == 60);
  CHECK(walk(S(6, 10), S(12, 1), S(13, 1), 0, 0) == CUPLUG_WALK_LINES && cut.line == 10);
  CHECK(cut.items.size == 4 && cut.n_items == 24);
  CHECK(walk(S(6, 10), S(12, 0), NULL, 0, 0) == CUPLUG_WALK_LINES && cut.still == 1);
  /* across: the input's dimension becomes the last but one; sizes below 16 get no tiles */
  CHECK(walk(S(100, 70), S(1, 100), NULL, 0, 0) == CUPLUG_WALK_TILES && cut.across == 1);
  CHECK(cut.n_items == 4 && cut.items.size == 2 && cut.rows.size == 2);
  CHECK(walk(S(100, 70), S(70, 1), S(1, 100), 0, 0) == CUPLUG_WALK_TILES);
  CHECK(strides[1][1] == 1 && strides[0][0] == 1);
  CHECK(walk(S(15, 70), S(1, 15), NULL, 0, 0) == CUPLUG_WALK_LINES);
  CHECK(walk(S(70, 15), S(1, 70), NULL, 0, 0) == CUPLUG_WALK_LINES);
}

int main(void) {
  check_divisors();
  check_walks();
  return n_failed != 0;
}
