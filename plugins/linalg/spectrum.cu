/* SPDX-License-Identifier: Apache-2.0 */
#include "linalg/spectrum.h"

#include <cuplug/plugin.hpp>
#include <cuplug/walk.cuh>
#include <cuplug/walk.h>

namespace {

constexpr int THREADS = 256;

template <typename T> struct pair { T real, imaginary; };

template <typename T>
__global__ void __launch_bounds__(THREADS)
    weigh_kernel(const pair<T> *from, pair<T> *to, int64_t n_elements, cuplug_divisor line,
                 int64_t n, T weight) {
  const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (at >= n_elements) return;
  const int64_t k = at - cuplug::divide(at, line) * (n / 2 + 1);
  const T factor = k == 0 || 2 * k == n ? T(1) : weight;
  const pair<T> x = from[at];
  to[at] = {factor * x.real, factor * x.imaginary};
}

template <typename T>
int weigh(cuplug::call call, const void *from, void *to, int64_t n_elements, int64_t n, T weight) {
  return call.launch<weigh_kernel<T>>({cuplug::blocks(n_elements, THREADS), THREADS},
                                      (const pair<T> *)from, (pair<T> *)to, n_elements,
                                      cuplug__divisor(n / 2 + 1, 1), n, weight);
}

} // namespace

int spectrum_weigh(const cuplug_call *call, const cuplug_tensor *x, const void *from, void *to,
                   int64_t n, double weight) {
  const int64_t n_elements = cuplug_n_elements(x);
  if (cuplug_type(x) == CUPLUG_COMPLEX64)
    return weigh<float>(call, from, to, n_elements, n, (float)weight);
  return weigh<double>(call, from, to, n_elements, n, weight);
}
