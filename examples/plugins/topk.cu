/* SPDX-License-Identifier: Apache-2.0 */
/* topk(x, k) = the k largest of x in descending order, and their positions.
 * x: T[n] -> T[k], int64[k]. T: float32, float64. Of equal values the first comes first. NaN comes
 * before all numbers. It is for small k: on the GPU, one block reads x once for each of the k, each
 * time for the largest remaining value. */
#include <algorithm>
#include <cuplug/plugin.hpp>

constexpr int THREADS = 1024;

/* Whether value a at i comes before b at j: a strict order of all pairs. */
template <typename T> __host__ __device__ bool comes_before(T a, int64_t i, T b, int64_t j) {
  if (a != a || b != b) return a != a && (b == b || i < j);
  return a > b || (a == b && i < j);
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    topk_kernel(const T *__restrict__ x, int64_t n, int64_t k, T *values, int64_t *indices) {
  __shared__ T value_of[THREADS];
  __shared__ int64_t place_of[THREADS];
  for (int64_t rank = 0; rank < k; rank++) {
    int64_t best = -1;
    for (int64_t i = threadIdx.x; i < n; i += THREADS) {
      if (rank && !comes_before(values[rank - 1], indices[rank - 1], x[i], i)) continue;
      if (best < 0 || comes_before(x[i], i, x[best], best)) best = i;
    }
    place_of[threadIdx.x] = best;
    if (best >= 0) value_of[threadIdx.x] = x[best];
    for (int half = THREADS / 2; half; half /= 2) {
      __syncthreads();
      const int own = threadIdx.x, other = own + half;
      if (own >= half || place_of[other] < 0) continue;
      if (place_of[own] < 0 ||
          comes_before(value_of[other], place_of[other], value_of[own], place_of[own])) {
        value_of[own] = value_of[other];
        place_of[own] = place_of[other];
      }
    }
    if (threadIdx.x == 0) values[rank] = value_of[0], indices[rank] = place_of[0];
    __syncthreads();
  }
}
/* ---- beyond the kernel ---- */
CUPLUG_TYPED_OPERATOR(topk,
                      "topk(x: T[n], k: int) -> (values: T[k], indices: int64[k]) "
                      "where T: float32 | float64, 0 <= k <= n",
                      "The k largest in descending order, and their positions.");

CUPLUG_CUDA_ENTRY(topk, (T), x, n, k, values, indices) {
  return call.launch<topk_kernel<T>>({1, THREADS}, x, n, k, values, indices);
}

CUPLUG_HOST_ENTRY(topk, (T), x, n, k, values, indices) {
  int64_t *order = call.workspace<int64_t>(n);
  if (!order) return CUPLUG_ERROR_MEMORY;
  for (int64_t i = 0; i < n; i++) order[i] = i;
  std::partial_sort(order, order + k, order + n,
                    [=](int64_t i, int64_t j) { return comes_before(x[i], i, x[j], j); });
  for (int64_t i = 0; i < k; i++) values[i] = x[order[i]], indices[i] = order[i];
  return CUPLUG_OK;
}
CUPLUG_PLUGIN(topk, "1.0.0");
