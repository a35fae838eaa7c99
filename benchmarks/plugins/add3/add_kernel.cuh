/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel that every contender launches: z = x + y. */
extern "C" __global__ void add_kernel(const float *x, const float *y, float *z, long long n) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}
