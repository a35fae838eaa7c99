/* SPDX-License-Identifier: Apache-2.0 */
#include "chain_kernel.cuh"

#include <cuplug/plugin.h>

CUPLUG_ENTRY int chain_cuda(const cuplug_call *call) {
  int64_t n = cuplug_n_elements(&call->tensors[0]);
  unsigned n_blocks = (unsigned)((n + 31) / 32);
  float factor = call->n_scalars ? (float)call->scalars[0].f : 1.0f;
  chain_arrays arrays;
  if (n == 0) return CUPLUG_OK;
  arrays.n_arrays = (int)call->n_tensors;
  for (uint32_t k = 0; k < call->n_tensors; k++) arrays.data[k] = (float *)call->tensors[k].data;
  return cuplug_launch<chain_kernel>(call, n_blocks, 32, 0, arrays, factor, n);
}

CUPLUG_PLUGIN(
    chain, "1.0.0", CUPLUG_CUDA_OPERATOR(chain_cuda, "chain1(inout a: float32[n])", "1 array."),
    CUPLUG_CUDA_OPERATOR(chain_cuda,
                         "chain3(a: float32[n], b: float32[n], inout c: float32[n], "
                         "factor: float32 = 1.0, mode: \"raise\" | \"wrap\" = \"raise\")",
                         "3 arrays, a scalar and a choice."),
    CUPLUG_CUDA_OPERATOR(chain_cuda,
                         "chain8(a: float32[n], b: float32[n], c: float32[n], d: float32[n], "
                         "e: float32[n], f: float32[n], g: float32[n], inout h: float32[n])",
                         "8 arrays."),
    CUPLUG_CUDA_OPERATOR(chain_cuda,
                         "chain14(a: float32[n], b: float32[n], c: float32[n], d: float32[n], "
                         "e: float32[n], f: float32[n], g: float32[n], h: float32[n], "
                         "i: float32[n], j: float32[n], k: float32[n], l: float32[n], "
                         "m: float32[n], inout o: float32[n])",
                         "14 arrays."))
