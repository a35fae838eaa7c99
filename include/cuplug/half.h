/* SPDX-License-Identifier: Apache-2.0 */
/* For entries on the host: float16 and bfloat16 as 16 bits in C, computed as float. Conversions to
 * 16 bits round to nearest, ties to even (IEEE 754), and keep infinities, NaNs and subnormal
 * numbers. They have no branches, so that loops are vectorized. */
#ifndef CUPLUG_HALF_H
#define CUPLUG_HALF_H

#include <stdint.h>
#include <string.h>

/** The float of 32 bits. */
static inline float cuplug_float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

/** The 32 bits of a float. */
static inline uint32_t cuplug_bits_of_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/** The value of 16 bits of bfloat16. */
static inline float cuplug_bfloat16_load(uint16_t x) {
  return cuplug_float_of_bits((uint32_t)x << 16);
}

/** A value as 16 bits of bfloat16. */
static inline uint16_t cuplug_bfloat16_store(float value) {
  uint32_t bits = cuplug_bits_of_float(value);
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  uint32_t quiet_nan = bits >> 16 | 0x40;
  return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? quiet_nan : rounded);
}

/** The value of 16 bits of float16. */
static inline float cuplug_float16_load(uint16_t x) {
  uint32_t sign = (uint32_t)(x & 0x8000) << 16, magnitude = (uint32_t)(x & 0x7fff) << 13;
  /* Subnormal numbers: a multiplication by 2^112 moves the exponent's bias from 15 to 127. */
  uint32_t finite =
      cuplug_bits_of_float(cuplug_float_of_bits(magnitude) * 5192296858534827628530496329220096.0f);
  uint32_t special = magnitude + 0x70000000;
  return cuplug_float_of_bits(sign | (magnitude >= 0x0f800000 ? special : finite));
}

/** A value as 16 bits of float16. */
static inline uint16_t cuplug_float16_store(float value) {
  uint32_t bits = cuplug_bits_of_float(value), sign = bits >> 16 & 0x8000;
  uint32_t magnitude = bits & 0x7fffffff;
  /* Subnormal results: adding 0.5 leaves the rounded value in the lowest bits of the fraction. */
  uint32_t small = cuplug_bits_of_float(cuplug_float_of_bits(magnitude) + 0.5f) - 0x3f000000;
  uint32_t normal = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
  uint32_t result = magnitude < 0x38800000 ? small : normal;
  result = magnitude >= 0x47800000 ? 0x7c00 : result;
  result = magnitude > 0x7f800000 ? 0x7e00 | (magnitude >> 13 & 0x3ff) : result;
  return (uint16_t)(sign | result);
}

#endif
