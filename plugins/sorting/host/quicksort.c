/* SPDX-License-Identifier: Apache-2.0 */
#include "sorting/host/radix.h"

#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>

/* Masks of 32 lanes: those whose number has a given bit. */
#define LANES_WITH(bit)       \
  ((bit) == 1   ? 0xaaaaaaaau \
   : (bit) == 2 ? 0xccccccccu \
   : (bit) == 4 ? 0xf0f0f0f0u \
   : (bit) == 8 ? 0xff00ff00u \
                : 0xffff0000u)
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
#define SHUFFLED(v, distance)                           \
  ((distance) == 1   ? _mm512_shuffle_epi32(v, 0xb1)    \
   : (distance) == 2 ? _mm512_shuffle_epi32(v, 0x4e)    \
   : (distance) == 3 ? _mm512_shuffle_epi32(v, 0x1b)    \
   : (distance) == 4 ? _mm512_shuffle_i64x2(v, v, 0xb1) \
   : (distance) == 8 ? _mm512_shuffle_i64x2(v, v, 0x4e) \
                     : _mm512_permutexvar_epi32(        \
                           _mm512_xor_si512(NUMBERS, _mm512_set1_epi32((int)(distance))), v))
#define CHOSEN(a, b, bit) _mm512_mask_blend_epi32((__mmask16)LANES_WITH(bit), a, b)
#define EXCHANGED(a, b, bit) _mm512_mask_max_epu32(LEAST(a, b), (__mmask16)LANES_WITH(bit), a, b)
#define BELOW(v, pivot) _mm512_cmplt_epu32_mask(v, pivot)
#define COUNT(below) __builtin_popcount(below)
/* Stores of packed vectors. Instructions that pack while they store are slow on AMD's CPUs. */
#define STORE_PARTS(begin, end, v, below)                                                          \
  STORE(begin, _mm512_maskz_compress_epi32((__mmask16)(below), v));                                \
  STORE_SOME((end) - (LANES - COUNT(below)), _mm512_maskz_compress_epi32((__mmask16) ~(below), v), \
             LANES - COUNT(below))
#include "sorting/host/quicksort_code.h"

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
#define SHUFFLED(v, distance)                           \
  ((distance) == 1   ? _mm512_shuffle_epi32(v, 0x4e)    \
   : (distance) == 2 ? _mm512_shuffle_i64x2(v, v, 0xb1) \
   : (distance) == 3 ? _mm512_permutex_epi64(v, 0x1b)   \
   : (distance) == 4                                    \
       ? _mm512_shuffle_i64x2(v, v, 0x4e)               \
       : _mm512_permutexvar_epi64(_mm512_xor_si512(NUMBERS64, _mm512_set1_epi64(distance)), v))
#define CHOSEN(a, b, bit) _mm512_mask_blend_epi64((__mmask8)LANES_WITH(bit), a, b)
#define EXCHANGED(a, b, bit) _mm512_mask_max_epu64(LEAST(a, b), (__mmask8)LANES_WITH(bit), a, b)
#define BELOW(v, pivot) _mm512_cmplt_epu64_mask(v, pivot)
#define COUNT(below) __builtin_popcount(below)
#define STORE_PARTS(begin, end, v, below)                                                         \
  STORE(begin, _mm512_maskz_compress_epi64((__mmask8)(below), v));                                \
  STORE_SOME((end) - (LANES - COUNT(below)), _mm512_maskz_compress_epi64((__mmask8) ~(below), v), \
             LANES - COUNT(below))
#include "sorting/host/quicksort_code.h"

/* Few keys of 2 bytes, and of 1. */
#define NUMBERS16                                                                                  \
  _mm512_set_epi16(31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, \
                   11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define LEAST16(a, b) _mm512_min_epu16(a, b)
#define GREATEST16(a, b) _mm512_max_epu16(a, b)
#define SHUFFLED16(v, distance)                          \
  ((distance) == 1    ? _mm512_rol_epi32(v, 16)          \
   : (distance) == 2  ? _mm512_shuffle_epi32(v, 0xb1)    \
   : (distance) == 4  ? _mm512_shuffle_epi32(v, 0x4e)    \
   : (distance) == 8  ? _mm512_shuffle_i64x2(v, v, 0xb1) \
   : (distance) == 16 ? _mm512_shuffle_i64x2(v, v, 0x4e) \
                      : _mm512_permutexvar_epi16(        \
                            _mm512_xor_si512(NUMBERS16, _mm512_set1_epi16((short)(distance))), v))
#define CHOSEN16(a, b, bit) _mm512_mask_blend_epi16(LANES_WITH(bit), a, b)
#define EXCHANGED16(a, b, bit) _mm512_mask_max_epu16(LEAST16(a, b), LANES_WITH(bit), a, b)

#define KEY uint16_t
#define VECTOR __m512i
#define LANES 32
#define NAMED(name) name##_32x16
#define LOAD(p) _mm512_loadu_si512(p)
#define STORE(p, v) _mm512_storeu_si512(p, v)
#define LOAD_SOME(p, n) _mm512_mask_loadu_epi16(_mm512_set1_epi16(-1), FIRST(n), p)
#define STORE_SOME(p, v, n) _mm512_mask_storeu_epi16(p, FIRST(n), v)
#define LEAST LEAST16
#define GREATEST GREATEST16
#define SHUFFLED SHUFFLED16
#define CHOSEN CHOSEN16
#define EXCHANGED EXCHANGED16
#include "sorting/host/quicksort_code.h"

#define KEY uint8_t
#define VECTOR __m512i
#define LANES 32
#define NAMED(name) name##_32x8as16
#define LOAD(p) _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)(p)))
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), _mm512_cvtepi16_epi8(v))
#define LOAD_SOME(p, n) \
  _mm512_cvtepu8_epi16(_mm256_mask_loadu_epi8(_mm256_set1_epi8(-1), FIRST(n), p))
#define STORE_SOME(p, v, n) _mm256_mask_storeu_epi8(p, FIRST(n), _mm512_cvtepi16_epi8(v))
#define LEAST LEAST16
#define GREATEST GREATEST16
#define SHUFFLED SHUFFLED16
#define CHOSEN CHOSEN16
#define EXCHANGED EXCHANGED16
#include "sorting/host/quicksort_code.h"

/* More keys of 2 bytes, in lanes of 4, which all CPUs can pack. */
#define KEY uint16_t
#define VECTOR __m512i
#define LANES 16
#define NAMED(name) name##_16x16as32
#define LOAD(p) _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(p)))
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), _mm512_cvtepi32_epi16(v))
#define ALL(key) _mm512_set1_epi32(key)
#define BELOW(v, pivot) _mm512_cmplt_epu32_mask(v, pivot)
#define COUNT(below) __builtin_popcount(below)
#define STORE_PARTS(begin, end, v, below)                                     \
  STORE(begin, _mm512_maskz_compress_epi32((__mmask16)(below), v));           \
  _mm256_mask_storeu_epi16(                                                   \
      (end) - (LANES - COUNT(below)), (__mmask16)FIRST(LANES - COUNT(below)), \
      _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32((__mmask16) ~(below), v)))
#define MOST_FEW 512
#define SORT_FEW(keys, n) sort_few_32x16(keys, n)
#include "sorting/host/quicksort_code.h"

#undef TARGET
#undef NUMBERS16
#undef LEAST16
#undef GREATEST16
#undef SHUFFLED16
#undef CHOSEN16
#undef EXCHANGED16

/* ---- AVX2 ------------------------------------------------------------------------------------ */

#define TARGET __attribute__((target("avx2,bmi2,popcnt")))

/* For each mask of 8 lanes: their numbers, then the other lanes' numbers, 4 bits each. */
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

#define STORE_PARTED(begin, end, v, below) \
  const VECTOR parted = PARTED(v, below);  \
  STORE(begin, parted);                    \
  STORE((end)-LANES, parted)

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
#define STORE_PARTS STORE_PARTED
#include "sorting/host/quicksort_code.h"

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
/* Two bits for each lane, which is moved as two lanes of 32 bits. */
#define BELOW(v, pivot) (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(LESS(v, pivot)))
#define COUNT(below) (__builtin_popcount(below) / 2)
#define STORE_PARTS STORE_PARTED
#include "sorting/host/quicksort_code.h"

/* Few keys of 2 bytes, and of 1. */
#define PLACES \
  _mm256_broadcastsi128_si256(_mm_set_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0))
#define SHUFFLED_HALVES(v, distance) \
  _mm256_shuffle_epi8(v, _mm256_xor_si256(PLACES, _mm256_set1_epi8(2 * ((distance)&7))))
#define SHUFFLED16(v, distance)                                                \
  ((distance)&8 ? _mm256_permute4x64_epi64(SHUFFLED_HALVES(v, distance), 0x4e) \
                : SHUFFLED_HALVES(v, distance))
#define NUMBERS16 _mm256_set_epi16(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define HAS_BIT16(bit) \
  _mm256_cmpeq_epi16(_mm256_and_si256(NUMBERS16, _mm256_set1_epi16(bit)), _mm256_set1_epi16(bit))
#define CHOSEN16(a, b, bit) _mm256_blendv_epi8(a, b, HAS_BIT16(bit))
#define LEAST16(a, b) _mm256_min_epu16(a, b)
#define GREATEST16(a, b) _mm256_max_epu16(a, b)
#define EXCHANGED16(a, b, bit) CHOSEN16(LEAST16(a, b), GREATEST16(a, b), bit)
#define LOAD8(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define STORE8(p, v) _mm_storeu_si128((__m128i *)(void *)(p), v)
#define PACKED16(v) \
  _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi16(v, v), 0x08))
#define PACKED32(v) \
  _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi32(v, v), 0x08))

TARGET static __m256i first_of(const void *from, int64_t n_bytes) {
  __m256i v = _mm256_set1_epi8(-1);
  memcpy(&v, from, (size_t)n_bytes);
  return v;
}

TARGET static void store_first(void *to, __m256i v, int64_t n_bytes) {
  memcpy(to, &v, (size_t)n_bytes);
}

#define KEY uint16_t
#define VECTOR __m256i
#define LANES 16
#define NAMED(name) name##_16x16
#define LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define LOAD_SOME(p, n) first_of(p, 2 * (n))
#define STORE_SOME(p, v, n) store_first(p, v, 2 * (n))
#define LEAST LEAST16
#define GREATEST GREATEST16
#define SHUFFLED SHUFFLED16
#define CHOSEN CHOSEN16
#define EXCHANGED EXCHANGED16
#include "sorting/host/quicksort_code.h"

#define KEY uint8_t
#define VECTOR __m256i
#define LANES 16
#define NAMED(name) name##_16x8as16
#define LOAD(p) _mm256_cvtepu8_epi16(LOAD8(p))
#define STORE(p, v) STORE8(p, PACKED16(v))
#define LOAD_SOME(p, n) _mm256_cvtepu8_epi16(_mm256_castsi256_si128(first_of(p, n)))
#define STORE_SOME(p, v, n) store_first(p, _mm256_castsi128_si256(PACKED16(v)), n)
#define LEAST LEAST16
#define GREATEST GREATEST16
#define SHUFFLED SHUFFLED16
#define CHOSEN CHOSEN16
#define EXCHANGED EXCHANGED16
#include "sorting/host/quicksort_code.h"

/* More keys of 2 bytes. */
#define KEY uint16_t
#define VECTOR __m256i
#define LANES 8
#define NAMED(name) name##_8x16as32
#define LOAD(p) _mm256_cvtepu16_epi32(LOAD8(p))
#define STORE(p, v) STORE8(p, PACKED32(v))
#define ALL(key) _mm256_set1_epi32(key)
#define BELOW(v, pivot) \
  (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(pivot, v)))
#define COUNT(below) __builtin_popcount(below)
#define STORE_PARTS STORE_PARTED
#define MOST_FEW 256
#define SORT_FEW(keys, n) sort_few_16x16(keys, n)
#include "sorting/host/quicksort_code.h"

static int has_avx512(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

static int has_avx2(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("popcnt");
}

#define SORT_BYTES(name)                                     \
  static void name##_any(void *keys, int64_t n, int depth) { \
    (void)depth;                                             \
    name(keys, n);                                           \
  }
SORT_BYTES(sort_few_32x8as16)
SORT_BYTES(sort_few_16x8as16)

/* For keys of 1, 2, 4 and 8 bytes. */
static const sorting_by_vectors by_512[] = {{sort_few_32x8as16_any, NULL, 512},
                                            {sort_16x16as32, split_16x16as32, INT64_MAX},
                                            {sort_16x32, split_16x32, INT64_MAX},
                                            {sort_8x64, split_8x64, INT64_MAX}};
static const sorting_by_vectors by_256[] = {{sort_few_16x8as16_any, NULL, 256},
                                            {sort_8x16as32, split_8x16as32, INT64_MAX},
                                            {sort_8x32, split_8x32, INT64_MAX},
                                            {sort_4x64, split_4x64, INT64_MAX}};

const sorting_by_vectors *sorting_by_vectors_of(int64_t n_bytes) {
  const int kind = __builtin_ctz((unsigned)n_bytes);
  if (has_avx512()) return &by_512[kind];
  return has_avx2() ? &by_256[kind] : NULL;
}

#else

const sorting_by_vectors *sorting_by_vectors_of(int64_t n_bytes) {
  (void)n_bytes;
  return NULL;
}

#endif
