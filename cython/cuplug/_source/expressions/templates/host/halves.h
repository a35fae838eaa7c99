/* SPDX-License-Identifier: Apache-2.0 */
/* 16-bit floats in groups of 16, converted to floats. Included after half.h. Compilers do not use
 * vector instructions for float16 without intrinsics. With these, the floats stay in registers. */
#ifdef __has_builtin
#define CUPLUG_HAS(builtin) __has_builtin(builtin)
#else
#define CUPLUG_HAS(builtin) 0
#endif

#if defined(__AVX512F__) && CUPLUG_HAS(__builtin_ia32_vcvtph2ps512_mask)
typedef short cuplug_halves __attribute__((vector_size(32)));
typedef float cuplug_floats __attribute__((vector_size(64)));
static inline void cuplug_float16_load_16(float *to, const uint16_t *from) {
  cuplug_halves x;
  memcpy(&x, from, sizeof(x));
  const cuplug_floats y = __builtin_ia32_vcvtph2ps512_mask(x, (cuplug_floats){0}, 0xffff, 4);
  memcpy(to, &y, sizeof(y));
}
static inline void cuplug_float16_store_16(uint16_t *to, const float *from) {
  cuplug_floats x;
  memcpy(&x, from, sizeof(x));
  const cuplug_halves y = __builtin_ia32_vcvtps2ph512_mask(x, 0, (cuplug_halves){0}, 0xffff);
  memcpy(to, &y, sizeof(y));
}
#elif defined(__F16C__) && CUPLUG_HAS(__builtin_ia32_vcvtph2ps256)
typedef short cuplug_halves __attribute__((vector_size(16)));
typedef float cuplug_floats __attribute__((vector_size(32)));
static inline void cuplug_float16_load_16(float *to, const uint16_t *from) {
  cuplug_halves x[2];
  memcpy(x, from, sizeof(x));
  for (int k = 0; k < 2; k++) {
    const cuplug_floats y = __builtin_ia32_vcvtph2ps256(x[k]);
    memcpy(to + 8 * k, &y, sizeof(y));
  }
}
static inline void cuplug_float16_store_16(uint16_t *to, const float *from) {
  cuplug_floats x[2];
  memcpy(x, from, sizeof(x));
  for (int k = 0; k < 2; k++) {
    const cuplug_halves y = __builtin_ia32_vcvtps2ph256(x[k], 0);
    memcpy(to + 8 * k, &y, sizeof(y));
  }
}
#elif defined(__aarch64__)
static inline void cuplug_float16_load_16(float *to, const uint16_t *from) {
  __fp16 x[16];
  memcpy(x, from, sizeof(x));
  CUPLUG_SIMD_ONCE
  for (int k = 0; k < 16; k++) to[k] = x[k];
}
static inline void cuplug_float16_store_16(uint16_t *to, const float *from) {
  __fp16 x[16];
  CUPLUG_SIMD_ONCE
  for (int k = 0; k < 16; k++) x[k] = (__fp16)from[k];
  memcpy(to, x, sizeof(x));
}
#else
static inline void cuplug_float16_load_16(float *to, const uint16_t *from) {
  CUPLUG_SIMD_ONCE
  for (int k = 0; k < 16; k++) to[k] = cuplug_float16_load(from[k]);
}
static inline void cuplug_float16_store_16(uint16_t *to, const float *from) {
  CUPLUG_SIMD_ONCE
  for (int k = 0; k < 16; k++) to[k] = cuplug_float16_store(from[k]);
}
#endif

static inline void cuplug_bfloat16_load_16(float *to, const uint16_t *from) {
  CUPLUG_SIMD_ONCE
  for (int k = 0; k < 16; k++) to[k] = cuplug_bfloat16_load(from[k]);
}
static inline void cuplug_bfloat16_store_16(uint16_t *to, const float *from) {
  CUPLUG_SIMD_ONCE
  for (int k = 0; k < 16; k++) to[k] = cuplug_bfloat16_store(from[k]);
}
