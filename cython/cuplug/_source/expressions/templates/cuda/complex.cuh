/* SPDX-License-Identifier: Apache-2.0 */
/* Complex numbers in CUDA C++ with C's rules: real operands stay real, products are not checked for
 * infinities, and quotients are scaled. Included in namespace cuplug, after code.cuh. Quotients: R.
 * L. Smith, Algorithm 116: Complex division, CACM 5 (8), 1962. */

template <typename R> struct alignas(2 * sizeof(R)) complex_number {
  R re, im;

  complex_number() = default; /* so that it can be in shared memory */
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

/* The complex type for a sum of real numbers of two types. Two integers make doubles. */
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
__device__ inline float hypot(float x, float y); /* functions.cuh defines these */
__device__ inline double hypot(double x, double y);
template <typename R> __device__ inline R abs(complex_number<R> z) { return hypot(z.re, z.im); }
template <typename R> __device__ inline R arg(complex_number<R> z) { return ::atan2(z.im, z.re); }
