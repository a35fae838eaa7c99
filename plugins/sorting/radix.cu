/* SPDX-License-Identifier: Apache-2.0 */
/* CUB sorts: DeviceRadixSort one line at a time, DeviceSegmentedSort many lines that are too short
 * to fill a GPU. Each is compiled for two widths of keys, whatever the dtypes. */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_segmented_sort.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "sorting/radix.cuh"

namespace {

constexpr int64_t LONG = 1 << 18;    /* keys of a line that fills a GPU by itself */
constexpr int64_t AT_ONCE = 1 << 30; /* keys in one call of DeviceSegmentedSort */

template <typename T, typename K>
__global__ void __launch_bounds__(SORTING_THREADS)
    load_kernel(const T *__restrict__ x, K *__restrict__ keys, int64_t *__restrict__ index,
                const elements_axis axis, const order o, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * SORTING_THREADS + threadIdx.x;
  if (i >= n) return;
  const int64_t j = i % axis.m;
  keys[i] = (K)order_key(&o, x[sorting_place(axis, i, j)]);
  if (index) index[i] = j;
}

template <typename T, typename K>
int load(cuplug::call call, const sorting &s, const cuplug_tensor &x, const elements_axis &axis,
         const order &o) {
  return call.launch<load_kernel<T, K>>({cuplug::blocks(s.n(), SORTING_THREADS), SORTING_THREADS},
                                        (const T *)x.data, (K *)s.keys, s.index, axis, o, s.n());
}

struct line_begin {
  int64_t m;
  __host__ __device__ int64_t operator()(int64_t line) const { return line * m; }
};

template <typename K> struct buffers {
  cub::DoubleBuffer<K> keys;
  cub::DoubleBuffer<int64_t> index;

  buffers(const sorting &s, int64_t line)
      : keys((K *)s.keys + line * s.m, (K *)s.spare + line * s.m) {
    if (s.index)
      index = cub::DoubleBuffer<int64_t>(s.index + line * s.m, s.spare_index + line * s.m);
  }
};

/* Sorts n_lines, from one pair of buffers to another; b says to which. */
template <typename K>
cudaError_t sort_once(void *scratch, size_t &bytes, buffers<K> &b, const sorting &s,
                      int64_t n_lines, cudaStream_t stream) {
  const int64_t n = n_lines * s.m;
  const int end = (int)(8 * s.n_bytes);
  if (n_lines == 1)
    return s.index
               ? cub::DeviceRadixSort::SortPairs(scratch, bytes, b.keys, b.index, n, 0, end, stream)
               : cub::DeviceRadixSort::SortKeys(scratch, bytes, b.keys, n, 0, end, stream);
  const thrust::counting_iterator<int64_t> lines(0);
  const auto begins = thrust::make_transform_iterator(lines, line_begin{s.m});
  return s.index ? cub::DeviceSegmentedSort::StableSortPairs(scratch, bytes, b.keys, b.index, n,
                                                             n_lines, begins, begins + 1, stream)
                 : cub::DeviceSegmentedSort::StableSortKeys(scratch, bytes, b.keys, n, n_lines,
                                                            begins, begins + 1, stream);
}

/* Copies n elements to the other buffer, unless they are in buffer `wanted`. */
template <typename T>
int collect(cuplug::call call, cub::DoubleBuffer<T> b, int wanted, int64_t n) {
  if (b.selector == wanted) return CUPLUG_OK;
  return call.check(
      cudaMemcpyAsync(b.Alternate(), b.Current(), n * sizeof(T), cudaMemcpyDefault, call.stream()));
}

/* Where the first lines went, all are to be. */
template <typename K> int sort(cuplug::call call, sorting *s) {
  const int64_t together = s->m >= LONG ? 1 : AT_ONCE / s->m;
  const int64_t at_once = together < s->n_lines ? together : s->n_lines;
  buffers<K> whole(*s, 0);
  size_t bytes = 0;
  if (int status = call.check(sort_once(nullptr, bytes, whole, *s, at_once, call.stream())))
    return status;
  void *scratch = call.workspace<char>((int64_t)bytes);
  if (!scratch) return CUPLUG_ERROR_MEMORY;
  for (int64_t line = 0; line < s->n_lines; line += at_once) {
    const int64_t n_lines = s->n_lines - line < at_once ? s->n_lines - line : at_once;
    buffers<K> part(*s, line);
    int status = call.check(sort_once(scratch, bytes, part, *s, n_lines, call.stream()));
    if (line == 0)
      whole.keys.selector = part.keys.selector, whole.index.selector = part.index.selector;
    if (!status) status = collect(call, part.keys, whole.keys.selector, n_lines * s->m);
    if (!status && s->index)
      status = collect(call, part.index, whole.index.selector, n_lines * s->m);
    if (status) return status;
  }
  s->keys = whole.keys.Current();
  if (s->index) s->index = whole.index.Current();
  return CUPLUG_OK;
}

} // namespace

int sorting_begin(cuplug::call call, sorting *s, int64_t n_bytes, int64_t n_lines, int64_t m,
                  bool has_index) {
  *s = {nullptr, nullptr, nullptr, nullptr, n_lines, m, n_bytes};
  s->keys = call.workspace<char>(s->n() * (n_bytes == 8 ? 8 : 4));
  s->spare = s->keys ? call.workspace<char>(s->n() * (n_bytes == 8 ? 8 : 4)) : nullptr;
  if (!s->spare) return CUPLUG_ERROR_MEMORY;
  if (!has_index) return CUPLUG_OK;
  s->index = call.workspace<int64_t>(s->n());
  s->spare_index = s->index ? call.workspace<int64_t>(s->n()) : nullptr;
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

int sorting_run(cuplug::call call, sorting *s) {
  if (s->m < 2 || s->n_lines == 0) return CUPLUG_OK;
  return s->n_bytes == 8 ? sort<uint64_t>(call, s) : sort<uint32_t>(call, s);
}
