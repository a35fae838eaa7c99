/* SPDX-License-Identifier: Apache-2.0 */
/* Quotients by a number of a row, for the host and for CUDA. The number's inverse is computed once.
 * A power of two scales it to the range of normal numbers. */
typedef struct cuplug_row_divisor {
  float by, scaled, inverse, scale;
} cuplug_row_divisor;

__device__ inline cuplug_row_divisor cuplug_row_divisor_of(float by) {
  const float size = by < 0 ? -by : by;
  const float scale = size < 0x1p-100f ? 0x1p64f : size > 0x1p100f ? 0x1p-64f : 1.0f;
  const cuplug_row_divisor found = {by, by * scale, 1.0f / (by * scale), scale};
  return found;
}

/* For results that are then rounded to float16 or bfloat16. */
__device__ inline float cuplug_near_quotient(float x, const cuplug_row_divisor d) {
  return x * d.inverse * d.scale;
}

/* A division takes a dozen instructions on a GPU. A product and one Newton step round as it does,
 * except for rare quotients close to a tie. If the step is NaN (operands or quotients that are
 * infinite, divisors of 0), the product is the result. copysignf keeps the sign of zeros. */
__device__ inline float cuplug_quotient(float x, const cuplug_row_divisor d) {
#ifdef __CUDA_ARCH__
  const float near = x * d.inverse, rest = fmaf(-d.scaled, near, x);
  const float better = copysignf(fmaf(rest, d.inverse, near), near);
  return (better == better ? better : near) * d.scale;
#else
  return x / d.by;
#endif
}
