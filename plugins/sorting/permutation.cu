/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of permutation.c. */
#include "sorting/permutation.h"

#include "philox.cuh"
#include "sorting/radix.cuh"

namespace {

constexpr int THREADS = SORTING_THREADS;

/* Four keys a thread, and what goes with them. */
__global__ void __launch_bounds__(THREADS)
    fill_kernel(const __grid_constant__ random_source from, uint32_t *keys,
                const sorted_index index, int64_t n) {
  const int64_t i = 4 * ((int64_t)blockIdx.x * THREADS + threadIdx.x);
  if (i >= n) return;
  const random_bits<false, 4> bits(from, from.first + (uint64_t)i, (int)(from.first % 4));
  random_pack<uint32_t> own, numbers;
#pragma unroll
  for (int k = 0; k < 4; k++) own.of[k] = bits.at[k], numbers.of[k] = (uint32_t)(i + k);
  if (i + 4 <= n && !index.is_wide) {
    random_store(keys + i, own);
    random_store((uint32_t *)index.at + i, numbers);
    return;
  }
#pragma unroll
  for (int k = 0; k < 4; k++)
    if (i + k < n) keys[i + k] = own.of[k], index.set(i + k, i + k);
}

/* Where element i goes, among those whose keys are equal to its own. */
__device__ int64_t settled(const random_source &from, const uint32_t *keys,
                           const sorted_index index, int64_t i, int64_t n) {
  const uint64_t deciding = random_deciding(&from, (uint64_t)index[i]);
  int64_t first = i;
  while (first > 0 && keys[first - 1] == keys[i]) first--;
  int64_t place = first;
  for (int64_t k = first; k < n && keys[k] == keys[i]; k++)
    place += k != i && !permutation_is_first(&from, index[i], deciding, index[k]);
  return place;
}

__global__ void __launch_bounds__(THREADS)
    write_kernel(const __grid_constant__ random_source from, const uint32_t *__restrict__ keys,
                 const sorted_index index, int64_t *out, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  const uint32_t key = keys[i];
  const int64_t number = index[i];
  const bool is_like = (i > 0 && keys[i - 1] == key) | (i + 1 < n && keys[i + 1] == key);
  out[is_like ? settled(from, keys, index, i, n) : i] = number;
}

} // namespace

CUPLUG_ENTRY int permutation_cuda(const cuplug_call *c) {
  const cuplug::call call(c);
  const random_source from = permutation_source(c);
  const int64_t n = c->scalars[0].i;
  sorting s;
  int status = sorting_begin(call, &s, 4, 1, n, n);
  if (status || n == 0) return status;
  status = call.launch<fill_kernel>({cuplug::blocks(n, 4 * THREADS), THREADS}, from,
                                    (uint32_t *)s.keys, s.indices(), n);
  if (!status) status = sorting_run(call, &s);
  if (status) return status;
  return call.launch<write_kernel>({cuplug::blocks(n, THREADS), THREADS}, from,
                                   (const uint32_t *)s.keys, s.indices(),
                                   (int64_t *)c->outputs[0].data, n);
}
