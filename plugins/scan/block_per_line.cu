/* SPDX-License-Identifier: Apache-2.0 */
/* Each line is scanned by a block, tile after tile. */
#include <cub/block/block_load.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "scan/values.cuh"

namespace {

constexpr int THREADS = 256, ITEMS = 8, TILE = THREADS * ITEMS;

/* Element number i of a line. */
template <typename T> struct load_at {
  const T *first;
  int64_t step;
  __host__ __device__ scan_computed_t<T> operator()(int64_t i) const {
    return static_cast<scan_computed_t<T>>(first[i * step]);
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

/* The scan of all preceding tiles, for the next one. */
template <typename C, typename Op> struct running {
  C total;
  __device__ C operator()(C of_tile) {
    const C before = total;
    total = Op()(before, of_tile);
    return before;
  }
};

template <typename T, typename Op>
__global__ void __launch_bounds__(THREADS) each_kernel(const T *__restrict__ x, T *__restrict__ out,
                                                       const __grid_constant__ scan_lines lines) {
  using C = scan_computed_t<T>;
  using load = cub::BlockLoad<C, THREADS, ITEMS, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using scan = cub::BlockScan<C, THREADS>;
  using store = cub::BlockStore<C, THREADS, ITEMS, cub::BLOCK_STORE_WARP_TRANSPOSE>;
  __shared__ union {
    typename load::TempStorage load;
    typename scan::TempStorage scan;
    typename store::TempStorage store;
  } memory;
  running<C, Op> before = {Op::template identity<C>()};
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
    scan(memory.scan).InclusiveScan(items, items, Op(), before);
    __syncthreads();
    store(memory.store).Store(elements_to(to + first * lines.step, lines.step), items, n);
    __syncthreads();
  }
}

template <typename T, typename Op>
int run(cuplug::call call, const T *x, T *out, const scan_lines &lines) {
  return call.launch<each_kernel<T, Op>>({lines.n_lines, THREADS}, x, out, lines);
}

} // namespace

SCAN_DTYPES(SCAN_DEFINE, scan_each)
