/* SPDX-License-Identifier: Apache-2.0 */
/* For entries on the host: blocks of float16 and bfloat16 as float32 and back, by the CPU's own
 * instructions if it has them, with the same bits as <cuplug/half.h>. Signaling NaNs become quiet
 * ones. */
#ifndef CUPLUG_HALVES_H
#define CUPLUG_HALVES_H

#include <cuplug/half.h>
#include <stddef.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>
#define CUPLUG__AVX2 __attribute__((target("avx2,f16c")))
#define CUPLUG__AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,f16c")))

/* 1: neither, 2: AVX2 and F16C, 3: AVX-512 too. Cached, because virtual machines answer slowly. */
static inline int cuplug__halves_level(void) {
  static int known;
  unsigned a, b, c = 0, d;
  int level = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (level) return level;
  level = 1;
  if (__builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C)
    level = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") ? 3 : 2;
  __atomic_store_n(&known, level, __ATOMIC_RELAXED);
  return level;
}

/* Blocks of `step` elements by a function of these, and the rest one by one. */
#define CUPLUG__DEFINE_HALVES(name, target, to_type, from_type, step, vector, single) \
  target static inline void name(to_type *to, const from_type *from, size_t n) {      \
    size_t k = 0;                                                                     \
    for (; k + step <= n; k += step) vector(to + k, from + k);                        \
    for (; k < n; k++) to[k] = single(from[k]);                                       \
  }

CUPLUG__AVX2 static inline void cuplug__load_8(float *to, const uint16_t *from) {
  const __m128i x = _mm_loadu_si128((const __m128i *)(const void *)from);
  _mm256_storeu_ps(to, _mm256_cvtph_ps(x));
}
CUPLUG__AVX2 static inline void cuplug__store_8(uint16_t *to, const float *from) {
  const __m128i x = _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT);
  _mm_storeu_si128((__m128i *)(void *)to, x);
}
CUPLUG__AVX512 static inline void cuplug__load_16(float *to, const uint16_t *from) {
  const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)from);
  _mm512_storeu_ps(to, _mm512_cvtph_ps(x));
}
CUPLUG__AVX512 static inline void cuplug__store_16(uint16_t *to, const float *from) {
  const __m256i x = _mm512_cvtps_ph(_mm512_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT);
  _mm256_storeu_si256((__m256i *)(void *)to, x);
}
CUPLUG__AVX2 static inline float cuplug__load_1(uint16_t x) { return _cvtsh_ss(x); }
CUPLUG__AVX2 static inline uint16_t cuplug__store_1(float x) {
  return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT);
}

CUPLUG__AVX2 static inline void cuplug__bfloat16_load_8(float *to, const uint16_t *from) {
  const __m128i x = _mm_loadu_si128((const __m128i *)(const void *)from);
  const __m256i wide = _mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16);
  _mm256_storeu_ps(to, _mm256_castsi256_ps(wide));
}
CUPLUG__AVX512 static inline void cuplug__bfloat16_load_16(float *to, const uint16_t *from) {
  const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)from);
  const __m512i wide = _mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16);
  _mm512_storeu_ps(to, _mm512_castsi512_ps(wide));
}

/* In the lower halves of 32 bits. */
CUPLUG__AVX2 static inline __m256i cuplug__bfloat16_bits(const float *from) {
  const __m256 x = _mm256_loadu_ps(from);
  const __m256i bits = _mm256_castps_si256(x), high = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, half), 16);
  const __m256i quiet_nan = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return _mm256_blendv_epi8(rounded, quiet_nan, is_nan);
}
CUPLUG__AVX2 static inline void cuplug__bfloat16_store_16(uint16_t *to, const float *from) {
  const __m256i low = cuplug__bfloat16_bits(from), high = cuplug__bfloat16_bits(from + 8);
  const __m256i packed = _mm256_packus_epi32(low, high); /* within each 128 bits */
  _mm256_storeu_si256((__m256i *)(void *)to, _mm256_permute4x64_epi64(packed, 0xd8));
}
CUPLUG__AVX512 static inline void cuplug__bfloat16_store_512(uint16_t *to, const float *from) {
  const __m512 x = _mm512_loadu_ps(from);
  const __m512i bits = _mm512_castps_si512(x), high = _mm512_srli_epi32(bits, 16);
  const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
  const __m512i half = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
  const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, half), 16);
  const __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  const __m512i all = _mm512_mask_or_epi32(rounded, is_nan, high, _mm512_set1_epi32(0x40));
  _mm256_storeu_si256((__m256i *)(void *)to, _mm512_cvtepi32_epi16(all));
}

/* The last ones, fewer than 16, as 16: a load soon after partial stores would stall. */
CUPLUG__AVX512 static inline void cuplug__load_rest(float *to, const uint16_t *from, size_t n) {
  const __m256i x = _mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1), from);
  _mm512_storeu_ps(to, _mm512_cvtph_ps(x));
}

CUPLUG__DEFINE_HALVES(cuplug__float16_load_avx2, CUPLUG__AVX2, float, uint16_t, 8, cuplug__load_8,
                      cuplug__load_1)
CUPLUG__DEFINE_HALVES(cuplug__float16_load_avx512, CUPLUG__AVX512, float, uint16_t, 16,
                      cuplug__load_16, cuplug__load_1)
CUPLUG__DEFINE_HALVES(cuplug__float16_store_avx2, CUPLUG__AVX2, uint16_t, float, 8, cuplug__store_8,
                      cuplug__store_1)
CUPLUG__DEFINE_HALVES(cuplug__float16_store_avx512, CUPLUG__AVX512, uint16_t, float, 16,
                      cuplug__store_16, cuplug__store_1)
CUPLUG__DEFINE_HALVES(cuplug__bfloat16_load_avx2, CUPLUG__AVX2, float, uint16_t, 8,
                      cuplug__bfloat16_load_8, cuplug_bfloat16_load)
CUPLUG__DEFINE_HALVES(cuplug__bfloat16_load_avx512, CUPLUG__AVX512, float, uint16_t, 16,
                      cuplug__bfloat16_load_16, cuplug_bfloat16_load)
CUPLUG__DEFINE_HALVES(cuplug__bfloat16_store_avx2, CUPLUG__AVX2, uint16_t, float, 16,
                      cuplug__bfloat16_store_16, cuplug_bfloat16_store)
CUPLUG__DEFINE_HALVES(cuplug__bfloat16_store_avx512, CUPLUG__AVX512, uint16_t, float, 16,
                      cuplug__bfloat16_store_512, cuplug_bfloat16_store)
#define CUPLUG__HALVES(name, to, from, n) \
  switch (cuplug__halves_level()) {       \
  case 3:                                 \
    name##_avx512(to, from, n);           \
    return;                               \
  case 2:                                 \
    name##_avx2(to, from, n);             \
    return;                               \
  }
#else
#define CUPLUG__HALVES(name, to, from, n)
#endif

/** The values of n numbers of float16, as float32. */
static inline void cuplug_float16_load_block(float *to, const uint16_t *from, size_t n) {
  CUPLUG__HALVES(cuplug__float16_load, to, from, n)
  for (size_t k = 0; k < n; k++) to[k] = cuplug_float16_load(from[k]);
}

/** The same where `to` has room for a multiple of 16. */
static inline void cuplug_float16_load_rounded(float *to, const uint16_t *from, size_t n) {
  const size_t rest = n % 16;
  cuplug_float16_load_block(to, from, n - rest);
#if defined(CUPLUG__AVX512)
  if (rest && cuplug__halves_level() == 3) {
    cuplug__load_rest(to + n - rest, from + n - rest, rest);
    return;
  }
#endif
  cuplug_float16_load_block(to + n - rest, from + n - rest, rest);
}

/** Values as n float16 numbers, rounded to nearest. */
static inline void cuplug_float16_store_block(uint16_t *to, const float *from, size_t n) {
  CUPLUG__HALVES(cuplug__float16_store, to, from, n)
  for (size_t k = 0; k < n; k++) to[k] = cuplug_float16_store(from[k]);
}

/** The values of n numbers of bfloat16, as float32. */
static inline void cuplug_bfloat16_load_block(float *to, const uint16_t *from, size_t n) {
  CUPLUG__HALVES(cuplug__bfloat16_load, to, from, n)
  for (size_t k = 0; k < n; k++) to[k] = cuplug_bfloat16_load(from[k]);
}

/** Values as n bfloat16 numbers, rounded to nearest. */
static inline void cuplug_bfloat16_store_block(uint16_t *to, const float *from, size_t n) {
  CUPLUG__HALVES(cuplug__bfloat16_store, to, from, n)
  for (size_t k = 0; k < n; k++) to[k] = cuplug_bfloat16_store(from[k]);
}

#endif
