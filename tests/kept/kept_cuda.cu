/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel with faults, a workspace and a second stream, as ABI 2.0 has them. The binary beside it
 * has PTX for compute capability 7.5, and must work for as long as ABI 2 lives. */
#include <cuplug/plugin.h>

__global__ void take_kernel(const float *x, const int64_t *index, float *y, int64_t n, int64_t m,
                            cuplug_fault *fault) {
  for (int64_t k = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; k < m;
       k += (int64_t)gridDim.x * blockDim.x) {
    const int64_t i = index[k];
    if (i < 0 || i >= n)
      cuplug_fault_index(fault, 1, k, i, 0, n);
    else if (x[i] < 0)
      cuplug_fault_text(fault, 1, 0, i, (int64_t)x[i]);
    else
      y[k] = x[i];
  }
}

CUPLUG_ENTRY int take_cuda(const cuplug_call *call) {
  const cuplug_tensor *x = &call->tensors[0], *index = &call->tensors[1], *y = &call->outputs[0];
  const int64_t m = cuplug_n_elements(index);
  int64_t n_processors;
  int status = cuplug_device_attribute(call, 16, &n_processors);
  if (status || !m) return status;
  void *copy = cuplug_workspace(call, (uint64_t)m * sizeof(int64_t));
  if (!copy) return CUPLUG_ERROR_MEMORY;
  void *second = cuplug_second_stream(call);
  if (!second) return CUPLUG_ERROR_CUDA;
  cudaMemcpyAsync(copy, index->data, (size_t)m * sizeof(int64_t), cudaMemcpyDeviceToDevice,
                  (cudaStream_t)second);
  take_kernel<<<(unsigned)n_processors, 256, 0, (cudaStream_t)second>>>(
      (const float *)x->data, (const int64_t *)copy, (float *)y->data, x->shape[0], m, call->fault);
  return cuplug_launched(call);
}
CUPLUG_CUDA_OPERATOR(take_cuda, "take(x: float32[n], index: int64[*m]) -> float32[*m]",
                     "Elements, which must not be negative." CUPLUG_FAULT(
                         1, "element {position} is {value}, expected 0 or more"));
CUPLUG_PLUGIN(kept_cuda, "1.0.0");
