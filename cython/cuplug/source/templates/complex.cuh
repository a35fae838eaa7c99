/* SPDX-License-Identifier: Apache-2.0 */
/* Complex numbers in CUDA C++ as C has them: real operands stay real, products are not searched for
 * infinities, and quotients are scaled. Stands inside namespace cuplug, after cuda_code.cuh.
 * Quotients: R. L. Smith, Algorithm 116: Complex division, CACM 5 (8), 1962. Inverse functions:
 * W. Kahan, Branch cuts for complex elementary functions, 1987. */
using ::acos, ::acosh, ::asin, ::asinh, ::atan, ::atanh;
using ::cos, ::cosh, ::exp, ::log, ::rsqrt, ::sinh, ::sqrt, ::tan, ::tanh;

template <typename R> struct alignas(2 * sizeof(R)) complex_number {
  R re, im;

  complex_number() = default; /* so that it may lie in shared memory */
  __device__ complex_number(R real, R imaginary = R()) : re(real), im(imaginary) {}
  template <typename S>
  __device__ complex_number(const complex_number<S> &z) : re(R(z.re)), im(R(z.im)) {}
  template <typename S> __device__ complex_number &operator=(const S &z) {
    return *this = complex_number(z);
  }
  __device__ explicit operator bool() const { return re != R() || im != R(); }
  template <typename S> __device__ complex_number &operator+=(const S &z) {
    return *this = *this + z;
  }
  template <typename S> __device__ complex_number &operator-=(const S &z) {
    return *this = *this - z;
  }
  template <typename S> __device__ complex_number &operator*=(const S &z) {
    return *this = *this * z;
  }
  template <typename S> __device__ complex_number &operator/=(const S &z) {
    return *this = *this / z;
  }
};
typedef complex_number<float> complex64_t;
typedef complex_number<double> complex128_t;

/* The complex number for a sum of real numbers of two types: integers alone make doubles. */
template <typename R> struct part { typedef double type; };
template <> struct part<float> { typedef float type; };
template <typename A, typename B>
using mixed = complex_number<typename part<decltype(A() + B())>::type>;

template <typename A, typename B>
__device__ inline mixed<A, B> operator+(const complex_number<A> &x, const complex_number<B> &y) {
  return {x.re + y.re, x.im + y.im};
}
template <typename A, typename B>
__device__ inline mixed<A, B> operator+(const complex_number<A> &x, B y) {
  return mixed<A, B>(x.re + y, x.im);
}
template <typename A, typename B>
__device__ inline mixed<A, B> operator+(A x, const complex_number<B> &y) {
  return mixed<A, B>(x + y.re, y.im);
}

template <typename A> __device__ inline complex_number<A> operator+(const complex_number<A> &x) {
  return x;
}
template <typename A> __device__ inline complex_number<A> operator-(const complex_number<A> &x) {
  return {-x.re, -x.im};
}
template <typename A, typename B>
__device__ inline mixed<A, B> operator-(const complex_number<A> &x, const complex_number<B> &y) {
  return {x.re - y.re, x.im - y.im};
}
template <typename A, typename B>
__device__ inline mixed<A, B> operator-(const complex_number<A> &x, B y) {
  return mixed<A, B>(x.re - y, x.im);
}
template <typename A, typename B>
__device__ inline mixed<A, B> operator-(A x, const complex_number<B> &y) {
  return mixed<A, B>(x - y.re, -y.im);
}

template <typename A, typename B>
__device__ inline mixed<A, B> operator*(const complex_number<A> &x, const complex_number<B> &y) {
  return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
template <typename A, typename B>
__device__ inline mixed<A, B> operator*(const complex_number<A> &x, B y) {
  return mixed<A, B>(x.re * y, x.im * y);
}
template <typename A, typename B>
__device__ inline mixed<A, B> operator*(A x, const complex_number<B> &y) {
  return mixed<A, B>(x * y.re, x * y.im);
}

template <typename R>
__device__ inline complex_number<R> quotient(complex_number<R> x, complex_number<R> y) {
  if (::fabs(y.re) < ::fabs(y.im)) {
    const R ratio = y.re / y.im, by = y.re * ratio + y.im;
    return {(x.re * ratio + x.im) / by, (x.im * ratio - x.re) / by};
  }
  const R ratio = y.im / y.re, by = y.im * ratio + y.re;
  return {(x.im * ratio + x.re) / by, (x.im - x.re * ratio) / by};
}
template <typename A, typename B>
__device__ inline mixed<A, B> operator/(const complex_number<A> &x, const complex_number<B> &y) {
  return quotient(mixed<A, B>(x), mixed<A, B>(y));
}
template <typename A, typename B>
__device__ inline mixed<A, B> operator/(const complex_number<A> &x, B y) {
  return mixed<A, B>(x.re / y, x.im / y);
}
template <typename A, typename B>
__device__ inline mixed<A, B> operator/(A x, const complex_number<B> &y) {
  return quotient(mixed<A, B>(x), mixed<A, B>(y));
}

template <typename A, typename B>
__device__ inline bool operator==(const complex_number<A> &x, const complex_number<B> &y) {
  return x.re == y.re && x.im == y.im;
}
template <typename A, typename B>
__device__ inline bool operator==(const complex_number<A> &x, B y) {
  return x.re == y && x.im == A();
}
template <typename A, typename B>
__device__ inline bool operator==(A x, const complex_number<B> &y) {
  return y == x;
}
template <typename A, typename B>
__device__ inline bool operator!=(const complex_number<A> &x, const complex_number<B> &y) {
  return !(x == y);
}
template <typename A, typename B>
__device__ inline bool operator!=(const complex_number<A> &x, B y) {
  return !(x == y);
}
template <typename A, typename B>
__device__ inline bool operator!=(A x, const complex_number<B> &y) {
  return !(y == x);
}
template <typename A> __device__ inline bool operator!(const complex_number<A> &x) {
  return !bool(x);
}

template <typename A, typename B> __device__ inline mixed<A, B> complex(A real, B imaginary) {
  return mixed<A, B>(real, imaginary);
}
template <typename R> __device__ inline R real(complex_number<R> z) { return z.re; }
template <typename R> __device__ inline R imag(complex_number<R> z) { return z.im; }
template <typename R> __device__ inline complex_number<R> conj(complex_number<R> z) {
  return {z.re, -z.im};
}
template <typename R> __device__ inline R abs(complex_number<R> z) { return ::hypot(z.re, z.im); }
template <typename R> __device__ inline R arg(complex_number<R> z) { return ::atan2(z.im, z.re); }

template <typename R> __device__ inline complex_number<R> exp(complex_number<R> z) {
  const R size = exp(z.re);
  if (z.im == 0) return {size, z.im};
  return {size * cos(z.im), size * sin(z.im)};
}
template <typename R> __device__ inline complex_number<R> log(complex_number<R> z) {
  return {log(abs(z)), arg(z)};
}
template <typename R> __device__ inline complex_number<R> sqrt(complex_number<R> z) {
  const R root = sqrt((::fabs(z.re) + abs(z)) / 2);
  if (root == 0) return {root, z.im};
  if (z.re < 0) return {::fabs(z.im) / (2 * root), ::copysign(root, z.im)};
  return {root, z.im / (2 * root)};
}
template <typename R> __device__ inline complex_number<R> rsqrt(complex_number<R> z) {
  return 1 / sqrt(z);
}
template <typename R>
__device__ inline complex_number<R> pow(complex_number<R> x, complex_number<R> y) {
  if (!x) return y ? complex_number<R>(0) : complex_number<R>(1);
  return exp(y * log(x));
}
template <typename A, typename B> __device__ inline mixed<A, B> pow(complex_number<A> x, B y) {
  return pow(mixed<A, B>(x), mixed<A, B>(y));
}
template <typename A, typename B> __device__ inline mixed<A, B> pow(A x, complex_number<B> y) {
  return pow(mixed<A, B>(x), mixed<A, B>(y));
}
template <typename R> __device__ inline complex_number<R> sinh(complex_number<R> z) {
  return {sinh(z.re) * cos(z.im), cosh(z.re) * sin(z.im)};
}
template <typename R> __device__ inline complex_number<R> cosh(complex_number<R> z) {
  return {cosh(z.re) * cos(z.im), sinh(z.re) * sin(z.im)};
}
template <typename R> __device__ inline complex_number<R> tanh(complex_number<R> z) {
  /* of t = tan(im): (tanh(re) (1 + t^2), t / cosh(re)^2) / (1 + tanh(re)^2 t^2) */
  const R h = tanh(z.re), t = tan(z.im), c = 1 / cosh(z.re), by = 1 + h * h * t * t;
  return {h * (1 + t * t) / by, t * c * c / by};
}
template <typename R> __device__ inline complex_number<R> sin(complex_number<R> z) {
  return {sin(z.re) * cosh(z.im), cos(z.re) * sinh(z.im)};
}
template <typename R> __device__ inline complex_number<R> cos(complex_number<R> z) {
  return {cos(z.re) * cosh(z.im), -sin(z.re) * sinh(z.im)};
}
template <typename R> __device__ inline complex_number<R> tan(complex_number<R> z) {
  const complex_number<R> w = tanh(complex_number<R>(-z.im, z.re));
  return {w.im, -w.re};
}
template <typename R> __device__ inline complex_number<R> acos(complex_number<R> z) {
  const complex_number<R> a = sqrt(complex_number<R>(1 - z.re, -z.im));
  const complex_number<R> b = sqrt(complex_number<R>(1 + z.re, z.im));
  return {2 * ::atan2(a.re, b.re), asinh(b.re * a.im - b.im * a.re)};
}
template <typename R> __device__ inline complex_number<R> asin(complex_number<R> z) {
  const complex_number<R> a = sqrt(complex_number<R>(1 - z.re, -z.im));
  const complex_number<R> b = sqrt(complex_number<R>(1 + z.re, z.im));
  return {::atan2(z.re, a.re * b.re - a.im * b.im), asinh(a.re * b.im - a.im * b.re)};
}
template <typename R> __device__ inline complex_number<R> acosh(complex_number<R> z) {
  const complex_number<R> a = sqrt(complex_number<R>(z.re - 1, z.im));
  const complex_number<R> b = sqrt(complex_number<R>(z.re + 1, z.im));
  return {asinh(a.re * b.re + a.im * b.im), 2 * ::atan2(a.im, b.re)};
}
template <typename R> __device__ inline complex_number<R> asinh(complex_number<R> z) {
  const complex_number<R> w = asin(complex_number<R>(-z.im, z.re));
  return {w.im, -w.re};
}
template <typename R> __device__ inline complex_number<R> atanh(complex_number<R> z) {
  const R x = z.re, y = z.im, away = (1 - x) * (1 - x) + y * y;
  if (isinf(x) || isinf(y)) return {::copysign(R(0), x), ::copysign(R(1.5707963267948966), y)};
  return {::log1p(4 * x / away) / 4, ::atan2(2 * y, (1 - x) * (1 + x) - y * y) / 2};
}
template <typename R> __device__ inline complex_number<R> atan(complex_number<R> z) {
  const complex_number<R> w = atanh(complex_number<R>(-z.im, z.re));
  return {w.im, -w.re};
}
