/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of float32 that take less time than CUDA's, so that expressions with them run at the
 * speed of memory, and one that is correct where CUDA's is not. Included in namespace cuplug, after
 * code.cuh. */

/* sin: at most 2.5 units in the last place from -65536 to 65536. CUDA's is used outside. x = j pi +
 * r, where pi has three parts, after W. J. Cody and W. Waite, Software Manual for the Elementary
 * Functions, 1980. sin(r) / r has the smallest relative error of all such polynomials on [0, pi /
 * 2]. */
__device__ inline float sin(float x) {
  constexpr float ROUND = 12582912; /* 1.5 * 2^23: numbers added to it lose their fractions */
  if (fabsf(x) > 65536) return ::sinf(x);
  const float shifted = fmaf(x, 0.318309886f, ROUND), j = shifted - ROUND;
  float r = fmaf(j, -3.14159203f, x);
  r = fmaf(j, -6.27832947e-7f, r);
  r = fmaf(j, -1.07806059e-14f, r);
  const float s = r * r;
  float p = fmaf(2.605761e-6f, s, -1.9809595e-4f);
  p = fmaf(p, s, 8.3330665e-3f);
  p = fmaf(p, s, -0.1666666f);
  p = fmaf(p, s, 1.0f);
  /* odd j reverse the sign; a product keeps the sign of -0 */
  const float sign = __uint_as_float(__float_as_uint(1.0f) | __float_as_uint(shifted) << 31);
  return sign * r * p;
}
__device__ inline double sin(double x) { return ::sin(x); }
template <typename I> __device__ inline auto sin(I x) -> decltype((double)x) {
  return ::sin((double)x);
}

/* erf: at most 2 units in the last place. Both branches are computed, which takes less time than
 * selecting each coefficient: x + x p(x x), and 1 - 2^(-|x| g(|x|)). Their polynomials have the
 * smallest error of their degrees, up to 0.9 and from there to 4. Above, g is so large that the
 * power is negligible. */
__device__ inline float erf(float x) {
  const float s = x * x, t = fabsf(x);
  float p = fmaf(-6.09037833e-4f, s, 5.01196693e-3f), g = fmaf(1.50516416e-5f, t, -4.54242711e-4f);
  p = fmaf(p, s, -2.67789123e-2f);
  p = fmaf(p, s, 0.112821409f);
  p = fmaf(p, s, -0.376125233f);
  p = fmaf(p, s, 0.128379154f);
  g = fmaf(g, t, 5.20861656e-3f);
  g = fmaf(g, t, -3.41840211e-2f);
  g = fmaf(g, t, 0.153155121f);
  g = fmaf(g, t, 0.916397061f);
  g = fmaf(g, t, 1.62827911f);
  const float left = cuplug_exp2(-t * g);
  return t > 0.9f ? copysignf(1 - left, x) : fmaf(x, p, x);
}
__device__ inline double erf(double x) { return ::erf(x); }
template <typename I> __device__ inline auto erf(I x) -> decltype((double)x) {
  return ::erf((double)x);
}

/* hypot: CUDA's is infinite for some finite results, if the longer side is near the largest number.
 * If the other side has no effect, the longer one is the result. */
template <typename R> __device__ inline R side_across(R x, R y, R nothing) {
  const R larger = ::fmax(::fabs(x), ::fabs(y)), smaller = ::fmin(::fabs(x), ::fabs(y));
  return smaller < larger * nothing ? larger : ::hypot(x, y);
}
__device__ inline float hypot(float x, float y) { return side_across(x, y, 0x1p-13f); }
__device__ inline double hypot(double x, double y) { return side_across(x, y, 0x1p-27); }
template <typename A, typename B>
__device__ inline auto hypot(A x, B y) -> decltype((double)x + (double)y) {
  return hypot((double)x, (double)y);
}
