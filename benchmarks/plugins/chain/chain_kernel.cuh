/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel with many arrays, whose launch is what is timed: last = factor * first. */
#define CHAIN_MAX_ARRAYS 14

struct chain_arrays {
  float *data[CHAIN_MAX_ARRAYS];
  int n_arrays;
};

extern "C" __global__ void chain_kernel(chain_arrays arrays, float factor, long long n) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) arrays.data[arrays.n_arrays - 1][i] = factor * arrays.data[0][i];
}
