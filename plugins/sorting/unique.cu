/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of unique.c. The call waits for the number of values: once, or
 * twice if it first had to find that they are not few. */
#include "compaction.cuh"
#include "sorting/gpu/radix.cuh"

namespace {

constexpr int THREADS = SORTING_THREADS;

/* Returns whether a sorted key differs from the one before it; 0.0 equals -0.0. */
template <typename K> struct is_first {
  static constexpr bool ARE_BYTES = false;
  const K *keys;
  order o;
  __device__ bool operator()(int64_t i) const {
    const K own = keys[i], before = keys[i ? i - 1 : 0];
    const bool are_zeros = sorting_is_minus_zero(o, before) && sorting_is_zero(o, own);
    return i == 0 || (own != before && !are_zeros) || order_is_nan(&o, own);
  }
};

template <typename T> struct take_value {
  using K = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  static constexpr bool ALL = false;
  using item = K;
  is_first<K> first;
  T *values;
  unsigned long long *words; /* of sorting_restore */
  __device__ K load(int64_t i) const { return first.keys[i]; }
  __device__ void store(K key, int64_t, int64_t place, bool) const {
    values[place] = (T)order_bits(&first.o, words ? sorting_written(first.o, key, words) : key);
  }
};

/* With the positions of values, the value of each element, and their starts among the keys. */
template <typename T> struct take_all {
  static constexpr bool ALL = true;
  using item = int64_t;
  take_value<T> values;
  const T *x;
  sorted_index index;
  int64_t *indices, *inverse, *firsts;
  __device__ int64_t load(int64_t i) const { return index[i]; }
  __device__ void store(int64_t from, int64_t i, int64_t place, bool is_set) const {
    inverse[from] = is_set ? place : place - 1;
    if (!is_set) return;
    const auto key = values.load(i);
    if (sorting_is_zero(values.first.o, key) || sorting_is_nan(values.first.o, key))
      values.values[place] = x[from];
    else
      values.store(key, i, place, true);
    indices[place] = from;
    firsts[place] = i;
  }
};

/* Converts the starts of values to their counts. */
__global__ void __launch_bounds__(THREADS)
    count_kernel(const int64_t *__restrict__ firsts, int64_t *counts, int64_t n_found, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i < n_found) counts[i] = (i + 1 < n_found ? firsts[i + 1] : n) - firsts[i];
}

/* Sorts x, and counts the unique keys, which is the size of the outputs. */
template <typename T>
int sort_all(cuplug::call call, sorting *s, const order &o, bool has_index, take_value<T> *values,
             compaction::tiles *tiles) {
  const cuplug_call *c = call;
  const elements_axis all = {1, cuplug_n_elements(&c->tensors[0]), 1};
  const order of_keys = has_index ? o : order_with_signs(o);
  int status = sorting_begin(call, s, o.n_bytes, 1, all.m, has_index ? all.m : 0);
  if (!status && !has_index) status = sorting_begin_restore(call, s, o);
  if (!status && all.m) status = sorting_load(call, s, c->tensors[0], all, of_keys);
  if (!status) status = sorting_run(call, s);
  *values = {{(const typename take_value<T>::K *)s->keys, of_keys}, nullptr, s->words};
  if (!status) status = compaction::count(call, values->first, all.m, tiles);
  for (uint32_t k : {1u, 2u, 4u})
    if (!status && (has_index || k == 1)) status = cuplug_output(c, k, &tiles->n_found);
  values->values = (T *)c->outputs[0].data;
  return status;
}

template <typename T> int unique_values(cuplug::call call, const order &o) {
  const cuplug_call *c = call;
  sorting s;
  compaction::tiles tiles;
  take_value<T> values;
  int status = sort_all(call, &s, o, false, &values, &tiles);
  if (status || tiles.n_found == 0) return status;
  status = compaction::take(call, values, tiles);
  if (status || !s.words) return status;
  const elements_axis all = {1, s.m, 1};
  return sorting_restore(call, s, c->tensors[0], all, o, values.values, tiles.n_found);
}

template <typename T> int unique(cuplug::call call, const order &o) {
  const cuplug_call *c = call;
  const auto output = [c](int k) { return (int64_t *)c->outputs[k].data; };
  sorting s;
  compaction::tiles tiles;
  take_value<T> values;
  int status = sort_all(call, &s, o, true, &values, &tiles);
  if (status || tiles.n_found == 0) return status;
  int64_t *firsts = call.workspace<int64_t>(tiles.n_found);
  if (!firsts) return CUPLUG_ERROR_MEMORY;
  const take_all<T> all = {values, (const T *)c->tensors[0].data, s.indices(), output(1), output(2),
                           firsts};
  const cuplug::grid grid({cuplug::blocks(tiles.n_found, THREADS)}, THREADS);
  status = compaction::take(call, all, tiles);
  return status ? status
                : call.launch<count_kernel>(grid, firsts, output(3), tiles.n_found, tiles.n);
}

template <bool has_index> int run(cuplug::call call) {
  const cuplug_call *c = call;
  const order o = order_of(&c->tensors[0], 0);
  bool is_done;
  const int status =
      sorting_unique_few(call, o, cuplug_n_elements(&c->tensors[0]), has_index, &is_done);
  if (status || is_done) return status;
#define CASE(T) return has_index ? unique<T>(call, o) : unique_values<T>(call, o);
  switch (o.n_bytes) {
  case 1:
    CASE(uint8_t)
  case 2:
    CASE(uint16_t)
  case 4:
    CASE(uint32_t)
  default:
    CASE(uint64_t)
  }
#undef CASE
}

} // namespace

CUPLUG_ENTRY int unique_cuda(const cuplug_call *call) { return run<true>(call); }
CUPLUG_ENTRY int unique_values_cuda(const cuplug_call *call) { return run<false>(call); }
