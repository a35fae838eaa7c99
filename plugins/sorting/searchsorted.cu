/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of searchsorted.c. */
#include <cuplug/plugin.hpp>

#include "sorting/search.h"

namespace {

constexpr int THREADS = 256;

struct searching {
  const void *x, *values;
  int64_t *out;
  order o;
  int64_t m, n;
  int is_right;
};

/* T is of elements; few are fewer than 2^31. */
template <typename T, bool few>
__global__ void __launch_bounds__(THREADS) search_kernel(const __grid_constant__ searching s) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= s.n) return;
  order o = s.o;
  o.n_bytes = sizeof(T);
  if constexpr (sizeof(T) == 8 && few)
    s.out[i] = search_in64_few(&o, s.x, (int32_t)s.m, search_key64(&o, s.values, i), s.is_right);
  else if constexpr (sizeof(T) == 8)
    s.out[i] = search_in64(&o, s.x, s.m, search_key64(&o, s.values, i), s.is_right);
  else if constexpr (few)
    s.out[i] = search_in32_few(&o, s.x, (int32_t)s.m, search_key32(&o, s.values, i), s.is_right);
  else
    s.out[i] = search_in32(&o, s.x, s.m, search_key32(&o, s.values, i), s.is_right);
}

template <typename T> int search(cuplug::call call, const searching &s) {
  const cuplug::grid grid({cuplug::blocks(s.n, THREADS)}, THREADS);
  return s.m <= INT32_MAX ? call.launch<search_kernel<T, true>>(grid, s)
                          : call.launch<search_kernel<T, false>>(grid, s);
}

} // namespace

CUPLUG_ENTRY int searchsorted_cuda(const cuplug_call *c) {
  const cuplug_tensor &x = c->tensors[0], &values = c->tensors[1];
  const searching s = {x.data,
                       values.data,
                       (int64_t *)c->outputs[0].data,
                       order_of(&x, 0),
                       x.shape[0],
                       cuplug_n_elements(&values),
                       c->scalars[0].i != 0};
  switch (s.o.n_bytes) {
  case 1:
    return search<uint8_t>(c, s);
  case 2:
    return search<uint16_t>(c, s);
  case 4:
    return search<uint32_t>(c, s);
  default:
    return search<uint64_t>(c, s);
  }
}
