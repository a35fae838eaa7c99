/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of numbers to float32 before they are rounded to 16 or 8 bits, for the host and for
 * CUDA. Two roundings to nearest may miss the nearest number. If the first one rounds to odd, they
 * do not: if float32 cannot represent a value, its last bit becomes 1, so that it is never mistaken
 * for a midpoint between two narrow numbers. float32 has two or more bits more than these, also
 * for subnormal numbers. */
__device__ inline float cuplug_odd_of_double(double x) {
  const float near = (float)x;
  const double back = near, size = back < 0 ? -back : back, wanted = x < 0 ? -x : x;
  uint32_t bits = cuplug_bits_of_float(near);
  bits += bits & 1 ? 0 : (uint32_t)(size < wanted) - (uint32_t)(size > wanted);
  return cuplug_float_of_bits(bits);
}

/* For integers above 2^53, the last 11 bits are replaced by one that is set if any of them is. */
__device__ inline float cuplug_odd_of_unsigned(uint64_t x) {
  const uint64_t rest = x & 0x7ff, short_one = (x - rest) | (rest ? 0x800 : 0);
  return cuplug_odd_of_double((double)(x >> 53 ? short_one : x));
}
__device__ inline float cuplug_odd_of_signed(int64_t x) {
  const float size = cuplug_odd_of_unsigned(x < 0 ? 0 - (uint64_t)x : (uint64_t)x);
  return x < 0 ? -size : size;
}

/* Rounds a float to the nearest number, ties to even, of a dtype whose significand is `dropped`
 * bits shorter. Below `normal`, its numbers are multiples of 2^-23 `unit`. Above `largest`, the
 * result has the bits `beyond` of a float. */
__device__ inline float cuplug_rounded(float x, int dropped, float normal, float unit,
                                       float largest, uint32_t beyond) {
  const uint32_t bits = cuplug_bits_of_float(x), sign = bits & 0x80000000u, own = bits ^ sign;
  const uint32_t rest = (1u << dropped) - 1;
  const float size = cuplug_float_of_bits(own);
  const float fixed = size + unit - unit;
  const float near = cuplug_float_of_bits((own + (rest >> 1) + (own >> dropped & 1)) & ~rest);
  const float found = size < normal ? fixed : near;
  const uint32_t result = found > largest ? beyond : cuplug_bits_of_float(found);
  return x != x ? x : cuplug_float_of_bits(result | sign);
}

#ifdef __cplusplus
#define CUPLUG_NARROWED(type, by) \
  __device__ inline float cuplug_narrowed(type x) { return cuplug_odd_of_##by(x); }
template <typename A> __device__ inline float cuplug_narrowed(A x) { return (float)x; }
CUPLUG_NARROWED(double, double)
CUPLUG_NARROWED(int, double)
CUPLUG_NARROWED(unsigned, double)
CUPLUG_NARROWED(long, signed)
CUPLUG_NARROWED(long long, signed)
CUPLUG_NARROWED(unsigned long, unsigned)
CUPLUG_NARROWED(unsigned long long, unsigned)
#else
/* For numbers with at most 16 bits, floats, and the real parts of complex numbers. */
__device__ inline float cuplug_float_of(float x) { return x; }
#define cuplug_narrowed(x)                              \
  _Generic((x), double                                  \
           : cuplug_odd_of_double, long double          \
           : cuplug_odd_of_double, int                  \
           : cuplug_odd_of_double, unsigned             \
           : cuplug_odd_of_double, long                 \
           : cuplug_odd_of_signed, long long            \
           : cuplug_odd_of_signed, unsigned long        \
           : cuplug_odd_of_unsigned, unsigned long long \
           : cuplug_odd_of_unsigned, default            \
           : cuplug_float_of)(x)
#endif
