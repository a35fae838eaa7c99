/* SPDX-License-Identifier: Apache-2.0 */
/* The launch of the kernel with many arrays from C, in a loop and for ctypes. */
#include "../fixtures/chain/chain_kernel.cuh"

#include <cuda_runtime.h>
#include <stdint.h>
#include <time.h>

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

extern "C" {

/* Nanoseconds of n launches on the legacy stream; negative: a CUDA error code. */
int64_t chain_ns(int n, float *const *data, int n_arrays, float factor, int64_t n_elements) {
  chain_arrays arrays;
  arrays.n_arrays = n_arrays;
  for (int k = 0; k < n_arrays; k++) arrays.data[k] = data[k];
  int64_t start_ns = now_ns();
  for (int i = 0; i < n; i++) chain_kernel<<<1, 32, 0, 0>>>(arrays, factor, n_elements);
  int64_t ns = now_ns() - start_ns;
  cudaError_t code = cudaGetLastError();
  return code == cudaSuccess ? ns : -(int64_t)code;
}
}
