/* SPDX-License-Identifier: Apache-2.0 */
/* third(x) = x / 3, on the GPU and on the host, in one file. */
#include <cuplug/typed.h>

__global__ void third_kernel(const float *__restrict__ x, float *__restrict__ out, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] / 3;
}

CUPLUG_ENTRY int third_cuda(const cuplug_call *call) {
  const int64_t n = cuplug_n_elements(&call->tensors[0]);
  return cuplug_launch<third_kernel>(call, cuplug_n_blocks(n, 256), 256, 0,
                                     cuplug_data<float>(call, 0), cuplug_data<float>(call, 1), n);
}

CUPLUG_ENTRY int third_host(const cuplug_call *call) {
  const float *x = cuplug_data<float>(call, 0);
  float *out = cuplug_data<float>(call, 1);
  for (int64_t i = 0; i < cuplug_n_elements(&call->tensors[0]); i++) out[i] = x[i] / 3;
  return CUPLUG_OK;
}

CUPLUG_OPERATOR(third_cuda, third_host, "third(x: float32[...]) -> float32[...]",
                "A third of each element.");
CUPLUG_PLUGIN(third, "1.0.0");
