/* SPDX-License-Identifier: Apache-2.0 */
/* blend(x, y, weight) = x + weight * (y - x), on the GPU and on the host. */
#include <cuplug/plugin.hpp>

CUPLUG_TYPED_OPERATOR(blend,
                      "blend(x: float32[*n], y: float32[*n], weight: float32) -> float32[*n]",
                      "x + weight * (y - x), element by element.");

#ifdef __CUDACC__
__global__ void blend_kernel(const float *__restrict__ x, const float *__restrict__ y, float weight,
                             float *__restrict__ out, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + weight * (y[i] - x[i]);
}

CUPLUG_CUDA_ENTRY(blend, x, y, weight, out) {
  return call.launch<blend_kernel>({cuplug::blocks(x.size(), 256), 256}, x, y, weight, out,
                                   x.size());
}
#endif

CUPLUG_HOST_ENTRY(blend, x, y, weight, out) {
  for (int64_t i = 0; i < x.size(); i++) out[i] = x[i] + weight * (y[i] - x[i]);
  return CUPLUG_OK;
}

CUPLUG_PLUGIN(blend, "0.1.0");
