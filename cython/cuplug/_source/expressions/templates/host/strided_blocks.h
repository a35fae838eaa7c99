/* SPDX-License-Identifier: Apache-2.0 */
/* For reductions on the host: arrays of any strides as blocks that lie together. After code.h.
 */

/* Elements; below, threads cost more than they save. Less than in the stock operators: an
 * expression may take much longer for each. */
#define CUPLUG_PARALLEL_FROM 65536
#define CUPLUG_GRAIN 8192 /* elements of a thread's range: a multiple of all blocks */

/* Whether array k lies in the order in which the loop meets its elements, without gaps. */
static inline int cuplug_is_flat(const cuplug_loop *loop, unsigned k) {
  int64_t expected = 1;
  for (int d = loop->ndim - 1; d >= 0; d--) {
    if (loop->strides[d][k] != expected) return 0;
    expected *= loop->sizes[d];
  }
  return 1;
}

/* Asks for n elements that are read next, which need not be of the array. Where conditions choose,
 * compilers read memory through masks, and Zen 5 does not foresee such reads: it is twice as fast
 * when it is asked. Zen 4 foresees them, and is slowed by up to a half. What tells them apart for
 * compilers of any age is an instruction that Zen 5 has. */
#ifdef __AVX512VP2INTERSECT__
#define CUPLUG_ASK_FOR(from, n)                                        \
  for (size_t at_ = 0; at_ < (size_t)(n) * sizeof(*(from)); at_ += 64) \
  __builtin_prefetch((const void *)((uintptr_t)(from) + at_))
enum { ASKS = 1 };
#else
enum { ASKS = 0 };
#define CUPLUG_ASK_FOR(from, n) (void)(from)
#endif

/* Where a walk along array k stands: the indices, and the place in elements. */
typedef struct cuplug_walk {
  int64_t at[64];
  int64_t offset;
} cuplug_walk;

static void cuplug_walk_to(cuplug_walk *walk, const cuplug_loop *loop, unsigned k, int64_t n) {
  walk->offset = 0;
  for (int d = loop->ndim - 1; d >= 0; d--) {
    const int64_t rest = n / loop->sizes[d];
    walk->at[d] = n - rest * loop->sizes[d];
    walk->offset += walk->at[d] * loop->strides[d][k];
    n = rest;
  }
}

/* Where element n lies in array k. */
static inline int64_t cuplug_offset(const cuplug_loop *loop, unsigned k, int64_t n) {
  int64_t offset = 0;
  for (int d = loop->ndim - 1; d >= 0; d--) {
    const int64_t rest = d ? n / loop->sizes[d] : 0;
    offset += (n - rest * loop->sizes[d]) * loop->strides[d][k];
    n = rest;
  }
  return offset;
}

/* Onward by n elements, to the end of the last dimension at most. */
static inline void cuplug_walk_on(cuplug_walk *walk, const cuplug_loop *loop, unsigned k,
                                  int64_t n) {
  int d = loop->ndim - 1;
  walk->at[d] += n;
  walk->offset += n * loop->strides[d][k];
  for (; d > 0 && walk->at[d] == loop->sizes[d]; d--) {
    walk->at[d] = 0;
    walk->at[d - 1]++;
    walk->offset += loop->strides[d - 1][k] - loop->sizes[d] * loop->strides[d][k];
  }
}

/* m elements, each at a distance of `stride` from the one before; steps that the compiler knows
 * become vector instructions. */
#define CUPLUG_GATHER(stride) \
  for (int64_t j = 0; j < m; j++) block[done + j] = from[j * (stride)];

/* Of each type: that of its elements in blocks, n elements that lie together, 16 or 1 of them for
 * which registers have room, and elements begin to begin + n of array k, which are brought into a
 * block. */
#define CUPLUG_DEFINE_MOVES(T)                                                                    \
  typedef T cuplug_held_##T;                                                                      \
  enum { CUPLUG_IS_CONVERTED_##T = 0 };                                                           \
  static inline const T *cuplug_beside_##T(const cuplug_loop_call *call, T *block, const T *from, \
                                           int64_t n) {                                           \
    (void)call, (void)block, (void)n;                                                             \
    return from;                                                                                  \
  }                                                                                               \
  static inline const T *cuplug_near_##T(T *room, const T *from, int n) {                         \
    (void)room, (void)n;                                                                          \
    return from;                                                                                  \
  }                                                                                               \
  static __attribute__((unused))                                                                  \
  const T *cuplug_gather_##T(const cuplug_loop_call *call, T *block, const T *data,               \
                             const cuplug_loop *loop, unsigned k, int64_t begin, int64_t n) {     \
    cuplug_walk walk;                                                                             \
    const int last = loop->ndim - 1;                                                              \
    (void)call;                                                                                   \
    cuplug_walk_to(&walk, loop, k, begin);                                                        \
    if (last < 0) *block = *data;                                                                 \
    for (int64_t done = 0, m; last >= 0 && done < n; done += m) {                                 \
      const T *from = data + walk.offset;                                                         \
      const int64_t stride = loop->strides[last][k];                                              \
      m = cuplug_min_i64(n - done, loop->sizes[last] - walk.at[last]);                            \
      if (stride == 1)                                                                            \
        memcpy(block + done, from, (size_t)m * sizeof(T));                                        \
      else if (stride == 2)                                                                       \
        CUPLUG_GATHER(2)                                                                          \
      else if (stride == 3)                                                                       \
        CUPLUG_GATHER(3)                                                                          \
      else if (stride == 4)                                                                       \
        CUPLUG_GATHER(4)                                                                          \
      else                                                                                        \
        CUPLUG_GATHER(stride)                                                                     \
      cuplug_walk_on(&walk, loop, k, m);                                                          \
    }                                                                                             \
    return block;                                                                                 \
  }
CUPLUG_DEFINE_MOVES(uint8_t)
CUPLUG_DEFINE_MOVES(int8_t)
CUPLUG_DEFINE_MOVES(uint16_t)
CUPLUG_DEFINE_MOVES(int16_t)
CUPLUG_DEFINE_MOVES(uint32_t)
CUPLUG_DEFINE_MOVES(int32_t)
CUPLUG_DEFINE_MOVES(uint64_t)
CUPLUG_DEFINE_MOVES(int64_t)
CUPLUG_DEFINE_MOVES(float)
CUPLUG_DEFINE_MOVES(double)
CUPLUG_DEFINE_MOVES(complex64_t)
CUPLUG_DEFINE_MOVES(complex128_t)

/* Halves are floats in blocks: compilers know no vector instruction for them by themselves. */
typedef uint16_t cuplug_half;
typedef float cuplug_held_cuplug_half;
enum { CUPLUG_IS_CONVERTED_cuplug_half = 1, FEW_HALVES = 32 };
static __attribute__((unused)) const float *cuplug_beside_cuplug_half(const cuplug_loop_call *call,
                                                                      float *block,
                                                                      const cuplug_half *from,
                                                                      int64_t n) {
  if (n >= FEW_HALVES)
    call->load_float16(block, from, (unsigned long)n);
  else
    for (int64_t at = 0; at < n; at++) block[at] = cuplug_float16_load(from[at]);
  return block;
}
static inline const float *cuplug_near_cuplug_half(float *room, const cuplug_half *from, int n) {
  if (n == 16)
    cuplug_float16_load_16(room, from);
  else
    *room = cuplug_float16_load(*from);
  return room;
}
static __attribute__((unused)) const float *
cuplug_gather_cuplug_half(const cuplug_loop_call *call, float *block, const cuplug_half *data,
                          const cuplug_loop *loop, unsigned k, int64_t begin, int64_t n) {
  cuplug_half halves[n];
  cuplug_gather_uint16_t(call, halves, data, loop, k, begin, n);
  return cuplug_beside_cuplug_half(call, block, halves, n);
}
