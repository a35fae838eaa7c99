/* SPDX-License-Identifier: Apache-2.0 */
#include "sorting/radix.h"

#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>

/* Bits of the lanes of 16 whose number has a bit. */
#define LANES_WITH(bit) ((bit) == 1 ? 0xaaaa : (bit) == 2 ? 0xcccc : (bit) == 4 ? 0xf0f0 : 0xff00)
#define FIRST(n) ((1u << (n)) - 1)

/* ---- AVX-512 --------------------------------------------------------------------------------- */

#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")))

#define KEY uint32_t
#define VECTOR __m512i
#define LANES 16
#define NAMED(name) name##_16x32
#define LOAD(p) _mm512_loadu_si512(p)
#define STORE(p, v) _mm512_storeu_si512(p, v)
#define LOAD_SOME(p, n) _mm512_mask_loadu_epi32(_mm512_set1_epi32(-1), (__mmask16)FIRST(n), p)
#define STORE_SOME(p, v, n) _mm512_mask_storeu_epi32(p, (__mmask16)FIRST(n), v)
#define LEAST(a, b) _mm512_min_epu32(a, b)
#define GREATEST(a, b) _mm512_max_epu32(a, b)
#define ALL(key) _mm512_set1_epi32((int)(key))
#define NUMBERS _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define SHUFFLED(v, distance) \
  _mm512_permutexvar_epi32(_mm512_xor_si512(NUMBERS, _mm512_set1_epi32((int)(distance))), v)
#define CHOSEN(a, b, bit) _mm512_mask_blend_epi32((__mmask16)LANES_WITH(bit), a, b)
#define EXCHANGED(a, b, bit) _mm512_mask_max_epu32(LEAST(a, b), (__mmask16)LANES_WITH(bit), a, b)
#define BELOW(v, pivot) _mm512_cmplt_epu32_mask(v, pivot)
#define COUNT(below) __builtin_popcount(below)
/* Stores of packed vectors; instructions that pack on their way to memory are slow on AMD's. */
#define STORE_PARTS(begin, end, v, below)                                                          \
  STORE(begin, _mm512_maskz_compress_epi32((__mmask16)(below), v));                                \
  STORE_SOME((end) - (LANES - COUNT(below)), _mm512_maskz_compress_epi32((__mmask16) ~(below), v), \
             LANES - COUNT(below))
#include "sorting/quicksort_code.h"

#define KEY uint64_t
#define VECTOR __m512i
#define LANES 8
#define NAMED(name) name##_8x64
#define LOAD(p) _mm512_loadu_si512(p)
#define STORE(p, v) _mm512_storeu_si512(p, v)
#define LOAD_SOME(p, n) _mm512_mask_loadu_epi64(_mm512_set1_epi64(-1), (__mmask8)FIRST(n), p)
#define STORE_SOME(p, v, n) _mm512_mask_storeu_epi64(p, (__mmask8)FIRST(n), v)
#define LEAST(a, b) _mm512_min_epu64(a, b)
#define GREATEST(a, b) _mm512_max_epu64(a, b)
#define ALL(key) _mm512_set1_epi64((long long)(key))
#define NUMBERS64 _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0)
#define SHUFFLED(v, distance) \
  _mm512_permutexvar_epi64(_mm512_xor_si512(NUMBERS64, _mm512_set1_epi64(distance)), v)
#define CHOSEN(a, b, bit) _mm512_mask_blend_epi64((__mmask8)LANES_WITH(bit), a, b)
#define EXCHANGED(a, b, bit) _mm512_mask_max_epu64(LEAST(a, b), (__mmask8)LANES_WITH(bit), a, b)
#define BELOW(v, pivot) _mm512_cmplt_epu64_mask(v, pivot)
#define COUNT(below) __builtin_popcount(below)
#define STORE_PARTS(begin, end, v, below)                                                         \
  STORE(begin, _mm512_maskz_compress_epi64((__mmask8)(below), v));                                \
  STORE_SOME((end) - (LANES - COUNT(below)), _mm512_maskz_compress_epi64((__mmask8) ~(below), v), \
             LANES - COUNT(below))
#include "sorting/quicksort_code.h"

#undef TARGET

/* ---- AVX2 ------------------------------------------------------------------------------------ */

#define TARGET __attribute__((target("avx2,bmi2,popcnt")))

/* For each mask of 8 lanes: their numbers, then those of the others, 4 bits each. */
#define PLACE(m, lane)                                                                      \
  ((uint32_t)(lane) << 4 * ((m) >> (lane)&1 ? __builtin_popcount((m) & ((1 << (lane)) - 1)) \
                                            : __builtin_popcount((m) >> (lane)) + (lane)))
#define ORDER1(m)                                                                     \
  PLACE(m, 0) | PLACE(m, 1) | PLACE(m, 2) | PLACE(m, 3) | PLACE(m, 4) | PLACE(m, 5) | \
      PLACE(m, 6) | PLACE(m, 7)
#define ORDER4(m) ORDER1(m), ORDER1((m) + 1), ORDER1((m) + 2), ORDER1((m) + 3)
#define ORDER16(m) ORDER4(m), ORDER4((m) + 4), ORDER4((m) + 8), ORDER4((m) + 12)
#define ORDER64(m) ORDER16(m), ORDER16((m) + 16), ORDER16((m) + 32), ORDER16((m) + 48)
static const uint32_t ORDERS[] = {ORDER64(0), ORDER64(64), ORDER64(128), ORDER64(192)};

#define NUMBERS8 _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0)
#define SHIFTS8 _mm256_set_epi32(28, 24, 20, 16, 12, 8, 4, 0)
#define PARTED(v, below) \
  _mm256_permutevar8x32_epi32(v, _mm256_srlv_epi32(_mm256_set1_epi32((int)ORDERS[below]), SHIFTS8))

#define KEY uint32_t
#define VECTOR __m256i
#define LANES 8
#define NAMED(name) name##_8x32
#define LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define IS_FIRST(n) _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(n)), NUMBERS8)
#define LOAD_SOME(p, n)                                                               \
  _mm256_or_si256(_mm256_maskload_epi32((const int *)(const void *)(p), IS_FIRST(n)), \
                  _mm256_xor_si256(IS_FIRST(n), _mm256_set1_epi32(-1)))
#define STORE_SOME(p, v, n) _mm256_maskstore_epi32((int *)(void *)(p), IS_FIRST(n), v)
#define LEAST(a, b) _mm256_min_epu32(a, b)
#define GREATEST(a, b) _mm256_max_epu32(a, b)
#define ALL(key) _mm256_set1_epi32((int)(key))
#define SHUFFLED(v, distance) \
  _mm256_permutevar8x32_epi32(v, _mm256_xor_si256(NUMBERS8, _mm256_set1_epi32((int)(distance))))
#define HAS_BIT(bit) \
  _mm256_cmpgt_epi32(_mm256_and_si256(NUMBERS8, _mm256_set1_epi32(bit)), _mm256_setzero_si256())
#define CHOSEN(a, b, bit) _mm256_blendv_epi8(a, b, HAS_BIT(bit))
#define EXCHANGED(a, b, bit) CHOSEN(LEAST(a, b), GREATEST(a, b), bit)
#define BELOW(v, pivot)                                                                            \
  (~(unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(GREATEST(v, pivot), v))) & \
   0xff)
#define COUNT(below) __builtin_popcount(below)
#define STORE_PARTS(begin, end, v, below) \
  const VECTOR parted = PARTED(v, below); \
  STORE(begin, parted);                   \
  STORE((end)-LANES, parted)
#include "sorting/quicksort_code.h"

#define NUMBERS4 _mm256_set_epi64x(3, 2, 1, 0)
#define LESS(a, b)                                                       \
  _mm256_cmpgt_epi64(_mm256_xor_si256(b, _mm256_set1_epi64x(INT64_MIN)), \
                     _mm256_xor_si256(a, _mm256_set1_epi64x(INT64_MIN)))

#define KEY uint64_t
#define VECTOR __m256i
#define LANES 4
#define NAMED(name) name##_4x64
#define LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define IS_FIRST4(n) _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), NUMBERS4)
#define LOAD_SOME(p, n)                                                                      \
  _mm256_or_si256(_mm256_maskload_epi64((const long long *)(const void *)(p), IS_FIRST4(n)), \
                  _mm256_xor_si256(IS_FIRST4(n), _mm256_set1_epi32(-1)))
#define STORE_SOME(p, v, n) _mm256_maskstore_epi64((long long *)(void *)(p), IS_FIRST4(n), v)
#define LEAST(a, b) _mm256_blendv_epi8(b, a, LESS(a, b))
#define GREATEST(a, b) _mm256_blendv_epi8(a, b, LESS(a, b))
#define ALL(key) _mm256_set1_epi64x((long long)(key))
#define SHUFFLED(v, distance)  \
  _mm256_permutevar8x32_epi32( \
      v, _mm256_xor_si256(NUMBERS8, _mm256_set1_epi32((int)(2 * (distance)))))
#define HAS_BIT4(bit) \
  _mm256_cmpgt_epi64(_mm256_and_si256(NUMBERS4, _mm256_set1_epi64x(bit)), _mm256_setzero_si256())
#define CHOSEN(a, b, bit) _mm256_blendv_epi8(a, b, HAS_BIT4(bit))
#define EXCHANGED(a, b, bit) CHOSEN(LEAST(a, b), GREATEST(a, b), bit)
/* Two bits for each lane: it is moved as two of 32 bits. */
#define BELOW(v, pivot) (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(LESS(v, pivot)))
#define COUNT(below) (__builtin_popcount(below) / 2)
#define STORE_PARTS(begin, end, v, below) \
  const VECTOR parted = PARTED(v, below); \
  STORE(begin, parted);                   \
  STORE((end)-LANES, parted)
#include "sorting/quicksort_code.h"

static int has_avx512(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

static int has_avx2(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("popcnt");
}

const sorting_by_vectors *sorting_by_vectors_of(int64_t n_bytes) {
  static const sorting_by_vectors by_512[] = {{sort_16x32, split_16x32}, {sort_8x64, split_8x64}};
  static const sorting_by_vectors by_256[] = {{sort_8x32, split_8x32}, {sort_4x64, split_4x64}};
  if (has_avx512()) return &by_512[n_bytes == 8];
  return has_avx2() ? &by_256[n_bytes == 8] : NULL;
}

#else

const sorting_by_vectors *sorting_by_vectors_of(int64_t n_bytes) {
  (void)n_bytes;
  return NULL;
}

#endif
