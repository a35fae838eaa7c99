/* SPDX-License-Identifier: Apache-2.0 */
#include <cuplug/plugin.h>

__global__ void hello_kernel(int device) {
  printf("hello from thread %u of block %u on cuda:%d\n", threadIdx.x, blockIdx.x, device);
}

CUPLUG_ENTRY int hello_cuda(const cuplug_call *call) {
  hello_kernel<<<1, 1, 0, (cudaStream_t)call->stream>>>(call->device.id);
  return cuplug_launched(call);
}
