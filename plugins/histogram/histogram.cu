/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of histogram.c. */
#include <cuplug/plugin.hpp>

#include "histogram/bins.h"

namespace {

constexpr int THREADS = 512;
constexpr int64_t SHARED = 8192;  /* bins that are counted in shared memory */
constexpr int64_t MOST = 1 << 30; /* numbers of a block, whose counts have 32 bits */
constexpr int64_t BLOCKS = 1024;  /* that keep any GPU busy */

template <bool is_shared>
__global__ void __launch_bounds__(THREADS)
    count_kernel(const __grid_constant__ bins b, unsigned long long *out, cuplug_fault *fault) {
  extern __shared__ unsigned own[];
  for (int64_t k = threadIdx.x; is_shared && k < b.n_bins; k += THREADS) own[k] = 0;
  __syncthreads();
  const bool is_strict = !b.is_even && !b.edges;
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < b.n;
       i += (int64_t)gridDim.x * THREADS) {
    const int64_t bin = bins_of(&b, i);
    if ((uint64_t)bin >= (uint64_t)b.n_bins) {
      if (is_strict) cuplug_fault_index(fault, 0, i, bin, 0, b.n_bins);
    } else if (is_shared) {
      atomicAdd(&own[bin], 1u);
    } else {
      atomicAdd(&out[bin], 1ull);
    }
  }
  __syncthreads();
  for (int64_t k = threadIdx.x; is_shared && k < b.n_bins; k += THREADS)
    if (own[k]) atomicAdd(&out[k], (unsigned long long)own[k]);
}

/* As many threads as edges. */
__global__ void __launch_bounds__(THREADS)
    check_kernel(const __grid_constant__ bins b, cuplug_fault *fault) {
  const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (k < 1 || k > b.n_bins) return;
  if (bins_key(&b, b.edges, k) < bins_key(&b, b.edges, k - 1)) cuplug_fault_order(fault, 1, k);
}

int check_edges(cuplug::call call) {
  const bins b = bins_of_call(call, BINS_EDGES);
  if (b.n_bins == 0) return CUPLUG_OK;
  return call.launch<check_kernel>({{cuplug::blocks(b.n_bins + 1, THREADS)}, {THREADS}}, b,
                                   call.fault());
}

int count(cuplug::call call, int what) {
  const cuplug_call *c = call;
  const bins b = bins_of_call(c, what);
  auto *out = (unsigned long long *)c->outputs[0].data;
  if (b.n_bins)
    if (int status = call.check(cudaMemsetAsync(out, 0, b.n_bins * sizeof *out, call.stream())))
      return status;
  if (b.n == 0) return CUPLUG_OK;
  const int64_t wanted = cuplug::blocks(b.n, THREADS * 8), least = b.n / MOST + 1;
  const int64_t blocks = wanted < BLOCKS ? wanted : least > BLOCKS ? least : BLOCKS;
  if (b.n_bins <= SHARED)
    return call.launch<count_kernel<true>>(
        {{blocks}, {THREADS}, (uint32_t)(b.n_bins * sizeof(unsigned))}, b, out, call.fault());
  return call.launch<count_kernel<false>>({{blocks}, {THREADS}}, b, out, call.fault());
}

} // namespace

CUPLUG_ENTRY int histogram_cuda(const cuplug_call *call) { return count(call, BINS_EVEN); }
CUPLUG_ENTRY int histogram_edges_cuda(const cuplug_call *call) {
  const int status = check_edges(call);
  return status ? status : count(call, BINS_EDGES);
}
CUPLUG_ENTRY int bincount_cuda(const cuplug_call *call) { return count(call, BINS_COUNTS); }
