/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic additions whose result nobody wants. They are written as reductions: in a kernel that may
 * record faults, whose threads go on in another branch, atomicAdd waits for an answer. */
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
