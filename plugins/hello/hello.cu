/* SPDX-License-Identifier: Apache-2.0 */
#include <cuplug/plugin.h>

__global__ void hello_kernel(int device) {
  printf("hello from thread %u of block %u on cuda:%d\n", threadIdx.x, blockIdx.x, device);
}

CUPLUG_ENTRY int hello_cuda(const cuplug_call *call) {
  return cuplug_launch<hello_kernel>(call, 1, 1, 0, call->device.id);
}
