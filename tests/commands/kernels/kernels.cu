/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for `cuplug test` on a GPU. -DDEFECT=1, 2 or 3 plants one defect in each of them. */
#include <cuplug/plugin.h>

#ifndef DEFECT
#define DEFECT 0
#endif

static float *floats(const cuplug_tensor *x) { return (float *)x->data; }
static unsigned blocks_for(int64_t n) { return (unsigned)((n + 255) / 256); }
static cudaStream_t stream_of(const cuplug_call *call) { return (cudaStream_t)call->stream; }

/* A norm by blocks of 256 threads. 1: the last row is omitted; 2: a row more is written; 3: the
 * weight is scaled in place. */
__global__ void rms_norm_kernel(const float *x, float *weight, float eps, float *y, int64_t c) {
  __shared__ float sums[256];
  const int64_t row = blockIdx.x;
  float sum = 0;
  for (int64_t i = threadIdx.x; i < c; i += 256) sum += x[row * c + i] * x[row * c + i];
  sums[threadIdx.x] = sum;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  __syncthreads();
  const float scale = rsqrtf(sums[0] / (float)c + eps);
  for (int64_t i = threadIdx.x; i < c; i += 256)
    y[row * c + i] = x[row * c + i] * scale * weight[i];
  if (DEFECT == 3 && row == 0) weight[threadIdx.x] *= 2;
}

CUPLUG_ENTRY int rms_norm_cuda(const cuplug_call *call) {
  const cuplug_tensor *x = call->tensors;
  const int64_t rows = x->shape[0] - (DEFECT == 1) + (DEFECT == 2), c = x->shape[1];
  if (x->shape[0] == 0 || c == 0 || rows == 0) return CUPLUG_OK;
  rms_norm_kernel<<<(unsigned)rows, 256, 0, stream_of(call)>>>(
      floats(x), floats(x + 1), (float)call->scalars[0].f, floats(call->outputs), c);
  return cuplug_launched(call);
}
CUPLUG_CUDA_OPERATOR(rms_norm_cuda,
                     "rms_norm(x: float32[rows, c], weight: float32[c], eps: float = 1e-5) -> "
                     "float32[rows, c] where c % 256 == 0, 0 < eps < 1",
                     "A norm.");

/* Rows by indices that are trusted. 1: the address of a row far away; 2: the last row is omitted;
 * 3: it adds to the old contents of the output. */
__global__ void rows_kernel(const float *x, const int64_t *index, float *y, int64_t n, int64_t c) {
  const int64_t i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= n * c) return;
  const int64_t row = index[i / c] + (DEFECT == 1 ? 1ll << 40 : 0);
  y[i] = (DEFECT == 3 ? y[i] + 1 : 0) + x[row * c + i % c];
}

CUPLUG_ENTRY int rows_cuda(const cuplug_call *call) {
  const cuplug_tensor *x = call->tensors, *index = x + 1;
  const int64_t n = index->shape[0], c = x->shape[1], n_written = n - (DEFECT == 2);
  if (n_written * c <= 0) return CUPLUG_OK;
  rows_kernel<<<blocks_for(n_written * c), 256, 0, stream_of(call)>>>(
      floats(x), (const int64_t *)index->data, floats(call->outputs), n_written, c);
  return cuplug_launched(call);
}
CUPLUG_CUDA_OPERATOR(rows_cuda,
                     "rows(x: float32[m, c], table: int64[n]) -> float32[n, c] where m > 0",
                     "Rows of x.");

/* A table of four floats at an address on the GPU. 1: writes one element more; 2: the last element
 * is omitted; 3: writes the input. */
__global__ void look_up_kernel(float *x, const float *table, float *y, int64_t n) {
  const int64_t i = blockIdx.x * 256ll + threadIdx.x;
  if (i < n - (DEFECT == 2) + (DEFECT == 1)) y[i] = table[i % 4] + (i < n ? x[i] : 0);
  if (DEFECT == 3 && i == 0) x[0] += 1;
}

CUPLUG_ENTRY int look_up_cuda(const cuplug_call *call) {
  const int64_t n = call->tensors->shape[0];
  if (n == 0) return CUPLUG_OK;
  look_up_kernel<<<blocks_for(n + 1), 256, 0, stream_of(call)>>>(
      floats(call->tensors), (const float *)(uintptr_t)call->scalars[0].u, floats(call->outputs),
      n);
  return cuplug_launched(call);
}
CUPLUG_CUDA_OPERATOR(look_up_cuda, "look_up(x: float32[n], address: uint64) -> float32[n]",
                     "x plus a table.");

CUPLUG_PLUGIN(kernels, "1.0.0");
