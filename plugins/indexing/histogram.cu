/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of histogram.c. */
#include <cuplug/plugin.hpp>

#include "indexing/bins.h"

namespace {

constexpr int THREADS = 512;
constexpr int64_t SHARED = 8192;  /* bins that are counted in shared memory */
constexpr int64_t MOST = 1 << 30; /* numbers of a block, whose counts have 32 bits */
constexpr int64_t BLOCKS = 1024;  /* blocks that keep any GPU busy */

constexpr int AT_ONCE = 4; /* numbers of a thread, which do not wait for each other */

/* The dtype is `type`, unless that is 0. */
template <uint32_t type, int what, bool is_shared>
__global__ void __launch_bounds__(THREADS)
    count_kernel(const __grid_constant__ bins given, unsigned long long *out, cuplug_fault *fault) {
  __shared__ unsigned own[is_shared ? SHARED : 1];
  bins b = given;
  if (type) b.type = type;
  b.is_even = what == BINS_EVEN;
  if (what != BINS_EDGES) b.edges = nullptr;
  for (int64_t k = threadIdx.x; is_shared && k < b.n_bins; k += THREADS) own[k] = 0;
  __syncthreads();
  const int64_t step = (int64_t)gridDim.x * THREADS;
  for (int64_t first = (int64_t)blockIdx.x * THREADS + threadIdx.x; first < b.n;
       first += step * AT_ONCE) {
    int64_t bin[AT_ONCE];
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++)
      bin[u] = bins_of(&b, first + u * step < b.n ? first + u * step : first);
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++) {
      if (first + u * step >= b.n) continue;
      if ((uint64_t)bin[u] >= (uint64_t)b.n_bins) {
        if (what == BINS_COUNTS)
          cuplug_fault_index(fault, 0, first + u * step, bin[u], 0, b.n_bins);
      } else if (is_shared) {
        atomicAdd(&own[bin[u]], 1u);
      } else {
        atomicAdd(&out[bin[u]], 1ull);
      }
    }
  }
  __syncthreads();
  for (int64_t k = threadIdx.x; is_shared && k < b.n_bins; k += THREADS)
    if (own[k]) atomicAdd(&out[k], (unsigned long long)own[k]);
}

/* The number of threads is the number of edges. */
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

template <uint32_t type, int what>
int count_of(cuplug::call call, const bins &b, unsigned long long *out) {
  const int64_t wanted = cuplug::blocks(b.n, THREADS * 8), least = b.n / MOST + 1;
  const int64_t blocks = wanted < BLOCKS ? wanted : least > BLOCKS ? least : BLOCKS;
  if (b.n_bins <= SHARED)
    return call.launch<count_kernel<type, what, true>>({{blocks}, {THREADS}}, b, out, call.fault());
  return call.launch<count_kernel<type, what, false>>({{blocks}, {THREADS}}, b, out, call.fault());
}

template <int what> int count(cuplug::call call) {
  const cuplug_call *c = call;
  const bins b = bins_of_call(c, what);
  auto *out = (unsigned long long *)c->outputs[0].data;
  if (int status = bins_check(c, &b)) return status;
  if (b.n_bins)
    if (int status = call.check(cudaMemsetAsync(out, 0, b.n_bins * sizeof *out, call.stream())))
      return status;
  if (b.n == 0) return CUPLUG_OK;
  if (what == BINS_EVEN && b.type == CUPLUG_FLOAT32)
    return count_of<CUPLUG_FLOAT32, BINS_EVEN>(call, b, out);
  if (what == BINS_COUNTS && b.type == CUPLUG_INT64)
    return count_of<CUPLUG_INT64, BINS_COUNTS>(call, b, out);
  return count_of<0, what>(call, b, out);
}

} // namespace

CUPLUG_ENTRY int histogram_cuda(const cuplug_call *call) { return count<BINS_EVEN>(call); }
CUPLUG_ENTRY int histogram_edges_cuda(const cuplug_call *call) {
  const int status = check_edges(call);
  return status ? status : count<BINS_EDGES>(call);
}
CUPLUG_ENTRY int bincount_cuda(const cuplug_call *call) { return count<BINS_COUNTS>(call); }
