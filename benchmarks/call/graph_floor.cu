/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA graph of launches from C, and its replay: nanoseconds, negative on errors. */
#include "../fixtures/add3/add_kernel.cuh"

#include <cuda_runtime.h>
#include <stdint.h>
#include <time.h>

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

extern "C" {

/* Captures launches z = x + y on a new stream. These functions return a CUDA error code, or 0. */
int graph_begin(cudaStream_t *stream) {
  cudaError_t code = cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
  if (code == cudaSuccess) code = cudaStreamBeginCapture(*stream, cudaStreamCaptureModeThreadLocal);
  return (int)code;
}

void graph_add(int n_kernels, const float *x, const float *y, float *z, int64_t n,
               cudaStream_t stream) {
  for (int k = 0; k < n_kernels; k++) add_kernel<<<1, 32, 0, stream>>>(x, y, z, n);
}

int graph_end(cudaStream_t stream, cudaGraphExec_t *replayable) {
  cudaGraph_t graph = NULL;
  cudaError_t code = cudaStreamEndCapture(stream, &graph);
  if (code == cudaSuccess) code = cudaGraphInstantiate(replayable, graph, 0);
  if (graph) cudaGraphDestroy(graph);
  return (int)code;
}

int64_t graph_replay_ns(int n, cudaGraphExec_t replayable, cudaStream_t stream) {
  int64_t start_ns = now_ns();
  for (int k = 0; k < n; k++) cudaGraphLaunch(replayable, stream);
  int64_t ns = now_ns() - start_ns;
  cudaError_t code = cudaGetLastError();
  return code == cudaSuccess ? ns : -(int64_t)code;
}
}
