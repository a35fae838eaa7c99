/* SPDX-License-Identifier: Apache-2.0 */
/* For reductions on the host: arrays with any strides as contiguous blocks. Included after code.h.
 */

/* Elements. Below this number, threads cost more time than they save. It is smaller than in the
 * stock operators, since an expression may take much longer for each element. */
#define CUPLUG_PARALLEL_FROM 65536
#define CUPLUG_GRAIN 8192 /* elements of a thread's range: a multiple of all blocks */

/* Returns whether array k is in the order of the loop, without gaps. */
static inline int cuplug_is_flat(const cuplug_loop *loop, unsigned k) {
  int64_t expected = 1;
  for (int d = loop->ndim - 1; d >= 0; d--) {
    if (loop->strides[d][k] != expected) return 0;
    expected *= loop->sizes[d];
  }
  return 1;
}

/* Prefetches n elements that are read next and may be outside of the array. If conditions select
 * values, compilers read memory through masks. Zen 5 does not prefetch such reads, and takes half
 * the time with explicit prefetches. Zen 4 does, and would be slowed by up to half. An instruction
 * of Zen 5 distinguishes the two for compilers of any age. */
#ifdef __AVX512VP2INTERSECT__
#define CUPLUG_ASK_FOR(from, n)                                        \
  for (size_t at_ = 0; at_ < (size_t)(n) * sizeof(*(from)); at_ += 64) \
  __builtin_prefetch((const void *)((uintptr_t)(from) + at_))
enum { ASKS = 1 };
#else
enum { ASKS = 0 };
#define CUPLUG_ASK_FOR(from, n) (void)(from)
#endif

/* A position in array k: the indices, and the offset in elements. */
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

/* The offset of element n in array k. */
static inline int64_t cuplug_offset(const cuplug_loop *loop, unsigned k, int64_t n) {
  int64_t offset = 0;
  for (int d = loop->ndim - 1; d >= 0; d--) {
    const int64_t rest = d ? n / loop->sizes[d] : 0;
    offset += (n - rest * loop->sizes[d]) * loop->strides[d][k];
    n = rest;
  }
  return offset;
}

/* Advances by n elements, at most to the end of the last dimension. */
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

/* m elements at distances of `stride`. If the compiler knows the stride, the loop is vectorized. */
#define CUPLUG_GATHER(stride) \
  for (int64_t j = 0; j < m; j++) block[done + j] = from[j * (stride)];

/* For each type: the type of its elements in blocks; n contiguous elements; 16 or 1 of them in
 * registers; and elements begin to begin + n of array k, gathered in a block. */
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

/* 16-bit floats are float in blocks: compilers do not use vector instructions for them. */
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
