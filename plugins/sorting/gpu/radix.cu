/* SPDX-License-Identifier: Apache-2.0 */
/* CUB sorts lines that fill a GPU, one at a time: DeviceRadixSort, compiled for two widths of keys
 * and of an index, which serve all dtypes. */
#include <cub/device/device_radix_sort.cuh>

#include "sorting/gpu/radix.cuh"

namespace {

/* A line of m keys. */
template <typename K, typename I> struct buffers {
  cub::DoubleBuffer<K> keys;
  cub::DoubleBuffer<I> index;

  buffers(const sorting &s, int64_t first) : keys((K *)s.keys + first, (K *)s.spare + first) {
    if (s.index) index = cub::DoubleBuffer<I>((I *)s.index + first, (I *)s.spare_index + first);
  }
};

/* Sorts a line from one pair of buffers to another; b is the destination. */
template <typename K, typename I>
cudaError_t sort_line(void *scratch, size_t &bytes, buffers<K, I> &b, const sorting &s,
                      cudaStream_t stream) {
  const int first = s.first_bit, end = (int)(8 * s.n_bytes);
  return s.index ? cub::DeviceRadixSort::SortPairs(scratch, bytes, b.keys, b.index, s.m, first, end,
                                                   stream)
                 : cub::DeviceRadixSort::SortKeys(scratch, bytes, b.keys, s.m, first, end, stream);
}

/* Copies n elements to the other buffer, unless they are in buffer `wanted`. */
template <typename T>
int collect(cuplug::call call, cub::DoubleBuffer<T> b, int wanted, int64_t n) {
  if (b.selector == wanted) return CUPLUG_OK;
  return call.check(
      cudaMemcpyAsync(b.Alternate(), b.Current(), n * sizeof(T), cudaMemcpyDefault, call.stream()));
}

/* All lines must be in the buffer of the first one. */
template <typename K, typename I> int sort(cuplug::call call, sorting *s) {
  buffers<K, I> whole(*s, 0);
  size_t bytes = 0;
  int status = call.check(sort_line(nullptr, bytes, whole, *s, call.stream()));
  if (status) return status;
  void *scratch = call.workspace<char>((int64_t)bytes);
  if (!scratch) return CUPLUG_ERROR_MEMORY;
  for (int64_t first = 0; !status && first < s->n(); first += s->m) {
    buffers<K, I> line(*s, first);
    status = call.check(sort_line(scratch, bytes, line, *s, call.stream()));
    if (first == 0)
      whole.keys.selector = line.keys.selector, whole.index.selector = line.index.selector;
    if (!status) status = collect(call, line.keys, whole.keys.selector, s->m);
    if (!status && s->index) status = collect(call, line.index, whole.index.selector, s->m);
  }
  s->keys = whole.keys.Current();
  if (s->index) s->index = whole.index.Current();
  return status;
}

} // namespace

int sorting_run_long(cuplug::call call, sorting *s) {
  if (s->n_bytes == 8)
    return s->is_wide ? sort<uint64_t, int64_t>(call, s) : sort<uint64_t, uint32_t>(call, s);
  return s->is_wide ? sort<uint32_t, int64_t>(call, s) : sort<uint32_t, uint32_t>(call, s);
}
