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

struct line_begin {
  int64_t m;
  __host__ __device__ int64_t operator()(int64_t line) const { return line * m; }
};

template <typename K, typename I> struct buffers {
  cub::DoubleBuffer<K> keys;
  cub::DoubleBuffer<I> index;

  buffers(const sorting &s, int64_t line)
      : keys((K *)s.keys + line * s.m, (K *)s.spare + line * s.m) {
    if (s.index)
      index = cub::DoubleBuffer<I>((I *)s.index + line * s.m, (I *)s.spare_index + line * s.m);
  }
};

/* Sorts a line, from one pair of buffers to another; b says to which. */
template <typename K, typename I>
cudaError_t sort_line(void *scratch, size_t &bytes, buffers<K, I> &b, const sorting &s,
                      cudaStream_t stream) {
  const int first = s.first_bit, end = (int)(8 * s.n_bytes);
  return s.index ? cub::DeviceRadixSort::SortPairs(scratch, bytes, b.keys, b.index, s.m, first, end,
                                                   stream)
                 : cub::DeviceRadixSort::SortKeys(scratch, bytes, b.keys, s.m, first, end, stream);
}

/* Sorts n_lines likewise; of several an index has 32 bits. */
template <typename K>
cudaError_t sort_lines(void *scratch, size_t &bytes, buffers<K, uint32_t> &b, const sorting &s,
                       int64_t n_lines, cudaStream_t stream) {
  const thrust::counting_iterator<int64_t> lines(0);
  const auto begins = thrust::make_transform_iterator(lines, line_begin{s.m});
  return cub::DeviceSegmentedSort::StableSortPairs(scratch, bytes, b.keys, b.index, n_lines * s.m,
                                                   n_lines, begins, begins + 1, stream);
}
template <typename K>
cudaError_t sort_lines(void *, size_t &, buffers<K, int64_t> &, const sorting &, int64_t,
                       cudaStream_t) {
  return cudaErrorInvalidValue;
}

/* Copies n elements to the other buffer, unless they are in buffer `wanted`. */
template <typename T>
int collect(cuplug::call call, cub::DoubleBuffer<T> b, int wanted, int64_t n) {
  if (b.selector == wanted) return CUPLUG_OK;
  return call.check(
      cudaMemcpyAsync(b.Alternate(), b.Current(), n * sizeof(T), cudaMemcpyDefault, call.stream()));
}

/* For so many keys at once; CUB moves an index that nobody asked for, whatever is in it. */
template <typename I> I *unasked_index(cuplug::call call, const sorting &s, int64_t at_once) {
  return s.index || at_once == 1 ? nullptr : call.workspace<I>(2 * at_once * s.m);
}

/* Where the first lines went, all are to be. */
template <typename K, typename I> int sort(cuplug::call call, sorting *s) {
  const int64_t most = (s->index ? AT_ONCE : UNASKED) / s->m;
  const int64_t together = s->m >= LONG || s->is_wide ? 1 : most;
  const int64_t at_once = together < s->n_lines ? together : s->n_lines;
  I *unasked = unasked_index<I>(call, *s, at_once);
  if (!unasked && !s->index && at_once > 1) return CUPLUG_ERROR_MEMORY;
  const auto sort_some = [&](void *scratch, size_t &bytes, buffers<K, I> &b, int64_t n_lines) {
    if (unasked) b.index = cub::DoubleBuffer<I>(unasked, unasked + at_once * s->m);
    return call.check(at_once == 1 ? sort_line(scratch, bytes, b, *s, call.stream())
                                   : sort_lines(scratch, bytes, b, *s, n_lines, call.stream()));
  };
  buffers<K, I> whole(*s, 0);
  size_t bytes = 0;
  if (int status = sort_some(nullptr, bytes, whole, at_once)) return status;
  void *scratch = call.workspace<char>((int64_t)bytes);
  if (!scratch) return CUPLUG_ERROR_MEMORY;
  for (int64_t line = 0; line < s->n_lines; line += at_once) {
    const int64_t n_lines = s->n_lines - line < at_once ? s->n_lines - line : at_once;
    buffers<K, I> part(*s, line);
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

int sorting_run(cuplug::call call, sorting *s) {
  if (s->m < 2 || s->n_lines == 0) return CUPLUG_OK;
  if (s->n_bytes == 8)
    return s->is_wide ? sort<uint64_t, int64_t>(call, s) : sort<uint64_t, uint32_t>(call, s);
  return s->is_wide ? sort<uint32_t, int64_t>(call, s) : sort<uint32_t, uint32_t>(call, s);
}
