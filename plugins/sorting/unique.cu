/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of unique.c. The call waits for the number of values: once, or
 * twice where it had to see that they are not few. */
#include "compaction.cuh"
#include "sorting/radix.cuh"

namespace {

constexpr int THREADS = SORTING_THREADS;

/* Whether a sorted key is another than the one before it. */
struct is_first {
  static constexpr bool ARE_BYTES = false;
  const void *keys;
  order o;
  __device__ uint64_t key(int64_t i) const {
    return o.n_bytes == 8 ? ((const uint64_t *)keys)[i] : ((const uint32_t *)keys)[i];
  }
  __device__ bool operator()(int64_t i) const {
    return i == 0 || key(i) != key(i - 1) || order_is_nan(&o, key(i));
  }
};

template <typename T> struct take_value {
  static constexpr bool ALL = false;
  using item = T;
  is_first first;
  T *values;
  __device__ T load(int64_t i) const { return (T)order_bits(&first.o, first.key(i)); }
  __device__ void store(T value, int64_t, int64_t place, bool) const { values[place] = value; }
};

/* With where values are, which of them each element is, and where they begin among the keys. */
template <typename T> struct take_all {
  static constexpr bool ALL = true;
  using item = int64_t;
  take_value<T> values;
  sorted_index index;
  int64_t *indices, *inverse, *firsts;
  __device__ int64_t load(int64_t i) const { return index[i]; }
  __device__ void store(int64_t from, int64_t i, int64_t place, bool is_set) const {
    inverse[from] = is_set ? place : place - 1;
    if (!is_set) return;
    values.store(values.load(i), i, place, true);
    indices[place] = from;
    firsts[place] = i;
  }
};

/* From where values begin to how many there are of each. */
__global__ void __launch_bounds__(THREADS)
    count_kernel(const int64_t *__restrict__ firsts, int64_t *counts, int64_t n_found, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i < n_found) counts[i] = (i + 1 < n_found ? firsts[i + 1] : n) - firsts[i];
}

/* Sorts x, and counts the keys that differ. */
int sort_all(cuplug::call call, sorting *s, const order &o, bool has_index,
             compaction::tiles *tiles) {
  const cuplug_call *c = call;
  const elements_axis all = {1, cuplug_n_elements(&c->tensors[0]), 1};
  int status = sorting_begin(call, s, o.n_bytes, 1, all.m, has_index ? all.m : 0);
  if (!status && all.m) status = sorting_load(call, *s, c->tensors[0], all, o);
  if (!status) status = sorting_run(call, s);
  return status ? status : compaction::count(call, is_first{s->keys, o}, all.m, tiles);
}

template <typename T>
int take_values(cuplug::call call, const is_first &first, const compaction::tiles &tiles) {
  return compaction::take(
      call, take_value<T>{first, (T *)((const cuplug_call *)call)->outputs[0].data}, tiles);
}

int unique_values(cuplug::call call) {
  const cuplug_call *c = call;
  const order o = order_of(&c->tensors[0], 0);
  sorting s;
  compaction::tiles tiles;
  bool is_done;
  int status = sorting_unique_few(call, o, cuplug_n_elements(&c->tensors[0]), false, &is_done);
  if (status || is_done) return status;
  status = sort_all(call, &s, o, false, &tiles);
  if (!status) status = cuplug_output(c, 1, &tiles.n_found);
  if (status || tiles.n_found == 0) return status;
  const is_first first = {s.keys, o};
  switch (o.n_bytes) {
  case 1:
    return take_values<uint8_t>(call, first, tiles);
  case 2:
    return take_values<uint16_t>(call, first, tiles);
  case 4:
    return take_values<uint32_t>(call, first, tiles);
  default:
    return take_values<uint64_t>(call, first, tiles);
  }
}

template <typename T>
int take_all_of(cuplug::call call, const is_first &first, const sorted_index &index,
                const compaction::tiles &tiles) {
  const cuplug_call *c = call;
  const auto output = [c](int k) { return (int64_t *)c->outputs[k].data; };
  int64_t *firsts = call.workspace<int64_t>(tiles.n_found);
  if (!firsts) return CUPLUG_ERROR_MEMORY;
  const take_all<T> all = {{first, (T *)c->outputs[0].data}, index, output(1), output(2), firsts};
  const cuplug::grid grid({cuplug::blocks(tiles.n_found, THREADS)}, THREADS);
  const int status = compaction::take(call, all, tiles);
  return status ? status
                : call.launch<count_kernel>(grid, firsts, output(3), tiles.n_found, tiles.n);
}

int unique(cuplug::call call) {
  const cuplug_call *c = call;
  const order o = order_of(&c->tensors[0], 0);
  sorting s;
  compaction::tiles tiles;
  bool is_done;
  int status = sorting_unique_few(call, o, cuplug_n_elements(&c->tensors[0]), true, &is_done);
  if (status || is_done) return status;
  status = sort_all(call, &s, o, true, &tiles);
  for (uint32_t k : {1u, 2u, 4u})
    if (!status) status = cuplug_output(c, k, &tiles.n_found);
  if (status || tiles.n_found == 0) return status;
  const is_first first = {s.keys, o};
  switch (o.n_bytes) {
  case 1:
    return take_all_of<uint8_t>(call, first, s.indices(), tiles);
  case 2:
    return take_all_of<uint16_t>(call, first, s.indices(), tiles);
  case 4:
    return take_all_of<uint32_t>(call, first, s.indices(), tiles);
  default:
    return take_all_of<uint64_t>(call, first, s.indices(), tiles);
  }
}

} // namespace

CUPLUG_ENTRY int unique_cuda(const cuplug_call *call) { return unique(call); }
CUPLUG_ENTRY int unique_values_cuda(const cuplug_call *call) { return unique_values(call); }
