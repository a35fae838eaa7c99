/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on integers that C leaves undefined, for the host and for CUDA: floats as integers,
 * powers, and min and max of signed and unsigned numbers. */

/* Converts a float to an integer. Values that are too large become the largest integer, and NaN
 * becomes 0. `low` and `high` are powers of two, and exact: the integers satisfy low <= x < high.
 */
#define CUPLUG_DEFINE_CONVERSION(name, real, low, high, least)                        \
  __device__ inline name##_t cuplug_##name##_of_##real(real x) {                      \
    const name##_t most = (name##_t)((name##_t) - 1 - (name##_t)least);               \
    return x < (real)low ? least : x >= (real)high ? most : x == x ? (name##_t)x : 0; \
  }
/* The same if high - 1 is also exact: vectors compare floats before they are narrowed. */
#define CUPLUG_DEFINE_NARROWING(name, real, low, high)                         \
  __device__ inline name##_t cuplug_##name##_of_##real(real x) {               \
    const real most = (real)(high - 1), above = x < (real)low ? (real)low : x; \
    const real within = above > most ? most : above;                           \
    return (name##_t)(int)(x == x ? within : 0);                               \
  }
CUPLUG_DEFINE_NARROWING(int8, float, -0x1p7, 0x1p7)
CUPLUG_DEFINE_NARROWING(int8, double, -0x1p7, 0x1p7)
CUPLUG_DEFINE_NARROWING(int16, float, -0x1p15, 0x1p15)
CUPLUG_DEFINE_NARROWING(int16, double, -0x1p15, 0x1p15)
CUPLUG_DEFINE_NARROWING(uint8, float, 0, 0x1p8)
CUPLUG_DEFINE_NARROWING(uint8, double, 0, 0x1p8)
CUPLUG_DEFINE_NARROWING(uint16, float, 0, 0x1p16)
CUPLUG_DEFINE_NARROWING(uint16, double, 0, 0x1p16)
CUPLUG_DEFINE_CONVERSION(int32, float, -0x1p31, 0x1p31, (-2147483647 - 1))
CUPLUG_DEFINE_NARROWING(int32, double, -0x1p31, 0x1p31)
CUPLUG_DEFINE_CONVERSION(uint32, float, 0, 0x1p32, 0)
CUPLUG_DEFINE_CONVERSION(uint32, double, 0, 0x1p32, 0)
CUPLUG_DEFINE_CONVERSION(int64, float, -0x1p63, 0x1p63, (-9223372036854775807ll - 1))
CUPLUG_DEFINE_CONVERSION(int64, double, -0x1p63, 0x1p63, (-9223372036854775807ll - 1))
CUPLUG_DEFINE_CONVERSION(uint64, float, 0, 0x1p64, 0)
CUPLUG_DEFINE_CONVERSION(uint64, double, 0, 0x1p64, 0)

#define CUPLUG_DEFINE_OF_INTEGER(name) \
  __device__ inline name##_t cuplug_##name##_of_integer(long long x) { return (name##_t)x; }
CUPLUG_DEFINE_OF_INTEGER(int8)
CUPLUG_DEFINE_OF_INTEGER(int16)
CUPLUG_DEFINE_OF_INTEGER(int32)
CUPLUG_DEFINE_OF_INTEGER(int64)
CUPLUG_DEFINE_OF_INTEGER(uint8)
CUPLUG_DEFINE_OF_INTEGER(uint16)
CUPLUG_DEFINE_OF_INTEGER(uint32)
CUPLUG_DEFINE_OF_INTEGER(uint64)

/* x to the power of y, which wraps. */
__device__ inline uint64_t cuplug_power(uint64_t x, uint64_t y) {
  uint64_t result = 1;
  for (; y; y >>= 1) {
    if (y & 1) result *= x;
    x *= x;
  }
  return result;
}

#ifndef CUPLUG_REFUSE_POWER
#define CUPLUG_REFUSE_POWER(x, y)
#endif
/* For signed integers: 1 / x^-y, rounded to zero, on the GPU. The host rejects it. */
__device__ inline int64_t cuplug_signed_power(int64_t x, int64_t y) {
  if (y >= 0) return (int64_t)cuplug_power((uint64_t)x, (uint64_t)y);
  CUPLUG_REFUSE_POWER(x, y);
  return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
}

__device__ inline int cuplug_int_power(int x, int y) { return (int)cuplug_signed_power(x, y); }
__device__ inline unsigned cuplug_unsigned_power(unsigned x, unsigned y) {
  return (unsigned)cuplug_power(x, y);
}

/* An integer of any sign as an argument of min, limited to the range of the signed one. */
__device__ inline int64_t cuplug_for_least(uint64_t x, int is_signed) {
  return is_signed || x <= 9223372036854775807u ? (int64_t)x : 9223372036854775807;
}

/* The same for max, limited to the range of the unsigned one. */
__device__ inline uint64_t cuplug_for_greatest(uint64_t x, int is_signed) {
  return is_signed && (int64_t)x < 0 ? 0 : x;
}
