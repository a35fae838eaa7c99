/* SPDX-License-Identifier: Apache-2.0 */
/* integers.h for expressions in CUDA C++. It is included before this file, and so is complex.cuh.
 */

/* For integer types without promotion: 1 if signed, 2 if unsigned. 0 for other types. */
template <typename T> struct sign { static constexpr int of = 0; };
template <> struct sign<int> { static constexpr int of = 1; };
template <> struct sign<long> { static constexpr int of = 1; };
template <> struct sign<long long> { static constexpr int of = 1; };
template <> struct sign<unsigned> { static constexpr int of = 2; };
template <> struct sign<unsigned long> { static constexpr int of = 2; };
template <> struct sign<unsigned long long> { static constexpr int of = 2; };
template <typename T> using promoted = decltype(T() + 0);
template <typename A, typename B>
constexpr bool is_mixed =
    sign<promoted<A>>::of *sign<promoted<B>>::of == 2 && sign<decltype(A() + B())>::of == 2;

/* As on the host: min and max return NaN if an argument is NaN, and are exact. */
template <typename A, typename B> __device__ inline auto min(A x, B y) {
  if constexpr (is_mixed<A, B>) {
    const int64_t a = cuplug_for_least(x, sign<promoted<A>>::of == 1);
    const int64_t b = cuplug_for_least(y, sign<promoted<B>>::of == 1);
    return a < b ? a : b;
  } else {
    const decltype(x + y) a = x, b = y;
    return a < b || a != a ? a : b;
  }
}
template <typename A, typename B> __device__ inline auto max(A x, B y) {
  if constexpr (is_mixed<A, B>) {
    const uint64_t a = cuplug_for_greatest(x, sign<promoted<A>>::of == 1);
    const uint64_t b = cuplug_for_greatest(y, sign<promoted<B>>::of == 1);
    return a > b ? a : b;
  } else {
    const decltype(x + y) a = x, b = y;
    return a > b || a != a ? a : b;
  }
}

template <int SIGN, typename C> struct power {};
template <typename C> struct power<1, C> {
  typedef C type;
  static __device__ inline C of(C x, C y) { return (C)cuplug_signed_power(x, y); }
};
template <typename C> struct power<2, C> {
  typedef C type;
  static __device__ inline C of(C x, C y) { return (C)cuplug_power(x, y); }
};
/* The type to which <tgmath.h> converts an argument: double for an integer. */
template <int SIGN, typename T> struct real_of { typedef double type; };
template <typename T> struct real_of<0, T> { typedef T type; };
template <typename T> using real_type = typename real_of<sign<promoted<T>>::of, T>::type;
template <bool IS_WANTED, typename T> struct where {};
template <typename T> struct where<true, T> { typedef T type; };

/* For integers, the result is an integer, as in NumPy. Otherwise calls CUDA's function, which this
 * one hides. */
template <typename A, typename B, typename C = decltype(A() + B())>
__device__ inline typename power<sign<C>::of, C>::type pow(A x, B y) {
  return power<sign<C>::of, C>::of((C)x, (C)y);
}
template <typename A, typename B, typename C = decltype(A() + B()),
          typename R = decltype(real_type<A>() + real_type<B>())>
__device__ inline auto pow(A x, B y) ->
    typename where<sign<C>::of == 0, decltype(::pow(R(), R()))>::type {
  return ::pow((R)x, (R)y);
}

/* Converts a computed value, whose type is unknown, to an integer. */
#define CUPLUG_DEFINE_OVERLOADS(name)                                                              \
  __device__ inline name##_t cuplug_##name##_of(float x) { return cuplug_##name##_of_float(x); }   \
  __device__ inline name##_t cuplug_##name##_of(double x) { return cuplug_##name##_of_double(x); } \
  template <typename A> __device__ inline name##_t cuplug_##name##_of(A x) { return (name##_t)x; }
CUPLUG_DEFINE_OVERLOADS(int8)
CUPLUG_DEFINE_OVERLOADS(int16)
CUPLUG_DEFINE_OVERLOADS(int32)
CUPLUG_DEFINE_OVERLOADS(int64)
CUPLUG_DEFINE_OVERLOADS(uint8)
CUPLUG_DEFINE_OVERLOADS(uint16)
CUPLUG_DEFINE_OVERLOADS(uint32)
CUPLUG_DEFINE_OVERLOADS(uint64)
