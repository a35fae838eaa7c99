/* SPDX-License-Identifier: Apache-2.0 */
/* third(x) = x / 3, on the GPU and on the host, in one file. */
#include <cuplug/plugin.hpp>

__global__ void third_kernel(const float *__restrict__ x, float *__restrict__ out, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] / 3;
}

CUPLUG_TYPED_OPERATOR(third, "third(x: float32[...]) -> float32[...]", "A third of each element.");

CUPLUG_CUDA_ENTRY(third, x, out) {
  return call.launch<third_kernel>({cuplug::blocks(x.size(), 256), 256}, x, out, x.size());
}

CUPLUG_HOST_ENTRY(third, x, out) {
  for (int64_t i = 0; i < x.size(); i++) out[i] = x[i] / 3;
  return CUPLUG_OK;
}

CUPLUG_PLUGIN(third, "1.0.0");
