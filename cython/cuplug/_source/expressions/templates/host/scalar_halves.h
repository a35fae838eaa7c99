/* SPDX-License-Identifier: Apache-2.0 */
/* For scans, which read 16-bit floats one by one. Included after halves.h. Vector instructions, of
 * which one element is used, replace the operations that compilers would vectorize. */
#if defined(__F16C__) && CUPLUG_HAS(__builtin_ia32_vcvtph2ps)
typedef short cuplug_few_halves __attribute__((vector_size(16)));
typedef float cuplug_few_floats __attribute__((vector_size(16)));
static inline float cuplug_float16_load_1(uint16_t x) {
  return __builtin_ia32_vcvtph2ps((cuplug_few_halves){(short)x})[0];
}
static inline uint16_t cuplug_float16_store_1(float x) {
  return (uint16_t)__builtin_ia32_vcvtps2ph((cuplug_few_floats){x}, 0)[0];
}
#define cuplug_float16_load cuplug_float16_load_1
#define cuplug_float16_store cuplug_float16_store_1
#endif
