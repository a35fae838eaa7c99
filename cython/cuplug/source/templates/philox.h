/* SPDX-License-Identifier: Apache-2.0 */
/* Random bits and numbers of them, for the host and for CUDA alike, bit by bit: integers, and
 * doubles by + - * / and sqrt alone, which round the same everywhere. */

typedef struct cuplug_bits {
  uint64_t first, second;
} cuplug_bits;

/* Block `low` of sequence `high`: Philox4x32-10 of J. K. Salmon, M. A. Moraes, R. O. Dror and
 * D. E. Shaw: Parallel random numbers: as easy as 1, 2, 3, SC 2011; words in the paper's order. */
__device__ inline cuplug_bits cuplug_philox(uint64_t key, uint64_t low, uint64_t high) {
  uint32_t a = (uint32_t)low, b = (uint32_t)(low >> 32);
  uint32_t c = (uint32_t)high, d = (uint32_t)(high >> 32);
  uint32_t k = (uint32_t)key, l = (uint32_t)(key >> 32);
  for (int round = 0; round < 10; round++) {
    const uint64_t x = (uint64_t)0xD2511F53u * a, y = (uint64_t)0xCD9E8D57u * c;
    a = (uint32_t)(y >> 32) ^ b ^ k;
    b = (uint32_t)y;
    c = (uint32_t)(x >> 32) ^ d ^ l;
    d = (uint32_t)x;
    k += 0x9E3779B9u;
    l += 0xBB67AE85u;
  }
  cuplug_bits bits;
  bits.first = (uint64_t)b << 32 | a;
  bits.second = (uint64_t)d << 32 | c;
  return bits;
}

/* In [0, 1): a multiple of 2^-53, or of 2^-24, which float32 holds. */
__device__ inline double cuplug_unit(cuplug_bits bits) {
  return (double)(bits.first >> 11) * (1.0 / 9007199254740992.0);
}
__device__ inline float cuplug_narrow_unit(cuplug_bits bits) {
  return (float)(bits.first >> 40) * (1.0f / 16777216.0f);
}

/* The upper 64 bits of a product. */
__device__ inline uint64_t cuplug_upper(uint64_t x, uint64_t y) {
  const uint64_t a = (uint32_t)x, b = x >> 32, c = (uint32_t)y, d = y >> 32;
  const uint64_t low = a * c, left = b * c + (low >> 32), right = a * d + (uint32_t)left;
  return b * d + (left >> 32) + (right >> 32);
}

/* From 0 to `last`: 128 random bits times how many there are, divided by 2^128. No number is more
 * probable than another by 2^-64 of its share or more. */
__device__ inline uint64_t cuplug_below(cuplug_bits bits, uint64_t last) {
  const uint64_t n = last + 1;
  if (!n) return bits.first;
  const uint64_t low = bits.first * n, sum = low + cuplug_upper(bits.second, n);
  return cuplug_upper(bits.first, n) + (sum < low);
}

/* Of 0 < x < 1: x = m 2^e with m near 1; log(m) = 2 (s + s^3/3 + s^5/5 ...), s = (m - 1)/(m + 1).
 */
__device__ inline double cuplug_log(double x) {
  union {
    double value;
    uint64_t bits;
  } m;
  m.value = x;
  int exponent = (int)(m.bits >> 52) - 1023;
  m.bits = (m.bits & 0xFFFFFFFFFFFFFull) | 1023ull << 52;
  if (m.value > 1.4142135623730951) {
    m.value *= 0.5;
    exponent++;
  }
  const double s = (m.value - 1.0) / (m.value + 1.0), z = s * s;
  double sum = 1.0 / 23.0;
  for (int k = 21; k > 0; k -= 2) sum = sum * z + 1.0 / k;
  return 2.0 * s * sum + exponent * 0.6931471805599453;
}

/* c[0] + c[1] x + ... + c[7] x^7 */
__device__ inline double cuplug_polynomial(const double *c, double x) {
  double sum = c[7];
  for (int k = 6; k >= 0; k--) sum = sum * x + c[k];
  return sum;
}

/* A standard normal number: the quantile function at p, with 52 random bits for 0 < p < 1/2 and one
 * for the side; M. J. Wichura: Algorithm AS 241, Applied Statistics 37 (1988), to 1e-16. */
__device__ inline double cuplug_normal(cuplug_bits bits) {
  const double middle[2][8] = {
      {3.3871328727963666080e0, 1.3314166789178437745e+2, 1.9715909503065514427e+3,
       1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
       3.3430575583588128105e+4, 2.5090809287301226727e+3},
      {1.0, 4.2313330701600911252e+1, 6.8718700749205790830e+2, 5.3941960214247511077e+3,
       2.1213794301586595867e+4, 3.9307895800092710610e+4, 2.8729085735721942674e+4,
       5.2264952788528545610e+3}};
  const double near[2][8] = {
      {1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
       3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
       2.27238449892691845833e-2, 7.74545014278341407640e-4},
      {1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
       1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
       1.05075007164441684324e-9}};
  const double far[2][8] = {
      {6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
       2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
       2.71155556874348757815e-5, 2.01033439929228813265e-7},
      {1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
       7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
       2.04426310338993978564e-15}};
  const double p = ((double)(bits.first >> 12) + 0.5) * (1.0 / 9007199254740992.0), q = 0.5 - p;
  double value;
  if (q <= 0.425) {
    const double r = 0.180625 - q * q;
    value = q * cuplug_polynomial(middle[0], r) / cuplug_polynomial(middle[1], r);
  } else {
    const double r = sqrt(-cuplug_log(p));
    value = r <= 5.0 ? cuplug_polynomial(near[0], r - 1.6) / cuplug_polynomial(near[1], r - 1.6)
                     : cuplug_polynomial(far[0], r - 5.0) / cuplug_polynomial(far[1], r - 5.0);
  }
  return bits.second & 1 ? value : -value;
}
