/* SPDX-License-Identifier: Apache-2.0 */
/* Rows on the host, one after the other. Requires these definitions:
 *
 *   CUPLUG_EACH_INPUT(DO)    DO(number of the array, name, type in memory, type in blocks, kind)
 *   CUPLUG_EACH_ALONG(DO)    the same for outputs that have elements along rows
 *   BLOCK, LANES             elements of a block, and values of an accumulator
 *   N_ARRAYS, BYTES          the number of arrays, and the bytes of an element of each
 *   HELD_BYTES, KEPT_BYTES   bytes of an element of all inputs in blocks, and of kept values
 *   FIXED                    a bit for each input that has one element for each row
 *
 * After this file, `cuplug_row` computes one row, phase after phase, and rows_loop.h all rows. A
 * phase iterates over blocks of the row, which is in the closest caches after the first phase. */
#define cuplug_row_exp exp
#define CUPLUG_PLACE(k, name, stored, held, kind) const held *name;
#define CUPLUG_OUT(k, name, stored, held, kind) held *name;
#define CUPLUG_BLOCK(k, name, stored, held, kind) held name[BLOCK] __attribute__((aligned(64)));
typedef struct cuplug_places {
  CUPLUG_EACH_INPUT(CUPLUG_PLACE)
} cuplug_places;
typedef struct cuplug_outs {
  char none;
  CUPLUG_EACH_ALONG(CUPLUG_OUT)
} cuplug_outs;
typedef struct cuplug_room {
  char none;
  CUPLUG_EACH_ALONG(CUPLUG_BLOCK)
} cuplug_room;

/* The number of elements in the memory for a row. */
static inline int64_t cuplug_room_of(int64_t n) { return (n + 15) / 16 * 16; }

typedef struct cuplug_row_call {
  cuplug_numbers given;
  int64_t n;
  const long long *steps;       /* of each array along the row, in elements */
  char *data[N_ARRAYS];         /* the start of the row */
  cuplug_places places;         /* inputs: in the array, or in the row's memory */
  const char *before[N_ARRAYS]; /* the arrays whose elements that memory holds */
  cuplug_room *room;
  char *kept; /* memory for values that later phases use */
} cuplug_row_call;

/* ---- Elements to blocks, and back ------------------------------------------------------------ */

#define CUPLUG_BRING_same(to, from, step, m) \
  for (int64_t at = 0; at < (m); at++) (to)[at] = (from)[at * (step)];
#define CUPLUG_SEND_same(to, step, from, m) \
  for (int64_t at = 0; at < (m); at++) (to)[at * (step)] = (from)[at];
#define CUPLUG_HALVES(type)                                                                   \
  static void cuplug_bring_##type(float *to, const uint16_t *from, int64_t step, int64_t m) { \
    int64_t at = 0;                                                                           \
    for (; step == 1 && at + 16 <= m; at += 16) cuplug_##type##_load_16(to + at, from + at);  \
    for (; at < m; at++) to[at] = cuplug_##type##_load(from[at * step]);                      \
  }                                                                                           \
  static __attribute__((unused)) void cuplug_send_##type(uint16_t *to, int64_t step,          \
                                                         const float *from, int64_t m) {      \
    int64_t at = 0;                                                                           \
    for (; step == 1 && at + 16 <= m; at += 16) cuplug_##type##_store_16(to + at, from + at); \
    for (; at < m; at++) to[at * step] = cuplug_##type##_store(from[at]);                     \
  }
#ifdef CUPLUG_HAS_FLOAT16
CUPLUG_HALVES(float16)
#endif
#ifdef CUPLUG_HAS_BFLOAT16
CUPLUG_HALVES(bfloat16)
#endif
#define CUPLUG_BRING_float16 cuplug_bring_float16
#define CUPLUG_SEND_float16 cuplug_send_float16
#define CUPLUG_BRING_bfloat16 cuplug_bring_bfloat16
#define CUPLUG_SEND_bfloat16 cuplug_send_bfloat16
enum { CUPLUG_IS_same = 1, CUPLUG_IS_float16 = 0, CUPLUG_IS_bfloat16 = 0 };

/* Where m elements of the outputs are stored, and the copies from there. */
static __attribute__((unused)) cuplug_outs cuplug_outs_at(const cuplug_row_call *row,
                                                          int64_t begin) {
  cuplug_outs o;
  o.none = 0;
#define CUPLUG_OUT_AT(k, name, stored, held, kind)                                           \
  o.name = CUPLUG_IS_##kind && row->steps[k] == 1 ? (void *)((stored *)row->data[k] + begin) \
                                                  : (void *)row->room->name;
  CUPLUG_EACH_ALONG(CUPLUG_OUT_AT)
#undef CUPLUG_OUT_AT
  return o;
}
static __attribute__((unused)) void cuplug_store_outs(const cuplug_row_call *row, int64_t begin,
                                                      int64_t m) {
#define CUPLUG_STORE_AT(k, name, stored, held, kind)                   \
  if (!CUPLUG_IS_##kind || row->steps[k] != 1) {                       \
    stored *const to = (stored *)row->data[k] + begin * row->steps[k]; \
    CUPLUG_SEND_##kind(to, row->steps[k], row->room->name, m);         \
  }
  CUPLUG_EACH_ALONG(CUPLUG_STORE_AT)
#undef CUPLUG_STORE_AT
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

#define CUPLUG_FILL(lanes, value) \
  CUPLUG_SIMD                     \
  for (int64_t lane = 0; lane < LANES; lane++) lanes[lane] = value;

/* Runs code for each of m elements: number `at` of the block, `lane` of the accumulators. */
#define CUPLUG_OVER_BLOCK(...)                          \
  for (int64_t from = 0; from < m; from += LANES) {     \
    if (from + LANES <= m) {                            \
      CUPLUG_SIMD                                       \
      for (int64_t lane = 0; lane < LANES; lane++) {    \
        const int64_t at = from + lane;                 \
        __VA_ARGS__                                     \
      }                                                 \
    } else {                                            \
      CUPLUG_SIMD                                       \
      for (int64_t lane = 0; lane < m - from; lane++) { \
        const int64_t at = from + lane;                 \
        __VA_ARGS__                                     \
      }                                                 \
    }                                                   \
  }
#define CUPLUG_OVER_ALL(...)           \
  CUPLUG_SIMD                          \
  for (int64_t at = 0; at < m; at++) { \
    __VA_ARGS__                        \
  }

/* At the end of a block, combines its lanes with the row's, if it has several blocks. Sums of sums
 * have smaller errors than long sums. */
#define CUPLUG_END_BLOCK(name, identity)                                              \
  if (n > BLOCK) {                                                                    \
    CUPLUG_SIMD                                                                       \
    for (int64_t lane = 0; lane < LANES; lane++) {                                    \
      row_##name[lane] =                                                              \
          begin ? cuplug_put_##name(row_##name[lane], name##_[lane]) : name##_[lane]; \
      name##_[lane] = identity;                                                       \
    }                                                                                 \
  }

/* Combines the lanes, in halves. For short rows, the first ones hold all values. */
#define CUPLUG_HALF_OF_LANES(name, half)                                \
  if (n > half) {                                                       \
    CUPLUG_SIMD_ONCE                                                    \
    for (int64_t lane = 0; lane < half; lane++)                         \
      lanes[lane] = cuplug_put_##name(lanes[lane], lanes[lane + half]); \
  }
#define CUPLUG_FOLDED(name, type)                         \
  ({                                                      \
    type *const lanes = n > BLOCK ? row_##name : name##_; \
    CUPLUG_HALF_OF_LANES(name, 32)                        \
    CUPLUG_HALF_OF_LANES(name, 16)                        \
    CUPLUG_HALF_OF_LANES(name, 8)                         \
    CUPLUG_HALF_OF_LANES(name, 4)                         \
    CUPLUG_HALF_OF_LANES(name, 2)                         \
    CUPLUG_HALF_OF_LANES(name, 1)                         \
    lanes[0];                                             \
  })
_Static_assert(LANES == 64, "CUPLUG_FOLDED begins with their half");
