/* SPDX-License-Identifier: Apache-2.0 */
/* For CUDA code: launches, and faults in kernels. Part of <cuplug/plugin.h>, which includes it
 * where nvcc compiles. */
#ifndef CUPLUG_KERNELS_H
#define CUPLUG_KERNELS_H

#include <cuda_runtime_api.h>
#include <cuplug/fault.h>
#include <cuplug/format.h>

/* Reports an error of the CUDA runtime in `what`; returns CUPLUG_OK if there is none. */
static inline int cuplug__cuda_status(const cuplug_call *call, cudaError_t code, const char *what) {
  if (code == cudaSuccess) return CUPLUG_OK;
  char text[256];
  snprintf(text, sizeof text, "%s: CUDA error %d, %s: %s", what, (int)code, cudaGetErrorName(code),
           cudaGetErrorString(code));
  return call->services->fail(call, CUPLUG_ERROR_CUDA, (int)code, text);
}

/** After every launch: `return cuplug_launched(call)`. Reports a launch error of this plugin. */
static inline int cuplug_launched(const cuplug_call *call) {
  return cuplug__cuda_status(call, cudaGetLastError(), "kernel launch");
}

#if CUDART_VERSION >= 12010
static __global__ void cuplug__empty_kernel() {}

/** One of this file's kernels, by which cuplug_prepare finds the others in the driver; the first
 * call starts the plugin's CUDA runtime. NULL if that fails. Exported; of several files of a
 * plugin, one has it. */
CUPLUG_ENTRY __attribute__((weak)) void *cuplug_any_kernel(void) {
  cudaKernel_t kernel;
  if (cudaGetKernel(&kernel, (const void *)cuplug__empty_kernel) == cudaSuccess) return kernel;
  cudaGetLastError(); /* later launches report only their own errors */
  return nullptr;
}
#endif

#if defined(__cplusplus) && __cplusplus >= 201703L && CUDART_VERSION >= 12010
/* The parameters of a kernel, to which arguments are converted as in a call. */
template <auto kernel> struct cuplug__kernel;
template <typename... P, void (*kernel)(P...)> struct cuplug__kernel<kernel> {
  static constexpr int n_kept = 16; /* on GPUs beyond these, it is looked up in each call */
  static int launch(const cuplug_call *call, const cuplug_grid &grid, P... arguments) {
    static void *kept[n_kept]; /* CUfunctions, launched faster than one CUkernel for all GPUs */
    const uint32_t id = (uint32_t)call->device.id;
    void *found = id < n_kept ? __atomic_load_n(&kept[id], __ATOMIC_ACQUIRE) : nullptr;
    void *pointers[] = {(void *)&arguments..., nullptr};
    if (!found) {
      cudaFunction_t known;
      if (cudaGetFuncBySymbol(&known, (const void *)kernel) != cudaSuccess)
        return cuplug_launched(call);
      found = (void *)known;
      if (id < n_kept) __atomic_store_n(&kept[id], found, __ATOMIC_RELEASE);
    }
    return call->services->launch(call, found, &grid, pointers);
  }
};

/** Launches a kernel on the call's stream, checked, with less work for the processor than <<<>>>:
 *
 *     return cuplug_launch<add_kernel>(call, n_blocks, n_threads, shared_bytes, x, y, out, n);
 *
 * If there are no blocks, as for empty arrays, nothing is launched.
 * Requires C++17 and CUDA 12.1; elsewhere, use <<<>>> and cuplug_launched.
 * Dynamic shared memory beyond 48 KiB requires cudaFuncSetAttribute and <<<>>>. [stream-ordered] */
template <auto kernel, typename... A>
int cuplug_launch(const cuplug_call *call, dim3 blocks, dim3 threads, uint32_t shared_bytes,
                  A... arguments) {
  if (!blocks.x || !blocks.y || !blocks.z) return CUPLUG_OK;
  const cuplug_grid grid = {{blocks.x, blocks.y, blocks.z},
                            {threads.x, threads.y, threads.z},
                            shared_bytes,
                            0,
                            {0, 0, 0},
                            0};
  return cuplug__kernel<kernel>::launch(call, grid, arguments...);
}

/** The same with more properties of the grid: cooperative launches, clusters, programmatic
   launches. */
template <auto kernel, typename... A>
int cuplug_launch(const cuplug_call *call, const cuplug_grid &grid, A... arguments) {
  if (!grid.blocks[0] || !grid.blocks[1] || !grid.blocks[2]) return CUPLUG_OK;
  return cuplug__kernel<kernel>::launch(call, grid, arguments...);
}
#endif

__device__ static inline void cuplug__fault(cuplug_fault *fault, int32_t status, uint32_t text,
                                            uint32_t tensor, int64_t position, int64_t value,
                                            int64_t low, int64_t high) {
  if (atomicCAS(&fault->claimed, 0u, 1u) != 0u) return;
  fault->text = text;
  fault->tensor = tensor;
  fault->position = position;
  fault->value = value;
  fault->low = low;
  fault->high = high;
  __threadfence_system();
  *(volatile int32_t *)&fault->status = status;
  *(volatile uint32_t *)fault->summary = 1u;
}

/** In a kernel: records that element `position` of tensor number `tensor` is `value`, outside low
 * <= value < high. The call then ends in IndexError; the kernel must continue without using the
 * value. */
__device__ static inline void cuplug_fault_index(cuplug_fault *fault, uint32_t tensor,
                                                 int64_t position, int64_t value, int64_t low,
                                                 int64_t high) {
  cuplug__fault(fault, CUPLUG_ERROR_INDEX, 0, tensor, position, value, low, high);
}

/** In a kernel: records that element `position` of tensor number `tensor`, whose elements are to
 * ascend, is smaller than the one before it. The call then ends in ValueError. */
__device__ static inline void cuplug_fault_order(cuplug_fault *fault, uint32_t tensor,
                                                 int64_t position) {
  cuplug__fault(fault, CUPLUG_ERROR_VALUE, 0, tensor, position, 0, 0, 0);
}

/** In a kernel: records that element `position` of tensor number `tensor` is invalid, with the
 * operator's message CUPLUG_FAULT(text, ...). The call then ends in ValueError. */
__device__ static inline void cuplug_fault_text(cuplug_fault *fault, uint32_t text, uint32_t tensor,
                                                int64_t position, int64_t value) {
  cuplug__fault(fault, CUPLUG_ERROR_VALUE, text, tensor, position, value, 0, 0);
}

#endif
