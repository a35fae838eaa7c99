/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of selection.c. CUB counts, selects and scans, in a workspace.
 * Calls wait once, for the number of elements, which is the size of the output. */
#include <cub/block/block_reduce.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <cuplug/plugin.hpp>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "selection/flags.h"

namespace {

constexpr int THREADS = 256;

/* Is element i other than 0? */
struct is_set {
  flags_of flags;
  __device__ bool operator()(int64_t i) const { return flag_at(&flags, i) != 0; }
};
struct as_count {
  flags_of flags;
  __device__ int64_t operator()(int64_t i) const { return flag_at(&flags, i); }
};

auto counts_of(const flags_of &flags) {
  return thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), as_count{flags});
}

/* *total, on the device, and its value on the host. */
int count(cuplug::call call, const flags_of &flags, int64_t n, int64_t *total, int64_t *found) {
  const int status = call.with_scratch([=](void *scratch, size_t &bytes) {
    return cub::DeviceReduce::Sum(scratch, bytes, counts_of(flags), total, n, call.stream());
  });
  return status ? status : call.fetch(found, total);
}

constexpr int64_t PACK = sizeof(uint4), AHEAD = 4, MOST_BLOCKS = 1 << 12;

/* How many of four bytes are other than 0. */
__device__ inline int n_set(unsigned x) {
  return __popc(((x & 0x7f7f7f7f) + 0x7f7f7f7f | x) & 0x80808080);
}

/* Adds to *total how many bytes of the mask are other than 0: whole packs, and those around them.
 */
__global__ void __launch_bounds__(THREADS)
    count_kernel(const uint8_t *__restrict__ mask, int64_t n, unsigned long long *total) {
  using reduce = cub::BlockReduce<long long, THREADS>;
  __shared__ typename reduce::TempStorage memory;
  const int64_t lead = -(int64_t)((uintptr_t)mask % PACK) & (PACK - 1),
                before = lead < n ? lead : n;
  const uint4 *packs = reinterpret_cast<const uint4 *>(mask + before);
  const int64_t n_packs = (n - before) / PACK, step = (int64_t)gridDim.x * THREADS;
  const int64_t own = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  const int64_t behind = before + n_packs * PACK + own;
  long long found = (own < before && mask[own]) + (own < PACK && behind < n && mask[behind]);
  for (int64_t p = own; p < n_packs; p += step * AHEAD) {
    uint4 loaded[AHEAD] = {};
#pragma unroll
    for (int u = 0; u < AHEAD; u++)
      if (p + u * step < n_packs) loaded[u] = packs[p + u * step];
#pragma unroll
    for (int u = 0; u < AHEAD; u++)
      found += n_set(loaded[u].x) + n_set(loaded[u].y) + n_set(loaded[u].z) + n_set(loaded[u].w);
  }
  found = reduce(memory).Sum(found);
  if (threadIdx.x == 0) atomicAdd(total, (unsigned long long)found);
}

/* The same of a mask, at the speed of its memory. */
int count_mask(cuplug::call call, const bool *mask, int64_t n, int64_t *total, int64_t *found) {
  int64_t n_blocks = cuplug::blocks(n, THREADS * PACK * AHEAD);
  if (n_blocks > MOST_BLOCKS) n_blocks = MOST_BLOCKS;
  int status = call.check(cudaMemsetAsync(total, 0, sizeof(*total), call.stream()));
  if (!status)
    status = call.launch<count_kernel>({n_blocks, THREADS}, (const uint8_t *)mask, n,
                                       (unsigned long long *)total);
  return status ? status : call.fetch(found, total);
}

template <typename T>
int select_as(cuplug::call call, const void *x, const bool *mask, void *out, int64_t *total,
              int64_t n) {
  return call.with_scratch([=](void *scratch, size_t &bytes) {
    return cub::DeviceSelect::Flagged(scratch, bytes, (const T *)x, mask, (T *)out, total, n,
                                      call.stream());
  });
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
  const cuplug_call *c = call;
  const cuplug_tensor &x = c->tensors[0], &mask = c->tensors[1];
  const int64_t n = cuplug_n_elements(&x);
  int64_t *total = call.workspace<int64_t>(1), n_found = 0;
  if (!total) return CUPLUG_ERROR_MEMORY;
  int status = n ? count_mask(call, (const bool *)mask.data, n, total, &n_found) : CUPLUG_OK;
  if (!status) status = cuplug_output(call, 2, &n_found);
  if (status || n_found == 0) return status;
#define CASE(T) \
  return select_as<T>(call, x.data, (const bool *)mask.data, c->outputs[0].data, total, n);
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

int nonzero(cuplug::call call) {
  const cuplug_call *c = call;
  const cuplug_tensor &x = c->tensors[0];
  const flags_of flags = flags_of_tensor(&x);
  const int64_t n = cuplug_n_elements(&x);
  int64_t *total = call.workspace<int64_t>(1), n_found = 0;
  if (!total) return CUPLUG_ERROR_MEMORY;
  int status = n ? count(call, flags, n, total, &n_found) : CUPLUG_OK;
  const int64_t shape[2] = {x.ndim, n_found};
  if (!status) status = cuplug_output(call, 1, shape);
  if (status || n_found == 0) return status;
  int64_t *out = (int64_t *)c->outputs[0].data;
  status = call.with_scratch([=](void *scratch, size_t &bytes) {
    return cub::DeviceSelect::If(scratch, bytes, thrust::counting_iterator<int64_t>(0),
                                 out + (x.ndim - 1) * n_found, total, n, is_set{flags},
                                 call.stream());
  });
  return status || x.ndim == 1 ? status : locate(call, x, out, n_found);
}

} // namespace

CUPLUG_ENTRY int select_cuda(const cuplug_call *call) { return select(call); }
CUPLUG_ENTRY int select_backward_cuda(const cuplug_call *call) { return select_backward(call); }
CUPLUG_ENTRY int nonzero_cuda(const cuplug_call *call) { return nonzero(call); }
