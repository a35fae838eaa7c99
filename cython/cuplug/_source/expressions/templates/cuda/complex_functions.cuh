/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of complex numbers in CUDA C++. Infinities, NaNs and signed zeros follow C's Annex G
 * and, where it leaves a sign open, glibc. Included after complex.cuh. One test separates usual
 * numbers from special cases. Inverse functions: W. Kahan, Branch cuts for complex elementary
 * functions, 1987. */
using ::acos, ::acosh, ::asin, ::asinh, ::atan, ::atanh;
using ::cos, ::cosh, ::exp, ::log, ::rsqrt, ::sinh, ::sqrt, ::tan, ::tanh;

namespace annex_g {

template <typename R> struct range;
template <> struct range<float> {
  static constexpr float exponent = 88, grown = 0x1.f1056ep+126; /* exp(88); exp(89) is infinite */
  static constexpr float large = 0x1p26;                   /* 1 is negligible compared with it */
  static constexpr float least = 0x1p-100, most = 0x1p126; /* for exact squares */
  static constexpr float far = 0x1p100, log_far = 69.314718055994531;
  static constexpr float half_pi = 1.5707963267948966, log_2 = 0.6931471805599453;
};
template <> struct range<double> {
  static constexpr double exponent = 709, grown = 0x1.d422d2be5dc9bp+1022;
  static constexpr double large = 0x1p55;
  static constexpr double least = 0x1p-960, most = 0x1p1022;
  static constexpr double far = 0x1p600, log_far = 415.88830833596717;
  static constexpr double half_pi = 1.5707963267948966, log_2 = 0.6931471805599453;
};

/* unit * exp(x) * share, also if exp(x) is infinite. */
template <typename R>
__device__ inline complex_number<R> grown(complex_number<R> unit, R x, R share) {
  for (int k = 0; k < 2 && x > range<R>::exponent; k++) {
    unit = unit * range<R>::grown;
    x -= range<R>::exponent;
  }
  return unit * (share * exp(x));
}

template <typename R> __device__ inline bool is_within(complex_number<R> z, R limit) {
  return ::fabs(z.re) <= limit && ::fabs(z.im) <= limit;
}

/* a + b. The rounding error is added to `lost`. */
__device__ inline double added(double a, double b, double &lost) {
  const double sum = a + b, part = sum - a;
  lost += (a - (sum - part)) + (b - part);
  return sum;
}

/* a^2 + b^2 - 1, which may cancel almost completely: rounded once, or almost. */
__device__ inline double less_one(float a, float b) {
  return ::fma(double(b), double(b), ::fma(double(a), double(a), -1.0));
}
__device__ inline double less_one(double a, double b) {
  const double aa = a * a, bb = b * b;
  double lost = 0, last = 0;
  const double sum = added(added(aa, -1.0, lost), bb, lost);
  const double small = added(lost, added(::fma(a, a, -aa), ::fma(b, b, -bb), last), last);
  const double whole = added(sum, small, last);
  return whole + last;
}

/* log |z|: |z|^2 is 2^k m, where m - 1 is precise near 1. Almost all numbers take one branch, since
 * a warp whose threads take two branches takes the time of both. */
template <typename R> __device__ inline R log_abs(complex_number<R> z) {
  const bool is_real = ::fabs(z.re) > ::fabs(z.im);
  const R a = is_real ? z.re : z.im, b = is_real ? z.im : z.re;
  const double square = ::fma(double(b), double(b), double(a) * a);
  if (!(range<double>::least < square && square < range<double>::most)) {
    const bool is_small = ::fabs(a) < 1;
    const R by = is_small ? range<R>::far : 1 / range<R>::far;
    const R more = is_small ? -range<R>::log_far : range<R>::log_far;
    return log(::hypot(z.re * by, z.im * by)) + more;
  }
  constexpr int one = 0x3ff00000, least = 0x3fe6a09e; /* the high bits of 1 and of 1 / sqrt(2) */
  const int high = __double2hiint(square) + (one - least), k = (high >> 20) - (one >> 20);
  const double m = __hiloint2double((high & 0xfffff) + least, __double2loint(square));
  const R part = ::log1p(R(k ? m - 1 : less_one(a, b)));
  return ::fma(R(k), range<R>::log_2 / 2, part / 2);
}

/* Circular functions are hyperbolic functions of exchanged parts, if both are odd: sin from sinh.
 */
template <typename R> __device__ inline complex_number<R> swapped(complex_number<R> z) {
  return {z.im, z.re};
}

template <typename R> __device__ inline bool is_infinite(complex_number<R> z) {
  return isinf(z.re) || isinf(z.im);
}
/* A part of a factor. For an infinite factor, returns its direction, otherwise 0 in place of NaN.
 */
template <typename R> __device__ inline R boxed(R part, bool is_infinite) {
  return is_infinite || part != part ? ::copysign(R(isinf(part) ? 1 : 0), part) : part;
}
/* x y, which is infinite as C's product is. C checks this if both parts are NaN. */
template <typename R>
__device__ inline complex_number<R> product(complex_number<R> x, complex_number<R> y) {
  const complex_number<R> z = x * y;
  if (z.re == z.re || z.im == z.im) return z;
  const bool of_x = is_infinite(x), of_y = is_infinite(y);
  const bool grew =
      isinf(x.re * y.re) || isinf(x.im * y.im) || isinf(x.re * y.im) || isinf(x.im * y.re);
  if (!of_x && !of_y && !grew) return z;
  const complex_number<R> a(boxed(x.re, of_x), boxed(x.im, of_x));
  const complex_number<R> b(boxed(y.re, of_y), boxed(y.im, of_y));
  return a * b * -log(R(0));
}

/* The square root of z, whose magnitude is neither huge nor subnormal. */
template <typename R> __device__ inline complex_number<R> root(complex_number<R> z, R size) {
  const R x = z.re, y = z.im, part = sqrt((::fabs(x) + size) / 2);
  if (x < 0) return {::fabs(y) / (2 * part), ::copysign(part, y)};
  return {part, y / (2 * part)};
}

} // namespace annex_g

template <typename R> __device__ inline complex_number<R> exp(complex_number<R> z) {
  const R x = z.re, y = z.im;
  const complex_number<R> unit(cos(y), sin(y));
  if (isinf(x) && !isfinite(y)) return {x < 0 ? 0 : x, x < 0 ? ::copysign(R(0), y) : y - y};
  const complex_number<R> w = annex_g::grown(unit, x, R(1));
  return {w.re, y == 0 ? y : w.im};
}

template <typename R> __device__ inline complex_number<R> log(complex_number<R> z) {
  return {annex_g::log_abs(z), arg(z)};
}

template <typename R> __device__ inline complex_number<R> sqrt(complex_number<R> z) {
  const R x = z.re, y = z.im, size = abs(z);
  if (annex_g::range<R>::least < size && size < annex_g::range<R>::most)
    return annex_g::root(z, size);
  if (isinf(y)) return {::fabs(y), y};
  if (isinf(x) && x < 0) return {::fabs(y - y), ::copysign(x, y)};
  if (isinf(x)) return {x, ::copysign(y - y, y)};
  if (size == 0) return {size, y};
  if (size != size) return {x + y, x + y};
  const bool is_large = size > 1;
  const R scale = is_large ? R(0x1p-4) : R(0x1p108), back = is_large ? R(0x1p2) : R(0x1p-54);
  const complex_number<R> w(x * scale, y * scale);
  return annex_g::root(w, abs(w)) * back;
}

template <typename R> __device__ inline complex_number<R> rsqrt(complex_number<R> z) {
  return 1 / sqrt(z);
}

template <typename R> __device__ inline complex_number<R> sinh(complex_number<R> z) {
  const R x = z.re, y = z.im;
  const complex_number<R> unit(cos(y), sin(y));
  if (::fabs(x) <= annex_g::range<R>::exponent && isfinite(y))
    return {sinh(x) * unit.re, cosh(x) * unit.im};
  if (!isfinite(y)) return {x == 0 ? x : isinf(x) ? ::fabs(x) : y - y, y - y};
  const complex_number<R> w = annex_g::grown(unit, ::fabs(x), R(0.5));
  return {x < 0 ? -w.re : w.re, y == 0 ? y : w.im};
}

template <typename R> __device__ inline complex_number<R> cosh(complex_number<R> z) {
  const R x = z.re, y = z.im;
  const complex_number<R> unit(cos(y), sin(y));
  if (::fabs(x) <= annex_g::range<R>::exponent && isfinite(y))
    return {cosh(x) * unit.re, sinh(x) * unit.im};
  if (!isfinite(y)) return {isinf(x) ? ::fabs(x) : y - y, x == 0 ? 0 : y - y};
  const complex_number<R> w = annex_g::grown(unit, ::fabs(x), R(0.5));
  const R imaginary = y == 0 ? y : w.im;
  return {w.re, x < 0 ? -imaginary : imaginary};
}

template <typename R> __device__ inline complex_number<R> tanh(complex_number<R> z) {
  const R x = z.re, y = z.im, t = tan(y);
  if (isfinite(x) && isfinite(y)) {
    /* (tanh(x) (1 + t^2), t / cosh(x)^2) / (1 + tanh(x)^2 t^2) */
    const R h = tanh(x), c = 1 / cosh(x), by = 1 + h * h * t * t;
    return {h * (1 + t * t) / by, t * c * c / by};
  }
  if (isinf(x)) return {::copysign(R(1), x), ::copysign(R(0), isfinite(y) ? t : y)};
  if (y == 0) return z;
  return {x == 0 ? x : t * x, t * x};
}

template <typename R> __device__ inline complex_number<R> sin(complex_number<R> z) {
  return annex_g::swapped(sinh(annex_g::swapped(z)));
}
template <typename R> __device__ inline complex_number<R> cos(complex_number<R> z) {
  return cosh(complex_number<R>(-z.im, z.re));
}
template <typename R> __device__ inline complex_number<R> tan(complex_number<R> z) {
  return annex_g::swapped(tanh(annex_g::swapped(z)));
}

template <typename R> __device__ inline complex_number<R> acos(complex_number<R> z) {
  const R x = z.re, y = z.im;
  if (!annex_g::is_within(z, annex_g::range<R>::large)) {
    if (x == 0 && y != y) return {annex_g::range<R>::half_pi, y};
    return {::atan2(::fabs(y), x), -::copysign(annex_g::log_abs(z) + annex_g::range<R>::log_2, y)};
  }
  const complex_number<R> a = sqrt(complex_number<R>(1 - x, -y));
  const complex_number<R> b = sqrt(complex_number<R>(1 + x, y));
  return {2 * ::atan2(a.re, b.re), asinh(b.re * a.im - b.im * a.re)};
}

template <typename R> __device__ inline complex_number<R> asin(complex_number<R> z) {
  const R x = z.re, y = z.im;
  if (!annex_g::is_within(z, annex_g::range<R>::large)) {
    if (x == 0 && y != y) return z;
    return {::atan2(x, ::fabs(y)), ::copysign(annex_g::log_abs(z) + annex_g::range<R>::log_2, y)};
  }
  const complex_number<R> a = sqrt(complex_number<R>(1 - x, -y));
  const complex_number<R> b = sqrt(complex_number<R>(1 + x, y));
  return {::atan2(x, a.re * b.re - a.im * b.im), asinh(a.re * b.im - a.im * b.re)};
}

template <typename R> __device__ inline complex_number<R> acosh(complex_number<R> z) {
  const complex_number<R> w = acos(z);
  return {::fabs(w.im), ::copysign(w.re, z.im)};
}
template <typename R> __device__ inline complex_number<R> asinh(complex_number<R> z) {
  return annex_g::swapped(asin(annex_g::swapped(z)));
}

template <typename R> __device__ inline complex_number<R> atanh(complex_number<R> z) {
  const R x = z.re, y = z.im, size = ::fabs(x);
  if (!annex_g::is_within(z, annex_g::range<R>::large)) {
    const R half = ::hypot(x / 2, y / 2), right = ::copysign(annex_g::range<R>::half_pi, y);
    if (isinf(half)) return {::copysign(R(0), x), y != y ? y : right};
    if (half != half) return {x == 0 ? x : half, half};
    return {x / half / half / 4, right};
  }
  const R turn = ::atan2(2 * y, (1 - size) * (1 + size) - y * y) / 2;
  /* 4 / y^2 may be infinite */
  if (size == 1 && ::fabs(y) < R(1e-9))
    return {::copysign((annex_g::range<R>::log_2 - log(::fabs(y))) / 2, x), turn};
  const R away = (1 - size) * (1 - size) + y * y;
  return {::copysign(::log1p(4 * size / away) / 4, x), turn};
}
template <typename R> __device__ inline complex_number<R> atan(complex_number<R> z) {
  return annex_g::swapped(atanh(annex_g::swapped(z)));
}

/* 0 to the power of y, and x to the power of 0, as in NumPy. */
template <typename R>
__device__ inline complex_number<R> pow(complex_number<R> x, complex_number<R> y) {
  if (!y) return R(1);
  if (!x) return y.re > 0 ? complex_number<R>(0) : complex_number<R>(x.re / x.re, x.re / x.re);
  return exp(annex_g::product(y, log(x)));
}
template <typename A, typename B> __device__ inline mixed<A, B> pow(complex_number<A> x, B y) {
  return pow(mixed<A, B>(x), mixed<A, B>(y));
}
template <typename A, typename B> __device__ inline mixed<A, B> pow(A x, complex_number<B> y) {
  return pow(mixed<A, B>(x), mixed<A, B>(y));
}
