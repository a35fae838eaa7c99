/* SPDX-License-Identifier: Apache-2.0 */
/* CUB sorts: DeviceRadixSort one line at a time, DeviceSegmentedSort many lines that are too short
 * to fill a GPU. Each is compiled for two widths of keys, whatever the dtypes; the latter, which is
 * a third of a megabyte of code each time, for keys with an index alone. */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_segmented_sort.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "sorting/radix.cuh"

namespace {

constexpr int64_t LONG = 1 << 18;    /* keys of a line that fills a GPU by itself */
constexpr int64_t AT_ONCE = 1 << 30; /* keys in one call of DeviceSegmentedSort */
constexpr int64_t UNASKED = 1 << 26; /* of those, where an index is of no use but to CUB */

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

/* Sorts a line, from one pair of buffers to another; b says to which. */
template <typename K>
cudaError_t sort_line(void *scratch, size_t &bytes, buffers<K> &b, const sorting &s,
                      cudaStream_t stream) {
  const int end = (int)(8 * s.n_bytes);
  return s.index
             ? cub::DeviceRadixSort::SortPairs(scratch, bytes, b.keys, b.index, s.m, 0, end, stream)
             : cub::DeviceRadixSort::SortKeys(scratch, bytes, b.keys, s.m, 0, end, stream);
}

/* Sorts n_lines likewise. */
template <typename K>
cudaError_t sort_lines(void *scratch, size_t &bytes, buffers<K> &b, const sorting &s,
                       int64_t n_lines, cudaStream_t stream) {
  const thrust::counting_iterator<int64_t> lines(0);
  const auto begins = thrust::make_transform_iterator(lines, line_begin{s.m});
  return cub::DeviceSegmentedSort::StableSortPairs(scratch, bytes, b.keys, b.index, n_lines * s.m,
                                                   n_lines, begins, begins + 1, stream);
}

/* Copies n elements to the other buffer, unless they are in buffer `wanted`. */
template <typename T>
int collect(cuplug::call call, cub::DoubleBuffer<T> b, int wanted, int64_t n) {
  if (b.selector == wanted) return CUPLUG_OK;
  return call.check(
      cudaMemcpyAsync(b.Alternate(), b.Current(), n * sizeof(T), cudaMemcpyDefault, call.stream()));
}

/* For so many keys at once; CUB moves an index that nobody asked for, whatever is in it. */
int64_t *unasked_index(cuplug::call call, const sorting &s, int64_t at_once) {
  return s.index || at_once == 1 ? nullptr : call.workspace<int64_t>(2 * at_once * s.m);
}

/* Where the first lines went, all are to be. */
template <typename K> int sort(cuplug::call call, sorting *s) {
  const int64_t together = s->m >= LONG ? 1 : (s->index ? AT_ONCE : UNASKED) / s->m;
  const int64_t at_once = together < s->n_lines ? together : s->n_lines;
  int64_t *unasked = unasked_index(call, *s, at_once);
  if (!unasked && !s->index && at_once > 1) return CUPLUG_ERROR_MEMORY;
  const auto sort_some = [&](void *scratch, size_t &bytes, buffers<K> &b, int64_t n_lines) {
    if (unasked) b.index = cub::DoubleBuffer<int64_t>(unasked, unasked + at_once * s->m);
    return call.check(at_once == 1 ? sort_line(scratch, bytes, b, *s, call.stream())
                                   : sort_lines(scratch, bytes, b, *s, n_lines, call.stream()));
  };
  buffers<K> whole(*s, 0);
  size_t bytes = 0;
  if (int status = sort_some(nullptr, bytes, whole, at_once)) return status;
  void *scratch = call.workspace<char>((int64_t)bytes);
  if (!scratch) return CUPLUG_ERROR_MEMORY;
  for (int64_t line = 0; line < s->n_lines; line += at_once) {
    const int64_t n_lines = s->n_lines - line < at_once ? s->n_lines - line : at_once;
    buffers<K> part(*s, line);
    int status = sort_some(scratch, bytes, part, n_lines);
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
