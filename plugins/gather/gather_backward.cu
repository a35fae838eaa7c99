/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of gather_backward.c. Rows are added by atomic additions, of 16
 * bytes at once if the GPU supports them. For 16-bit numbers, the destination rows have sums in
 * float32: each has a slot, which the first index of a row claims. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "atomic_add.cuh"
#include "gather/indices.cuh"

namespace {

template <typename T> struct sum_of { using type = T; };
template <> struct sum_of<__half> { using type = float; };
template <> struct sum_of<__nv_bfloat16> { using type = float; };
template <typename T> using sum_t = typename sum_of<T>::type;

template <typename T, int WIDTH> struct alignas(sizeof(T) * WIDTH) pack { T at[WIDTH]; };

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
constexpr int MOST_AT_ONCE = 4; /* floats in one atomic addition */
#else
constexpr int MOST_AT_ONCE = 1;
#endif

template <typename T, int WIDTH>
__device__ inline void add_pack(sum_t<T> *to, const pack<T, WIDTH> &x) {
  if constexpr (MOST_AT_ONCE == 4 && WIDTH >= 4) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#pragma unroll
    for (int k = 0; k < WIDTH; k += 4)
      asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to + k),
                   "f"((float)x.at[k]), "f"((float)x.at[k + 1]), "f"((float)x.at[k + 2]),
                   "f"((float)x.at[k + 3])
                   : "memory");
#endif
  } else {
#pragma unroll
    for (int k = 0; k < WIDTH; k++) add_to(to + k, (sum_t<T>)x.at[k]);
  }
}

/* Rows of 16-bit numbers whose sums are float32: row owners[k] has the sums of slot k. */
struct slots {
  uint32_t *of_row; /* slot + 1; 0: none yet. NULL: sums are stored in the rows */
  uint32_t *n;
  int64_t *owners;
};

__global__ void __launch_bounds__(THREADS)
    claim_slots_kernel(const __grid_constant__ any_index index, slots claimed,
                       const __grid_constant__ shape s, cuplug_fault *fault) {
  const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  const int64_t row = at < s.n ? index.row(at, s, fault) : -1;
  if (row < 0 || *(volatile uint32_t *)&claimed.of_row[row]) return;
  if (atomicCAS(&claimed.of_row[row], 0u, UINT32_MAX)) return;
  const uint32_t slot = atomicAdd(claimed.n, 1u);
  claimed.owners[slot] = row;
  claimed.of_row[row] = slot + 1; /* read by later kernels */
}

constexpr int UNROLL = 4; /* rows per thread, whose loads are in flight together */

/* blockDim.x threads share a row, blockDim.y rows are adjacent, with UNROLL rows each. gridDim.y
 * blocks share a row. n_words is the number of packs of WIDTH numbers. */
template <typename T, int WIDTH, typename Index>
__global__ void __launch_bounds__(THREADS)
    add_rows_kernel(const T *__restrict__ grad, const __grid_constant__ Index index,
                    const uint32_t *__restrict__ slot_of, sum_t<T> *sums,
                    const __grid_constant__ shape s, cuplug_fault *fault) {
  constexpr int STEP = MOST_AT_ONCE > 1 ? WIDTH : 1; /* single additions are adjacent */
  using P = pack<T, STEP>;
  const int64_t n_packs = s.n_words * (WIDTH / STEP);
  const int64_t first = (int64_t)blockIdx.x * (blockDim.y * UNROLL) + threadIdx.y;
  int64_t at[UNROLL], row[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; u++)
    at[u] = first + u * blockDim.y < s.n ? first + u * blockDim.y : -1;
  index.find(at, s, fault, row);
#pragma unroll
  for (int u = 0; u < UNROLL; u++)
    if (slot_of && row[u] >= 0) row[u] = (int64_t)slot_of[row[u]] - 1;
  const int64_t begin = (int64_t)blockIdx.y * blockDim.x + threadIdx.x;
  for (int64_t w = begin; w < n_packs; w += (int64_t)gridDim.y * blockDim.x) {
    P packs[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
      if (row[u] >= 0) packs[u] = ((const P *)grad)[at[u] * n_packs + w];
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
      if (row[u] >= 0) add_pack<T, STEP>(sums + (row[u] * n_packs + w) * STEP, packs[u]);
  }
}

/* One row of blockDim.x threads for each claimed slot. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    round_slots_kernel(const float *__restrict__ sums, slots claimed, T *__restrict__ out,
                       int64_t width) {
  const int64_t slot = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
  if (slot >= *claimed.n) return;
  const int64_t row = claimed.owners[slot];
  const int64_t begin = (int64_t)blockIdx.y * blockDim.x + threadIdx.x;
  for (int64_t c = begin; c < width; c += (int64_t)gridDim.y * blockDim.x)
    out[row * width + c] = (T)sums[slot * width + c];
}

/* The indices, and the destination of the sums. */
template <typename T, typename Index> struct job {
  Index index;
  const uint32_t *slot_of;
  sum_t<T> *sums;
  int64_t width;
};

template <int WIDTH, typename T, typename Index>
int launch(const cuplug_call *call, const job<T, Index> &j, shape s) {
  s.n_words = j.width / WIDTH;
  const dim3 threads = row_threads(s);
  return cuplug_launch<add_rows_kernel<T, WIDTH, Index>>(
      call, row_blocks(s, threads, threads.y * UNROLL), threads, 0,
      (const T *)call->tensors[0].data, j.index, j.slot_of, j.sums, s, call->fault);
}

/* In packs of 16 bytes if all rows are aligned to them. Other rows mostly have one number, for
 * which finding the index is most of the work. */
template <typename T>
int add_rows(const cuplug_call *call, const any_index &index, const uint32_t *slot_of,
             sum_t<T> *sums, const shape &s, int64_t width) {
  constexpr int WIDTH = sizeof(T) < 8 ? 16 / sizeof(T) : 1;
  const uint64_t addresses = (uint64_t)call->tensors[0].data | (uint64_t)sums;
  if (WIDTH > 1 && width % WIDTH == 0 && addresses % 16 == 0)
    return launch<WIDTH>(call, job<T, any_index>{index, slot_of, sums, width}, s);
  return with_index(index, s, [&](auto own) {
    return launch<1>(call, job<T, decltype(own)>{own, slot_of, sums, width}, s);
  });
}

int zero(const cuplug_call *call, void *data, int64_t n_bytes) {
  if (n_bytes) cudaMemsetAsync(data, 0, (size_t)n_bytes, (cudaStream_t)call->stream);
  return cuplug_launched(call);
}

/* 16-bit numbers, by slots: at most the number of indices. */
template <typename T>
int add_halves(const cuplug_call *call, const any_index &index, const shape &s, int64_t n_rows,
               int64_t width) {
  const int64_t most = s.n < n_rows ? s.n : n_rows, head_bytes = 256;
  const int64_t sums_bytes = (most * width + 3) / 4 * 16;
  if (most >= UINT32_MAX)
    return cuplug_failf(call, CUPLUG_ERROR_VALUE, "index: got %lld, expected fewer than 2^32 - 1",
                        (long long)most);
  const int64_t n_bytes = head_bytes + sums_bytes + n_rows * (int64_t)sizeof(uint32_t);
  char *memory = (char *)cuplug_workspace(call, n_bytes);
  int64_t *owners = (int64_t *)cuplug_workspace(call, most * sizeof *owners);
  if (!memory || !owners) return CUPLUG_ERROR_MEMORY;
  if (int status = zero(call, memory, n_bytes)) return status;
  float *sums = (float *)(memory + head_bytes);
  const slots claimed = {(uint32_t *)(memory + head_bytes + sums_bytes), (uint32_t *)memory,
                         owners};
  if (int status = cuplug_launch<claim_slots_kernel>(call, n_blocks(s.n, THREADS), THREADS, 0,
                                                     index, claimed, s, call->fault))
    return status;
  if (int status = add_rows<T>(call, index, claimed.of_row, sums, s, width)) return status;
  const shape found = {most, 0, width, 0};
  const dim3 threads = row_threads(found);
  const dim3 blocks(n_blocks(most, threads.y), row_blocks(found, threads, threads.y).y);
  return cuplug_launch<round_slots_kernel<T>>(call, blocks, threads, 0, sums, claimed,
                                              (T *)call->outputs[0].data, width);
}

template <typename T>
int add(const cuplug_call *call, const cuplug_tensor *array, const gather_sizes &sizes) {
  any_index index;
  shape s;
  const int status = any_index_of(call, array, sizes, &index, &s);
  if (status || s.n == 0) return status;
  if constexpr (sizeof(T) == 2)
    return add_halves<T>(call, index, s, sizes.n_outer * sizes.m, sizes.width);
  else
    return add_rows<T>(call, index, nullptr, (T *)call->outputs[0].data, s, sizes.width);
}

int gather_backward(const cuplug_call *call, const cuplug_tensor *index, int64_t axis) {
  const cuplug_tensor *source = &call->tensors[index ? 2 : 1], *out = &call->outputs[0];
  gather_sizes sizes = gather_sizes_of(source, axis);
  int status = gather_check_grad(call, &call->tensors[0], index, source, sizes.axis);
  if (!status) status = zero(call, out->data, cuplug_n_elements(out) * cuplug_element_bytes(out));
  if (status) return status;
  switch (cuplug_type(source)) {
  case CUPLUG_FLOAT16:
    return add<__half>(call, index, sizes);
  case CUPLUG_BFLOAT16:
    return add<__nv_bfloat16>(call, index, sizes);
  case CUPLUG_COMPLEX64:
    sizes.width *= 2; /* two numbers each */
    return add<float>(call, index, sizes);
  case CUPLUG_FLOAT32:
    return add<float>(call, index, sizes);
  case CUPLUG_COMPLEX128:
    sizes.width *= 2;
    return add<double>(call, index, sizes);
  case CUPLUG_FLOAT64:
    return add<double>(call, index, sizes);
  }
  return cuplug_fail(call, CUPLUG_ERROR_TYPE, "no code for this dtype");
}

} // namespace

CUPLUG_ENTRY int gather_backward_cuda(const cuplug_call *call) {
  return gather_backward(call, &call->tensors[1], call->scalars[1].i);
}

CUPLUG_ENTRY int gather_one_backward_cuda(const cuplug_call *call) {
  return gather_backward(call, nullptr, call->scalars[2].i);
}
