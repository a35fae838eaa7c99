/* SPDX-License-Identifier: Apache-2.0 */
/* Elements become keys, which lie one line after the other. */
#include "sorting/radix.cuh"

namespace {

constexpr int THREADS = SORTING_THREADS;
constexpr int AT_ONCE = 4; /* elements of a thread, which do not wait for each other */

template <typename T, typename K>
__global__ void __launch_bounds__(THREADS)
    load_kernel(const T *__restrict__ x, K *__restrict__ keys, const sorted_index index,
                const __grid_constant__ elements_axis axis, const __grid_constant__ order o,
                int64_t n) {
  const int64_t first = (int64_t)blockIdx.x * (THREADS * AT_ONCE) + threadIdx.x;
  const bool is_direct = axis.width == 1 && !index.at;
  T bits[AT_ONCE];
  int64_t j[AT_ONCE];
#pragma unroll
  for (int u = 0; u < AT_ONCE; u++) {
    const int64_t i = first + u * THREADS;
    if (i >= n) continue;
    const int64_t line = is_direct ? 0 : sorting_line(axis, i);
    j[u] = i - line * axis.m;
    bits[u] = x[is_direct ? i : sorting_place(axis, line, j[u])];
  }
#pragma unroll
  for (int u = 0; u < AT_ONCE; u++) {
    const int64_t i = first + u * THREADS;
    if (i >= n) continue;
    if constexpr (sizeof(T) == 8)
      keys[i] = order_key64(&o, bits[u]);
    else
      keys[i] = order_key32(&o, bits[u]);
    if (index.at) index.set(i, j[u]);
  }
}

template <typename T, typename K>
int load(cuplug::call call, const sorting &s, const cuplug_tensor &x, const elements_axis &axis,
         const order &o) {
  return call.launch<load_kernel<T, K>>({cuplug::blocks(s.n(), THREADS * AT_ONCE), THREADS},
                                        (const T *)x.data, (K *)s.keys, s.indices(), axis, o,
                                        s.n());
}

} // namespace

int sorting_begin(cuplug::call call, sorting *s, int64_t n_bytes, int64_t n_lines, int64_t m,
                  int64_t n_indices) {
  *s = {nullptr, nullptr, nullptr, nullptr, n_lines, m, n_bytes, n_indices > (int64_t)1 << 32};
  s->keys = call.workspace<char>(s->n() * s->key_bytes());
  s->spare = s->keys ? call.workspace<char>(s->n() * s->key_bytes()) : nullptr;
  if (!s->spare) return CUPLUG_ERROR_MEMORY;
  if (!n_indices) return CUPLUG_OK;
  s->index = call.workspace<char>(s->n() * s->index_bytes());
  s->spare_index = s->index ? call.workspace<char>(s->n() * s->index_bytes()) : nullptr;
  return s->spare_index ? CUPLUG_OK : CUPLUG_ERROR_MEMORY;
}

int sorting_load(cuplug::call call, const sorting &s, const cuplug_tensor &x,
                 const elements_axis &axis, const order &o) {
  switch (s.n_bytes) {
  case 1:
    return load<uint8_t, uint32_t>(call, s, x, axis, o);
  case 2:
    return load<uint16_t, uint32_t>(call, s, x, axis, o);
  case 4:
    return load<uint32_t, uint32_t>(call, s, x, axis, o);
  default:
    return load<uint64_t, uint64_t>(call, s, x, axis, o);
  }
}
