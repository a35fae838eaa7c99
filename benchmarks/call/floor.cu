/* SPDX-License-Identifier: Apache-2.0 */
/* The time of the hardware and the driver, from C: the same kernel in a loop, and the driver calls
 * that one call may include. Functions return nanoseconds for n rounds, negative on errors. */
#include "../fixtures/add3/add_kernel.cuh"

#include <cuda_runtime.h>
#include <stdint.h>
#include <time.h>

static const int n_elements = 16;

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int64_t elapsed_ns(int64_t start_ns) {
  int64_t ns = now_ns() - start_ns;
  cudaError_t code = cudaGetLastError();
  return code == cudaSuccess ? ns : -(int64_t)code;
}

static cudaEvent_t the_event(void) {
  static cudaEvent_t event;
  if (!event) cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  return event;
}

extern "C" {

/* The launch that ctypes and the C++ extension also call. Returns a CUDA error code, or 0. */
int add_launch(const float *x, const float *y, float *z, int64_t n, void *stream) {
  add_kernel<<<(unsigned)((n + 31) / 32), 32, 0, (cudaStream_t)stream>>>(x, y, z, n);
  return (int)cudaGetLastError();
}

int64_t launch_ns(int n, const float *x, const float *y, float *z) {
  int64_t start_ns = now_ns();
  for (int i = 0; i < n; i++) add_kernel<<<1, 32, 0, 0>>>(x, y, z, n_elements);
  return elapsed_ns(start_ns);
}

int64_t event_record_ns(int n) {
  cudaEvent_t event = the_event();
  int64_t start_ns = now_ns();
  for (int i = 0; i < n; i++) cudaEventRecord(event, 0);
  return elapsed_ns(start_ns);
}

int64_t wait_event_ns(int n) {
  cudaEvent_t event = the_event();
  cudaEventRecord(event, 0);
  int64_t start_ns = now_ns();
  for (int i = 0; i < n; i++) cudaStreamWaitEvent(0, event, 0);
  return elapsed_ns(start_ns);
}

int64_t get_device_ns(int n) {
  int device = 0;
  int64_t start_ns = now_ns();
  for (int i = 0; i < n; i++) cudaGetDevice(&device);
  return elapsed_ns(start_ns);
}

int64_t malloc_async_ns(int n) {
  void *pointer = 0;
  int64_t start_ns = now_ns();
  for (int i = 0; i < n; i++) {
    cudaMallocAsync(&pointer, 64, 0);
    cudaFreeAsync(pointer, 0);
  }
  return elapsed_ns(start_ns);
}

int64_t malloc_ns(int n) {
  void *pointer = 0;
  int64_t start_ns = now_ns();
  for (int i = 0; i < n; i++) {
    cudaMalloc(&pointer, 1 << 22);
    cudaFree(pointer);
  }
  return elapsed_ns(start_ns);
}
}
