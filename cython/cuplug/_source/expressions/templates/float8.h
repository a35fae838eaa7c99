/* SPDX-License-Identifier: Apache-2.0 */
/* float8 as float32, for the host and for CUDA. Conversion to 8 bits rounds to nearest, ties to
 * even. */
__device__ inline float cuplug_float8_e4m3fn_load(uint8_t x) {
  const uint32_t sign = (uint32_t)(x & 0x80) << 24, magnitude = x & 0x7f;
  /* A multiplication by 2^120 changes the exponent's bias from 7 to 127, also for subnormals. */
  const uint32_t bits = cuplug_bits_of_float(cuplug_float_of_bits(magnitude << 20) * 0x1p120f);
  return cuplug_float_of_bits(sign | (magnitude == 0x7f ? 0x7fc00000 : bits));
}

__device__ inline float cuplug_float8_e5m2_load(uint8_t x) {
  const uint32_t sign = (uint32_t)(x & 0x80) << 24, magnitude = (uint32_t)(x & 0x7f) << 21;
  const uint32_t bits = cuplug_bits_of_float(cuplug_float_of_bits(magnitude) * 0x1p112f);
  return cuplug_float_of_bits(sign | (magnitude >= 0x0f800000 ? magnitude + 0x70000000 : bits));
}

/* With `width` bits of fraction. `least` is float32's exponent field of the smallest normal number,
 * `spacing` a power of two around which floats are as far apart as subnormal numbers. `beyond` and
 * `nan` are the magnitudes for numbers that are too large and for NaN. */
__device__ inline uint8_t cuplug_float8_of(float value, int width, uint32_t least, float spacing,
                                           uint32_t beyond, uint32_t nan) {
  const uint32_t bits = cuplug_bits_of_float(value), magnitude = bits & 0x7fffffff;
  const uint32_t small = cuplug_bits_of_float(cuplug_float_of_bits(magnitude) + spacing) -
                         cuplug_bits_of_float(spacing);
  const uint32_t half = ((uint32_t)1 << (22 - width)) - 1 + (magnitude >> (23 - width) & 1);
  const uint32_t normal = (magnitude - ((least - 1) << 23) + half) >> (23 - width);
  uint32_t result = magnitude < least << 23 ? small : normal;
  result = result > beyond ? beyond : result;
  result = magnitude > 0x7f800000 ? nan : result;
  return (uint8_t)(bits >> 24 & 0x80 | result);
}

__device__ inline uint8_t cuplug_float8_e4m3fn_store(float value) {
  return cuplug_float8_of(value, 3, 121, 0x1p14f, 0x7f, 0x7f);
}

__device__ inline uint8_t cuplug_float8_e5m2_store(float value) {
  return cuplug_float8_of(value, 2, 113, 0x1p7f, 0x7c, 0x7e);
}
