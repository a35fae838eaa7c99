/* SPDX-License-Identifier: Apache-2.0 */
/* max_pool(x, size): y[n, c, i, j] = the largest x[n, c, size i + a, size j + b], 0 <= a, b < size;
 * NaN if one is NaN. The remaining h % size rows and w % size columns are ignored.
 *                     x: T[n, c, h, w], size = 2 -> y: T[n, c, h // size, w // size]
 * T: float16, bfloat16, float32. y has the layout of x, without gaps, so channels-last images give
 * channels-last ones. Threads process the elements of y in memory order. In either layout, adjacent
 * threads write adjacent elements, and read elements that are adjacent or `size` apart. */
#include "block.cuh"

template <typename T> struct images {
  T *data;
  int64_t size[4], stride[4];

  explicit images(const cuplug::array<T> &x) : data(x.data()) {
    for (int d = 0; d < 4; d++) size[d] = x.shape(d), stride[d] = x.stride(d);
  }
};

/* The element of y that is number i in memory. */
template <typename T>
__host__ __device__ T pooled(const images<const T> &x, const images<T> &y, int64_t size,
                             int64_t i) {
  const T *from = x.data;
  for (int d = 0; d < 4; d++)
    from += i / y.stride[d] % y.size[d] * (d < 2 ? 1 : size) * x.stride[d];
  float greatest = (float)*from;
  for (int64_t a = 0; a < size; a++)
    for (int64_t b = 0; b < size; b++) {
      const float value = (float)from[a * x.stride[2] + b * x.stride[3]];
      if (value > greatest || value != value) greatest = value;
    }
  return (T)greatest;
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    max_pool_kernel(images<const T> x, images<T> y, int64_t size, int64_t n) {
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
    y.data[i] = pooled(x, y, size, i);
}
/* ---- beyond the kernel ---- */
CUPLUG_TYPED_OPERATOR(max_pool,
                      "max_pool(x: T[n, c, h, w], size: int = 2) -> "
                      "y: T[n, c, h // size, w // size] like x "
                      "where T: float16 | bfloat16 | float32, size > 0",
                      "The greatest of each square of an image." CUPLUG_TAKES_STRIDES);

CUPLUG_CUDA_ENTRY(max_pool, (T), x, size, y) {
  return call.launch<max_pool_kernel<T>>({cuplug::blocks(y.size(), THREADS), THREADS},
                                         images<const T>(x), images<T>(y), size, y.size());
}

CUPLUG_HOST_ENTRY(max_pool, (T), x, size, y) {
  for (int64_t i = 0; i < y.size(); i++) y[i] = pooled(images<const T>(x), images<T>(y), size, i);
  return CUPLUG_OK;
}
CUPLUG_PLUGIN(max_pool, "1.0.0");
