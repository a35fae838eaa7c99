/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of permutation.c. */
#include "sorting/permutation.h"

#include "philox.cuh"
#include "sorting/gpu/short.cuh"

namespace {

constexpr int THREADS = SORTING_THREADS;

/* Four keys per thread, and their values. */
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

/* Keys in the order of their bits from one on. The values of equal ones ascend. */
struct ordered {
  const uint32_t *keys;
  sorted_index index;
  int64_t n;
  int first_bit;
  __device__ bool are_like(int64_t i, int64_t k) const {
    return (keys[i] ^ keys[k]) >> first_bit == 0;
  }
};

/* The position of element i among those with equal bits. */
__device__ int64_t settled(const random_source &from, const ordered &o, int64_t i) {
  const uint64_t deciding = random_deciding(&from, (uint64_t)o.index[i]);
  int64_t first = i;
  while (first > 0 && o.are_like(first - 1, i)) first--;
  int64_t place = first;
  for (int64_t k = first; k < o.n && o.are_like(k, i); k++)
    if (k != i)
      place += o.keys[k] != o.keys[i]
                   ? o.keys[k] < o.keys[i]
                   : !permutation_is_first(&from, o.index[i], deciding, o.index[k]);
  return place;
}

__device__ inline void write(const random_source &from, const ordered &o, int64_t i, int64_t *out) {
  const bool is_like = (i > 0 && o.are_like(i - 1, i)) | (i + 1 < o.n && o.are_like(i + 1, i));
  out[is_like ? settled(from, o, i) : i] = o.index[i];
}

__global__ void __launch_bounds__(THREADS)
    write_kernel(const __grid_constant__ random_source from, const ordered o, int64_t *out) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i < o.n) write(from, o, i, out);
}

/* The complete permutation by one block, for few numbers. */
__global__ void __launch_bounds__(network::THREADS)
    short_kernel(const __grid_constant__ random_source from, int64_t *out, int n) {
  __shared__ uint32_t keys[network::MOST], index[network::MOST];
  const int padded = network::padded(n);
  for (int i = 4 * threadIdx.x; i < padded; i += 4 * blockDim.x) {
    const random_bits<false, 4> bits(from, from.first + (uint64_t)i, (int)(from.first % 4));
#pragma unroll
    for (int k = 0; k < 4; k++)
      if (i + k < padded) keys[i + k] = i + k < n ? bits.at[k] : ~0u, index[i + k] = i + k;
  }
  network::sort<true>(keys, index, padded);
  const ordered o = {keys, {index, false}, n, 0};
  for (int i = threadIdx.x; i < n; i += blockDim.x) write(from, o, i, out);
}

/* The minimum number of upper bits, in complete bytes, for which 16 patterns or more exist per
 * element. */
int first_bit_of(int64_t n) {
  int first = 24;
  while (first > 0 && n > 1ll << (28 - first)) first -= 8;
  return first;
}

} // namespace

CUPLUG_ENTRY int permutation_cuda(const cuplug_call *c) {
  const cuplug::call call(c);
  const random_source from = permutation_source(c);
  const int64_t n = c->scalars[0].i;
  int64_t *const out = (int64_t *)c->outputs[0].data;
  if (n > 0 && n <= network::MOST)
    return call.launch<short_kernel>({1u, network::threads(n)}, from, out, (int)n);
  sorting s;
  int status = sorting_begin(call, &s, 4, 1, n, n);
  if (status || n == 0) return status;
  s.first_bit = first_bit_of(n);
  status = call.launch<fill_kernel>({cuplug::blocks(n, 4 * THREADS), THREADS}, from,
                                    (uint32_t *)s.keys, s.indices(), n);
  if (!status) status = sorting_run(call, &s);
  if (status) return status;
  const ordered o = {(const uint32_t *)s.keys, s.indices(), n, s.first_bit};
  return call.launch<write_kernel>({cuplug::blocks(n, THREADS), THREADS}, from, o, out);
}
