/* SPDX-License-Identifier: Apache-2.0 */
/* quantize(x, to): y[i] = x[i] / scale[i] in float8, scale[i] = max |x[i]| / most, for each row:
 * activations before a product in float8.
 *                                     x: T[m, n], to: a dtype -> y: to[m, n], scale: float32[m]
 * T: float32, bfloat16. to: float8_e4m3fn (most = 448), float8_e5m2 (most = 57344). The scale of a
 * row of zeros is 1. NaN and infinities get no special treatment. */
#include "block.cuh"

#include <cuda_fp8.h>

template <typename To> constexpr float most = 448;
template <> constexpr float most<__nv_fp8_e5m2> = 57344;

/* One block for each row. */
template <typename T, typename To>
__global__ void __launch_bounds__(THREADS)
    quantize_kernel(const T *__restrict__ x, To *__restrict__ y, float *scale, int64_t n) {
  const T *row = x + blockIdx.x * n;
  float greatest = 0;
  each<1>(row, n, [&](int64_t, float a) { greatest = fmaxf(greatest, fabsf(a)); });
  greatest = reduce_block(greatest, 0, greater_of());
  const float by = greatest > 0 ? greatest / most<To> : 1;
  each<1>(row, n, [&](int64_t i, float a) { y[blockIdx.x * n + i] = To(a / by); });
  if (threadIdx.x == 0) scale[blockIdx.x] = by;
}
/* ---- beyond the kernel ---- */
CUPLUG_TYPED_OPERATOR(quantize,
                      "quantize(x: T[m, n], to: dtype = float8_e4m3fn) -> "
                      "(y: to[m, n], detached scale: float32[m]) "
                      "where T: float32 | bfloat16, to: float8_e4m3fn | float8_e5m2",
                      "Rows in float8, and the scale of each.");

CUPLUG_CUDA_ENTRY(quantize, (T, to), x, m, n, y, scale) {
  return call.launch<quantize_kernel<T, to>>({m, threads_for(n, 1)}, x, y, scale, n);
}

CUPLUG_HOST_ENTRY(quantize, (T, to), x, m, n, y, scale) {
  for (int64_t i = 0; i < m; i++) {
    float greatest = 0;
    for (int64_t j = 0; j < n; j++) greatest = fmaxf(greatest, fabsf((float)x[i * n + j]));
    scale[i] = greatest > 0 ? greatest / most<to> : 1;
    for (int64_t j = 0; j < n; j++) y[i * n + j] = to((float)x[i * n + j] / scale[i]);
  }
  return CUPLUG_OK;
}
CUPLUG_PLUGIN(quantize, "1.0.0");
