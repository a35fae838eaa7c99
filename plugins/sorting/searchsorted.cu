/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of searchsorted.c. */
#include <cuplug/plugin.hpp>

#include "sorting/search.h"

namespace {

constexpr int THREADS = 256;

__global__ void __launch_bounds__(THREADS)
    search_kernel(const void *__restrict__ x, const void *__restrict__ values, int64_t *out,
                  const order o, int64_t m, int64_t n, bool is_right) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i < n) out[i] = search_in(&o, x, m, search_key(&o, values, i), is_right);
}

} // namespace

CUPLUG_ENTRY int searchsorted_cuda(const cuplug_call *c) {
  const cuplug::call call(c);
  const cuplug_tensor &x = c->tensors[0], &values = c->tensors[1];
  const int64_t n = cuplug_n_elements(&values);
  return call.launch<search_kernel>({cuplug::blocks(n, THREADS), THREADS}, x.data, values.data,
                                    (int64_t *)c->outputs[0].data, order_of(&x, 0), x.shape[0], n,
                                    c->scalars[0].i != 0);
}
