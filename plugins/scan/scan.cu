/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of scan.c. A long line is scanned by CUB's DeviceScan; many lines
 * by a block each, or, where they lie side by side, by a thread each. */
#include <cub/block/block_load.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/device/device_scan.cuh>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuplug/plugin.hpp>
#include <thrust/complex.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "scan/lines.h"

namespace {

constexpr int THREADS = 256, ITEMS = 8, TILE = THREADS * ITEMS;
constexpr int64_t LONG = 1 << 16;   /* elements of a line that fills a GPU by itself */
constexpr int64_t FEW = 128;        /* lines that do not, with a block for each */
constexpr int64_t FILLED = 1 << 12; /* lines that do, with a thread for each */

struct plus {
  template <typename T> __host__ __device__ T operator()(const T &a, const T &b) const {
    return a + b;
  }
  template <typename T> __host__ __device__ static T identity() { return T(0); }
};
struct times {
  template <typename T> __host__ __device__ T operator()(const T &a, const T &b) const {
    return a * b;
  }
  template <typename T> __host__ __device__ static T identity() { return T(1); }
};

/* What elements are computed with. */
template <typename T> struct computed { using type = T; };
template <> struct computed<__half> { using type = float; };
template <> struct computed<__nv_bfloat16> { using type = float; };
template <typename T> using computed_t = typename computed<T>::type;

/* Element number i of a line. */
template <typename T> struct load_at {
  const T *first;
  int64_t step;
  __host__ __device__ computed_t<T> operator()(int64_t i) const {
    return static_cast<computed_t<T>>(first[i * step]);
  }
};
struct place_at {
  int64_t step;
  __host__ __device__ int64_t operator()(int64_t i) const { return i * step; }
};

template <typename T> __host__ __device__ auto elements_from(const T *first, int64_t step) {
  return thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0),
                                         load_at<T>{first, step});
}
template <typename T> __host__ __device__ auto elements_to(T *first, int64_t step) {
  return thrust::make_permutation_iterator(
      first,
      thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), place_at{step}));
}

/* The scan of all tiles before, for the next one. */
template <typename C, typename Op> struct running {
  C total;
  __device__ C operator()(C of_tile) {
    const C before = total;
    total = Op()(before, of_tile);
    return before;
  }
};

template <typename T, typename Op>
__global__ void __launch_bounds__(THREADS)
    scan_lines_kernel(const T *__restrict__ x, T *__restrict__ out,
                      const __grid_constant__ scan_lines lines) {
  using C = computed_t<T>;
  using load = cub::BlockLoad<C, THREADS, ITEMS, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using scan = cub::BlockScan<C, THREADS>;
  using store = cub::BlockStore<C, THREADS, ITEMS, cub::BLOCK_STORE_WARP_TRANSPOSE>;
  __shared__ union {
    typename load::TempStorage load;
    typename scan::TempStorage scan;
    typename store::TempStorage store;
  } memory;
  running<C, Op> before;
  const int64_t line = blockIdx.x;
  const T *from = x + scan_from(&lines, line);
  T *to = out + scan_to(&lines, line);
  for (int64_t first = 0; first < lines.n; first += TILE) {
    const int n = lines.n - first < TILE ? (int)(lines.n - first) : TILE;
    C items[ITEMS];
    load(memory.load)
        .Load(elements_from(from + first * lines.step, lines.step), items, n,
              Op::template identity<C>());
    __syncthreads();
    if (first == 0) /* x[0] itself, not what comes of it and the identity */
      scan(memory.scan).InclusiveScan(items, items, Op(), before.total);
    else
      scan(memory.scan).InclusiveScan(items, items, Op(), before);
    __syncthreads();
    store(memory.store).Store(elements_to(to + first * lines.step, lines.step), items, n);
    __syncthreads();
  }
}

template <typename T, typename Op>
__global__ void __launch_bounds__(THREADS)
    scan_columns_kernel(const T *__restrict__ x, T *__restrict__ out,
                        const __grid_constant__ scan_lines lines) {
  const int64_t line = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (line >= lines.n_lines) return;
  const T *from = x + scan_from(&lines, line);
  T *to = out + scan_to(&lines, line);
  computed_t<T> sum = static_cast<computed_t<T>>(*from);
  *to = *from;
#pragma unroll 4
  for (int64_t i = 1; i < lines.n; i++) {
    sum = Op()(sum, static_cast<computed_t<T>>(from[i * lines.step]));
    to[i * lines.step] = static_cast<T>(sum);
  }
}

template <typename T, typename Op>
__global__ void __launch_bounds__(THREADS)
    begin_lines_kernel(T *out, const __grid_constant__ scan_lines lines) {
  const int64_t line = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (line >= lines.n_lines) return;
  out[scan_to(&lines, line) - lines.step] = static_cast<T>(Op::template identity<computed_t<T>>());
}

/* Line after line, each by all of the GPU. */
template <typename T, typename Op>
int scan_long(cuplug::call call, const T *x, T *out, const scan_lines &lines) {
  const auto scan = [&](void *scratch, size_t &bytes, int64_t line) {
    return call.check(cub::DeviceScan::InclusiveScan(
        scratch, bytes, elements_from(x + scan_from(&lines, line), lines.step),
        elements_to(out + scan_to(&lines, line), lines.step), Op(), lines.n, call.stream()));
  };
  size_t bytes = 0;
  int status = scan(nullptr, bytes, 0);
  void *scratch = status ? nullptr : call.workspace<char>((int64_t)bytes);
  if (!status && !scratch) return CUPLUG_ERROR_MEMORY;
  for (int64_t line = 0; line < lines.n_lines && !status; line++)
    status = scan(scratch, bytes, line);
  return status;
}

template <typename T, typename Op> int scan(cuplug::call call, const scan_lines &lines) {
  const cuplug_call *c = call;
  const T *x = (const T *)c->tensors[0].data;
  T *out = (T *)c->outputs[0].data;
  const cuplug::grid of_lines({cuplug::blocks(lines.n_lines, THREADS)}, THREADS);
  if (lines.has_initial)
    if (int status = call.launch<begin_lines_kernel<T, Op>>(of_lines, out, lines)) return status;
  if (lines.n == 0) return CUPLUG_OK;
  if (lines.n >= LONG && lines.n_lines <= FEW) return scan_long<T, Op>(call, x, out, lines);
  if (lines.in.width > 1 && lines.n_lines >= FILLED)
    return call.launch<scan_columns_kernel<T, Op>>(of_lines, x, out, lines);
  return call.launch<scan_lines_kernel<T, Op>>({lines.n_lines, THREADS}, x, out, lines);
}

template <typename Op> int scan(cuplug::call call, bool is_backward) {
  const cuplug_call *c = call;
  const scan_lines lines = scan_lines_of(c, is_backward);
  if (lines.n_lines == 0) return CUPLUG_OK;
  switch (cuplug_type(&c->tensors[0])) {
  case CUPLUG_INT32:
  case CUPLUG_UINT32:
    return scan<uint32_t, Op>(call, lines);
  case CUPLUG_INT64:
  case CUPLUG_UINT64:
    return scan<uint64_t, Op>(call, lines);
  case CUPLUG_FLOAT16:
    return scan<__half, Op>(call, lines);
  case CUPLUG_BFLOAT16:
    return scan<__nv_bfloat16, Op>(call, lines);
  case CUPLUG_FLOAT32:
    return scan<float, Op>(call, lines);
  case CUPLUG_FLOAT64:
    return scan<double, Op>(call, lines);
  case CUPLUG_COMPLEX64:
    return scan<thrust::complex<float>, Op>(call, lines);
  case CUPLUG_COMPLEX128:
    return scan<thrust::complex<double>, Op>(call, lines);
  }
  return call.fail(CUPLUG_ERROR_TYPE, "no code for this dtype");
}

} // namespace

CUPLUG_ENTRY int cumulative_sum_cuda(const cuplug_call *call) { return scan<plus>(call, false); }
CUPLUG_ENTRY int cumulative_sum_backward_cuda(const cuplug_call *call) {
  return scan<plus>(call, true);
}
CUPLUG_ENTRY int cumulative_prod_cuda(const cuplug_call *call) { return scan<times>(call, false); }
