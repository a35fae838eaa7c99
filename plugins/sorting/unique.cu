/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of unique.c. The call waits once, for the number of values. */
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "sorting/radix.cuh"

namespace {

constexpr int THREADS = SORTING_THREADS;

/* 1 where a sorted key is another than the one before it. */
struct is_first {
  const void *keys;
  order o;
  __device__ uint64_t key(int64_t i) const {
    return o.n_bytes == 8 ? ((const uint64_t *)keys)[i] : ((const uint32_t *)keys)[i];
  }
  __device__ int64_t operator()(int64_t i) const {
    return i == 0 || key(i) != key(i - 1) || order_is_nan(&o, key(i));
  }
};

struct found {
  void *values;
  int64_t *indices, *inverse, *firsts;
};

/* ranks[i]: how many of the sorted keys up to number i are first. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    write_kernel(const __grid_constant__ is_first first, const int64_t *__restrict__ index,
                 const int64_t *__restrict__ ranks, const __grid_constant__ found to, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  const int64_t rank = ranks[i] - 1;
  if (to.inverse) to.inverse[index[i]] = rank;
  if (!first(i)) return;
  ((T *)to.values)[rank] = (T)order_bits(&first.o, first.key(i));
  if (!to.inverse) return;
  to.indices[rank] = index[i];
  to.firsts[rank] = i;
}

/* From where values begin to how many there are of each. */
__global__ void __launch_bounds__(THREADS)
    count_kernel(const int64_t *__restrict__ firsts, int64_t *counts, int64_t n_found, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i < n_found) counts[i] = (i + 1 < n_found ? firsts[i + 1] : n) - firsts[i];
}

/* Sorts x, and numbers the keys that differ. */
int sort_all(cuplug::call call, sorting *s, const order &o, bool has_index, int64_t **ranks,
             int64_t *n_found) {
  const cuplug_call *c = call;
  const elements_axis all = {1, cuplug_n_elements(&c->tensors[0]), 1};
  int status = sorting_begin(call, s, o.n_bytes, 1, all.m, has_index);
  *ranks = status ? nullptr : call.workspace<int64_t>(all.m);
  *n_found = 0;
  if (!*ranks) return CUPLUG_ERROR_MEMORY;
  if (all.m == 0) return CUPLUG_OK;
  status = sorting_load(call, *s, c->tensors[0], all, o);
  if (!status) status = sorting_run(call, s);
  if (status) return status;
  status = call.with_scratch([=](void *scratch, size_t &bytes) {
    const auto firsts = thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0),
                                                        is_first{s->keys, o});
    return cub::DeviceScan::InclusiveSum(scratch, bytes, firsts, *ranks, all.m, call.stream());
  });
  return status ? status : call.fetch(n_found, *ranks + all.m - 1);
}

int write(cuplug::call call, const sorting &s, const order &o, const int64_t *ranks,
          const found &to) {
  const cuplug::grid grid({cuplug::blocks(s.m, THREADS)}, THREADS);
  const is_first first = {s.keys, o};
  switch (o.n_bytes) {
  case 1:
    return call.launch<write_kernel<uint8_t>>(grid, first, s.index, ranks, to, s.m);
  case 2:
    return call.launch<write_kernel<uint16_t>>(grid, first, s.index, ranks, to, s.m);
  case 4:
    return call.launch<write_kernel<uint32_t>>(grid, first, s.index, ranks, to, s.m);
  default:
    return call.launch<write_kernel<uint64_t>>(grid, first, s.index, ranks, to, s.m);
  }
}

int unique(cuplug::call call) {
  const cuplug_call *c = call;
  const order o = order_of(&c->tensors[0], 0);
  sorting s;
  int64_t *ranks, n_found;
  int status = sort_all(call, &s, o, true, &ranks, &n_found);
  for (uint32_t k : {1u, 2u, 4u})
    if (!status) status = cuplug_output(c, k, &n_found);
  if (status || n_found == 0) return status;
  int64_t *firsts = call.workspace<int64_t>(n_found);
  if (!firsts) return CUPLUG_ERROR_MEMORY;
  const found to = {c->outputs[0].data, (int64_t *)c->outputs[1].data,
                    (int64_t *)c->outputs[2].data, firsts};
  status = write(call, s, o, ranks, to);
  return status ? status
                : call.launch<count_kernel>({cuplug::blocks(n_found, THREADS), THREADS}, firsts,
                                            (int64_t *)c->outputs[3].data, n_found, s.m);
}

int unique_values(cuplug::call call) {
  const cuplug_call *c = call;
  const order o = order_of(&c->tensors[0], 0);
  sorting s;
  int64_t *ranks, n_found;
  int status = sort_all(call, &s, o, false, &ranks, &n_found);
  if (!status) status = cuplug_output(c, 1, &n_found);
  if (status || n_found == 0) return status;
  return write(call, s, o, ranks, {c->outputs[0].data, nullptr, nullptr, nullptr});
}

} // namespace

CUPLUG_ENTRY int unique_cuda(const cuplug_call *call) { return unique(call); }
CUPLUG_ENTRY int unique_values_cuda(const cuplug_call *call) { return unique_values(call); }
