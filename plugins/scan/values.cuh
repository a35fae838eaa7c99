/* SPDX-License-Identifier: Apache-2.0 */
/* The types and operations of the CUDA entries of scans. */
#ifndef CUPLUG_PLUGINS_SCAN_VALUES_CUH
#define CUPLUG_PLUGINS_SCAN_VALUES_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuplug/plugin.hpp>

#include "scan/lines.h"

/* Products are written out, as on the host. */
template <typename R> struct alignas(2 * sizeof(R)) scan_complex {
  R real, imag;
  scan_complex() = default;
  __host__ __device__ scan_complex(R real, R imag = 0) : real(real), imag(imag) {}
  __host__ __device__ bool is_one() const { return real == 1 && imag == 0; }
  __host__ __device__ scan_complex operator-() const { return {-real, -imag}; }
  __host__ __device__ scan_complex operator+(const scan_complex &b) const {
    return {real + b.real, imag + b.imag};
  }
  __host__ __device__ scan_complex operator*(const scan_complex &b) const {
    return {real * b.real - imag * b.imag, real * b.imag + imag * b.real};
  }
};

/* The identity changes no value: neither -0 nor a complex infinity. INITIAL precedes a line's first
 * element if requested. */
struct scan_plus {
  static constexpr int INITIAL = 0;
  template <typename T> __host__ __device__ T operator()(const T &a, const T &b) const {
    return a + b;
  }
  template <typename T> __host__ __device__ static T identity() { return -T(0); }
};
struct scan_times {
  static constexpr int INITIAL = 1;
  template <typename T> __host__ __device__ T operator()(const T &a, const T &b) const {
    return a * b;
  }
  template <typename R>
  __host__ __device__ scan_complex<R> operator()(const scan_complex<R> &a,
                                                 const scan_complex<R> &b) const {
    return a.is_one() ? b : b.is_one() ? a : a * b;
  }
  template <typename T> __host__ __device__ static T identity() { return T(1); }
};

/* The type in which elements are computed. */
template <typename T> struct scan_computed { using type = T; };
template <> struct scan_computed<__half> { using type = float; };
template <> struct scan_computed<__nv_bfloat16> { using type = float; };
template <typename T> using scan_computed_t = typename scan_computed<T>::type;

/* For the supported dtypes of elements. */
#define SCAN_DTYPES(X, name) \
  X(name, uint32_t)          \
  X(name, uint64_t)          \
  X(name, __half)            \
  X(name, __nv_bfloat16)     \
  X(name, float) X(name, double) X(name, scan_complex<float>) X(name, scan_complex<double>)

/* Functions that are not templates: nvcc names file-local symbols after one of them, or else after
 * its own process, so that no two builds would be equal. */
#define SCAN_DECLARE(name, T)                                                     \
  int name(cuplug::call call, const T *x, T *out, const scan_lines &, scan_plus); \
  int name(cuplug::call call, const T *x, T *out, const scan_lines &, scan_times);
#define SCAN_DEFINE(name, T)                                                             \
  int name(cuplug::call call, const T *x, T *out, const scan_lines &lines, scan_plus) {  \
    return run<T, scan_plus>(call, x, out, lines);                                       \
  }                                                                                      \
  int name(cuplug::call call, const T *x, T *out, const scan_lines &lines, scan_times) { \
    return run<T, scan_times>(call, x, out, lines);                                      \
  }

/* Each line by all of the GPU: for lines that are long and few, and not empty. */
SCAN_DTYPES(SCAN_DECLARE, scan_long)
/* 32 adjacent lines by a block, or by several. */
SCAN_DTYPES(SCAN_DECLARE, scan_columns)
/* Each line by a warp or by some of its lanes. */
SCAN_DTYPES(SCAN_DECLARE, scan_short)
/* Each line by a block. */
SCAN_DTYPES(SCAN_DECLARE, scan_each)

#endif
