/* SPDX-License-Identifier: Apache-2.0 */
/* For entries on the host: blocks of float16 and bfloat16 as float32 and back, by the CPU's own
 * instructions where it has them, with the same bits as <cuplug/half.h> gives. Signalling NaNs
 * become quiet ones. */
#ifndef CUPLUG_HALVES_H
#define CUPLUG_HALVES_H

#include <cuplug/half.h>
#include <stddef.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>
#define CUPLUG__HALVES_TARGET __attribute__((target("avx2,f16c")))

/* Kept, as virtual machines take long to answer cpuid. */
static inline int cuplug__has_f16c(void) {
  static int known; /* 1: no, 2: yes */
  unsigned a, b, c = 0, d;
  int is = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (!is) {
    is = __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C ? 2 : 1;
    __atomic_store_n(&known, is, __ATOMIC_RELAXED);
  }
  return is == 2;
}

CUPLUG__HALVES_TARGET static inline void cuplug__float16_load_f16c(float *to, const uint16_t *from,
                                                                   size_t n) {
  size_t k = 0;
  for (; k + 8 <= n; k += 8) {
    const __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(from + k));
    _mm256_storeu_ps(to + k, _mm256_cvtph_ps(x));
  }
  for (; k < n; k++) to[k] = _cvtsh_ss(from[k]);
}

CUPLUG__HALVES_TARGET static inline void cuplug__float16_store_f16c(uint16_t *to, const float *from,
                                                                    size_t n) {
  size_t k = 0;
  for (; k + 8 <= n; k += 8) {
    const __m128i x = _mm256_cvtps_ph(_mm256_loadu_ps(from + k), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128((__m128i *)(void *)(to + k), x);
  }
  for (; k < n; k++) to[k] = _cvtss_sh(from[k], _MM_FROUND_TO_NEAREST_INT);
}

CUPLUG__HALVES_TARGET static inline void cuplug__bfloat16_load_avx2(float *to, const uint16_t *from,
                                                                    size_t n) {
  size_t k = 0;
  for (; k + 8 <= n; k += 8) {
    const __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(from + k));
    const __m256i wide = _mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16);
    _mm256_storeu_ps(to + k, _mm256_castsi256_ps(wide));
  }
  for (; k < n; k++) to[k] = cuplug_bfloat16_load(from[k]);
}

/* Of 8 floats, in the lower halves of 32 bits. */
CUPLUG__HALVES_TARGET static inline __m256i cuplug__bfloat16_bits(const float *from) {
  const __m256 x = _mm256_loadu_ps(from);
  const __m256i bits = _mm256_castps_si256(x), high = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, half), 16);
  const __m256i quiet_nan = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return _mm256_blendv_epi8(rounded, quiet_nan, is_nan);
}

CUPLUG__HALVES_TARGET static inline void cuplug__bfloat16_store_avx2(uint16_t *to,
                                                                     const float *from, size_t n) {
  size_t k = 0;
  for (; k + 16 <= n; k += 16) {
    const __m256i low = cuplug__bfloat16_bits(from + k), high = cuplug__bfloat16_bits(from + k + 8);
    const __m256i packed = _mm256_packus_epi32(low, high); /* in each 128 bits by itself */
    _mm256_storeu_si256((__m256i *)(void *)(to + k), _mm256_permute4x64_epi64(packed, 0xd8));
  }
  for (; k < n; k++) to[k] = cuplug_bfloat16_store(from[k]);
}
#endif

#ifdef CUPLUG__HALVES_TARGET
#define CUPLUG__HALVES(own, to, from, n) \
  if (cuplug__has_f16c()) {              \
    own(to, from, n);                    \
    return;                              \
  }
#else
#define CUPLUG__HALVES(own, to, from, n)
#endif

static inline void cuplug_float16_load_block(float *to, const uint16_t *from, size_t n) {
  CUPLUG__HALVES(cuplug__float16_load_f16c, to, from, n)
  for (size_t k = 0; k < n; k++) to[k] = cuplug_float16_load(from[k]);
}

static inline void cuplug_float16_store_block(uint16_t *to, const float *from, size_t n) {
  CUPLUG__HALVES(cuplug__float16_store_f16c, to, from, n)
  for (size_t k = 0; k < n; k++) to[k] = cuplug_float16_store(from[k]);
}

static inline void cuplug_bfloat16_load_block(float *to, const uint16_t *from, size_t n) {
  CUPLUG__HALVES(cuplug__bfloat16_load_avx2, to, from, n)
  for (size_t k = 0; k < n; k++) to[k] = cuplug_bfloat16_load(from[k]);
}

static inline void cuplug_bfloat16_store_block(uint16_t *to, const float *from, size_t n) {
  CUPLUG__HALVES(cuplug__bfloat16_store_avx2, to, from, n)
  for (size_t k = 0; k < n; k++) to[k] = cuplug_bfloat16_store(from[k]);
}

#endif
