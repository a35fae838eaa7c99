/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of selection.c. Tiles are counted, CUB adds up the counts, in a
 * workspace, and each tile is then taken to its place. Calls wait once, for the number of elements,
 * which is the size of the output. */
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_scan.cuh>
#include <cuplug/plugin.hpp>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "selection/flags.h"

namespace {

constexpr int THREADS = 256;

struct as_count {
  flags_of flags;
  __device__ int64_t operator()(int64_t i) const { return flag_at(&flags, i); }
};

auto counts_of(const flags_of &flags) {
  return thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), as_count{flags});
}

/* A tile is of a block; its threads have ITEMS elements each, those of a warp side by side. */
constexpr int WARP = 32, WARPS = THREADS / WARP, ITEMS = 16, TILE = THREADS * ITEMS;

/* Is element i, of the width of W, other than 0? With a width that the compiler knows. */
template <typename W> __device__ inline bool is_set(const flags_of &flags, int64_t i) {
  const flags_of known = {flags.data, sizeof(W), flags.mask};
  return flag_at(&known, i) != 0;
}

/* The flags of a thread's items, a bit for each: bit j is of element first + j * THREADS. */
template <typename W>
__device__ inline unsigned flags_from(const flags_of &flags, int64_t first, int64_t n) {
  unsigned found = 0;
#pragma unroll
  for (int j = 0; j < ITEMS; j++) {
    const int64_t i = first + j * THREADS;
    if (i < n) found |= (unsigned)is_set<W>(flags, i) << j;
  }
  return found;
}

/* counts[tile]: how many elements of a tile are other than 0. */
template <typename W>
__global__ void __launch_bounds__(THREADS)
    count_kernel(const __grid_constant__ flags_of flags, int64_t n, int64_t *counts) {
  using reduce = cub::BlockReduce<int, THREADS>;
  __shared__ typename reduce::TempStorage memory;
  const int64_t first = (int64_t)blockIdx.x * TILE + threadIdx.x;
  const int found = reduce(memory).Sum(__popc(flags_from<W>(flags, first, n)));
  if (threadIdx.x == 0) counts[blockIdx.x] = found;
}

/* What is taken of element i: itself, or its number. */
template <typename T> struct element_of {
  const T *x;
  __device__ T operator()(int64_t i) const { return x[i]; }
};
struct number_of {
  __device__ int64_t operator()(int64_t i) const { return i; }
};

/* out[before[tile] ...]: what is taken of the elements of a tile that are other than 0, in order:
 * item j of all warps, one warp after the other, then item j + 1. */
template <typename W, typename T, typename F>
__global__ void __launch_bounds__(THREADS)
    take_kernel(const __grid_constant__ flags_of flags, int64_t n,
                const int64_t *__restrict__ before, T *__restrict__ out, F take) {
  using scan = cub::BlockScan<int, THREADS>;
  __shared__ typename scan::TempStorage memory;
  __shared__ int places[THREADS];
  static_assert(ITEMS * WARPS <= THREADS, "a place for each item of each warp");
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const int64_t first = (int64_t)blockIdx.x * TILE + threadIdx.x;
  const unsigned found = flags_from<W>(flags, first, n);
  T items[ITEMS];
#pragma unroll
  for (int j = 0; j < ITEMS; j++)
    if (found >> j & 1) items[j] = take(first + j * THREADS);
  places[threadIdx.x] = 0;
  __syncthreads();
#pragma unroll
  for (int j = 0; j < ITEMS; j++) {
    const unsigned of_warp = __ballot_sync(~0u, found >> j & 1);
    if (lane == 0) places[j * WARPS + warp] = __popc(of_warp);
  }
  __syncthreads();
  int place = places[threadIdx.x];
  scan(memory).ExclusiveSum(place, place);
  places[threadIdx.x] = place;
  __syncthreads();
  T *to = out + before[blockIdx.x];
#pragma unroll
  for (int j = 0; j < ITEMS; j++) {
    const unsigned below = __ballot_sync(~0u, found >> j & 1) & ((1u << lane) - 1);
    if (found >> j & 1) to[places[j * WARPS + warp] + __popc(below)] = items[j];
  }
}

/* What is known of an array's elements that are other than 0 before they are taken. */
struct counted {
  int64_t n_tiles, n_found;
  int64_t *before; /* of each tile: how many are in those before it */
};

template <typename W> int count(cuplug::call call, const flags_of &flags, int64_t n, counted *c) {
  *c = {cuplug::blocks(n, TILE), 0, nullptr};
  if (n == 0) return CUPLUG_OK;
  int64_t *before = c->before = call.workspace<int64_t>(c->n_tiles + 1);
  if (!before) return CUPLUG_ERROR_MEMORY;
  int status = call.check(cudaMemsetAsync(before + c->n_tiles, 0, sizeof(*before), call.stream()));
  if (!status) status = call.launch<count_kernel<W>>({c->n_tiles, THREADS}, flags, n, before);
  if (status) return status;
  status = call.with_scratch([=](void *scratch, size_t &bytes) {
    return cub::DeviceScan::ExclusiveSum(scratch, bytes, before, before, c->n_tiles + 1,
                                         call.stream());
  });
  return status ? status : call.fetch(&c->n_found, before + c->n_tiles);
}

template <typename T>
int select_as(cuplug::call call, const void *x, const flags_of &mask, void *out, int64_t n,
              const counted &c) {
  return call.launch<take_kernel<uint8_t, T, element_of<T>>>({c.n_tiles, THREADS}, mask, n,
                                                             (const int64_t *)c.before, (T *)out,
                                                             element_of<T>{(const T *)x});
}

/* before[i]: how many elements of the mask before number i are true. A mask with another number of
 * true elements than grad has is a fault. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    expand_kernel(const T *__restrict__ grad, const bool *__restrict__ mask,
                  const int64_t *__restrict__ before, T *__restrict__ out, int64_t n,
                  int64_t n_grad, cuplug_fault *fault) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  const int64_t at = before[i];
  const bool is_given = mask[i] && at < n_grad;
  out[i] = is_given ? grad[at] : T{};
  if (mask[i] && !is_given) cuplug_fault_index(fault, 1, i, at, 0, n_grad);
  if (i == n - 1 && at + mask[i] < n_grad)
    cuplug_fault_index(fault, 0, n_grad - 1, n_grad - 1, 0, at + mask[i]);
}

template <typename T>
int expand_as(cuplug::call call, const bool *mask, const int64_t *before, int64_t n) {
  const cuplug_call *c = call;
  return call.launch<expand_kernel<T>>(
      {cuplug::blocks(n, THREADS), THREADS}, (const T *)c->tensors[0].data, mask, before,
      (T *)c->outputs[0].data, n, c->tensors[0].shape[0], call.fault());
}

/* Numbers of elements, in the last row of out, become positions along each dimension. */
struct sizes_of {
  int64_t at[64];
  int n;
};
__global__ void __launch_bounds__(THREADS)
    locate_kernel(int64_t *out, int64_t n_found, const __grid_constant__ sizes_of sizes) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= n_found) return;
  int64_t rest = out[(sizes.n - 1) * n_found + i];
  for (int d = sizes.n - 1; d > 0; d--) {
    const int64_t outer = rest / sizes.at[d];
    out[d * n_found + i] = rest - outer * sizes.at[d];
    rest = outer;
  }
  out[i] = rest;
}

int locate(cuplug::call call, const cuplug_tensor &x, int64_t *out, int64_t n_found) {
  sizes_of sizes = {{}, x.ndim};
  for (int d = 0; d < x.ndim; d++) sizes.at[d] = x.shape[d];
  return call.launch<locate_kernel>({cuplug::blocks(n_found, THREADS), THREADS}, out, n_found,
                                    sizes);
}

int select(cuplug::call call) {
  const cuplug_call *call_of = call;
  const cuplug_tensor &x = call_of->tensors[0], &mask = call_of->tensors[1];
  const int64_t n = cuplug_n_elements(&x);
  const flags_of flags = flags_of_tensor(&mask);
  counted c;
  int status = count<uint8_t>(call, flags, n, &c);
  if (!status) status = cuplug_output(call, 2, &c.n_found);
  if (status || c.n_found == 0) return status;
#define CASE(T) return select_as<T>(call, x.data, flags, call_of->outputs[0].data, n, c);
  ELEMENTS_BY_WIDTH(cuplug_element_bytes(&x), CASE)
#undef CASE
  return CUPLUG_OK;
}

int select_backward(cuplug::call call) {
  const cuplug_call *c = call;
  const cuplug_tensor &mask = c->tensors[1];
  const int64_t n = cuplug_n_elements(&mask);
  int64_t *before = call.workspace<int64_t>(n);
  if (!before) return CUPLUG_ERROR_MEMORY;
  if (n == 0) return CUPLUG_OK;
  const int status = call.with_scratch([=](void *scratch, size_t &bytes) {
    return cub::DeviceScan::ExclusiveSum(scratch, bytes, counts_of(flags_of_tensor(&mask)), before,
                                         n, call.stream());
  });
  if (status) return status;
#define CASE(T) return expand_as<T>(call, (const bool *)mask.data, before, n);
  ELEMENTS_BY_WIDTH(cuplug_element_bytes(&c->tensors[0]), CASE)
#undef CASE
  return CUPLUG_OK;
}

template <typename W> int nonzero_as(cuplug::call call) {
  const cuplug_call *call_of = call;
  const cuplug_tensor &x = call_of->tensors[0];
  const flags_of flags = flags_of_tensor(&x);
  const int64_t n = cuplug_n_elements(&x);
  counted c;
  int status = count<W>(call, flags, n, &c);
  const int64_t shape[2] = {x.ndim, c.n_found};
  if (!status) status = cuplug_output(call, 1, shape);
  if (status || c.n_found == 0) return status;
  int64_t *out = (int64_t *)call_of->outputs[0].data;
  status = call.launch<take_kernel<W, int64_t, number_of>>(
      {c.n_tiles, THREADS}, flags, n, (const int64_t *)c.before, out + (x.ndim - 1) * c.n_found,
      number_of{});
  return status || x.ndim == 1 ? status : locate(call, x, out, c.n_found);
}

int nonzero(cuplug::call call) {
#define CASE(W) return nonzero_as<W>(call);
  ELEMENTS_BY_WIDTH(cuplug_element_bytes(&((const cuplug_call *)call)->tensors[0]), CASE)
#undef CASE
  return CUPLUG_OK;
}

} // namespace

CUPLUG_ENTRY int select_cuda(const cuplug_call *call) { return select(call); }
CUPLUG_ENTRY int select_backward_cuda(const cuplug_call *call) { return select_backward(call); }
CUPLUG_ENTRY int nonzero_cuda(const cuplug_call *call) { return nonzero(call); }
