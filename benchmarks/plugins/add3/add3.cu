/* SPDX-License-Identifier: Apache-2.0 */
#include "add_kernel.cuh"

#include <cuplug/plugin.h>

CUPLUG_ENTRY int add3_cuda(const cuplug_call *call) {
  const cuplug_tensor *x = &call->tensors[0], *y = &call->tensors[1], *z = &call->tensors[2];
  int64_t n = cuplug_n_elements(x);
  unsigned n_blocks = (unsigned)((n + 31) / 32);
  if (n == 0) return CUPLUG_OK;
  return cuplug_launch<add_kernel>(call, n_blocks, 32, 0, (const float *)x->data,
                                   (const float *)y->data, (float *)z->data, n);
}

CUPLUG_PLUGIN(add3, "1.0.0",
              CUPLUG_CUDA_OPERATOR(add3_cuda, "add3(x: float32[n], y: float32[n]) -> float32[n]",
                                   "x + y."),
              CUPLUG_CUDA_OPERATOR(add3_cuda,
                                   "add3_into(x: float32[n], y: float32[n], inout z: float32[n])",
                                   "x + y, written to z."))
