/* SPDX-License-Identifier: Apache-2.0 */
/* Converts elements to keys, in consecutive lines. */
#include "sorting/gpu/columns.cuh"

namespace {

constexpr int THREADS = SORTING_THREADS;
constexpr int AT_ONCE = 4; /* elements per thread, which do not wait for each other */

template <typename T, typename K> struct loading {
  const T *x;
  K *keys;
  sorted_index index;
  order o;
  unsigned long long *words;
  int64_t n_words;

  __device__ K key(T bits) const {
    if constexpr (sizeof(T) == 8)
      return order_key64(&o, bits);
    else
      return order_key32(&o, bits);
  }
  __device__ K read(const columns::spot &at) const { return key(x[at.place]); }
  __device__ void write(const columns::spot &at, K key) const {
    keys[at.i] = key;
    if (index.at) index.set(at.i, at.j);
    if (at.i < n_words) words[at.i] = 0;
  }
};

/* For consecutive lines. */
template <typename T, typename K>
__global__ void __launch_bounds__(THREADS)
    load_kernel(const __grid_constant__ loading<T, K> l, int64_t m, int64_t n) {
  const int64_t first = (int64_t)blockIdx.x * (THREADS * AT_ONCE) + threadIdx.x;
  T bits[AT_ONCE];
#pragma unroll
  for (int u = 0; u < AT_ONCE; u++)
    if (first + u * THREADS < n) bits[u] = l.x[first + u * THREADS];
#pragma unroll
  for (int u = 0; u < AT_ONCE; u++) {
    const int64_t i = first + u * THREADS;
    if (i >= n) continue;
    const int64_t line = m == n || !l.index.at ? 0 : i / m;
    l.write({line, i - line * m, i, i}, l.key(bits[u]));
  }
}

template <typename T, typename K>
int load(cuplug::call call, const sorting &s, const cuplug_tensor &x, const elements_axis &axis,
         const order &o) {
  const sorted_index index = s.is_numbered ? sorted_index{} : s.indices();
  const loading<T, K> l = {(const T *)x.data, (K *)s.keys, index, o, s.words, s.n_words};
  return axis.width == 1 ? call.launch<load_kernel<T, K>>(
                               {cuplug::blocks(s.n(), THREADS * AT_ONCE), THREADS}, l, s.m, s.n())
                         : columns::turn<true, K>(call, axis, l);
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

int sorting_load(cuplug::call call, sorting *s, const cuplug_tensor &x, const elements_axis &axis,
                 const order &o) {
  s->is_numbered = sorting_numbers(*s);
  switch (s->n_bytes) {
  case 1:
    return load<uint8_t, uint32_t>(call, *s, x, axis, o);
  case 2:
    return load<uint16_t, uint32_t>(call, *s, x, axis, o);
  case 4:
    return load<uint32_t, uint32_t>(call, *s, x, axis, o);
  default:
    return load<uint64_t, uint64_t>(call, *s, x, axis, o);
  }
}
