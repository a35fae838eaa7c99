/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic additions without a returned value. They are written as reduction instructions. In kernels
 * that may record faults, whose threads continue in another branch, atomicAdd would wait for its
 * result. */
#ifndef CUPLUG_PLUGINS_ATOMIC_ADD_CUH
#define CUPLUG_PLUGINS_ATOMIC_ADD_CUH

namespace {

#ifdef __CUDA_ARCH__
__device__ inline void add_to(double *to, double x) {
  asm volatile("red.global.add.f64 [%0], %1;" ::"l"(to), "d"(x) : "memory");
}
__device__ inline void add_to(float *to, float x) {
  asm volatile("red.global.add.f32 [%0], %1;" ::"l"(to), "f"(x) : "memory");
}
__device__ inline void add_to(unsigned *to, unsigned x) {
  asm volatile("red.global.add.u32 [%0], %1;" ::"l"(to), "r"(x) : "memory");
}
__device__ inline void add_to(unsigned long long *to, unsigned long long x) {
  asm volatile("red.global.add.u64 [%0], %1;" ::"l"(to), "l"(x) : "memory");
}
#else
__device__ inline void add_to(double *to, double x) { atomicAdd(to, x); }
__device__ inline void add_to(float *to, float x) { atomicAdd(to, x); }
__device__ inline void add_to(unsigned *to, unsigned x) { atomicAdd(to, x); }
__device__ inline void add_to(unsigned long long *to, unsigned long long x) { atomicAdd(to, x); }
#endif

} // namespace

#endif
