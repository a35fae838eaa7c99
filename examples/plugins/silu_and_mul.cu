/* SPDX-License-Identifier: Apache-2.0 */
/* silu_and_mul(gate, up): y[i, j] = silu(gate[i, j]) up[i, j], silu(x) = x / (1 + exp(-x)), the
 * gated unit of transformers. gate and up are usually halves of one product, gate_up[:, :n] and
 * gate_up[:, n:], so rows have strides. Elements are adjacent and each row is aligned to 16 bytes:
 * the kernel reads vectors without checking addresses. T: float16, bfloat16, float32, computed as
 * float32. Source: Shazeer, GLU Variants Improve Transformer, arXiv:2002.05202. */
#include "block.cuh"

__host__ __device__ inline float gated(float gate, float up) {
  return gate / (1 + expf(-gate)) * up;
}

template <typename T> struct rows {
  T *data;
  int64_t stride;
};

template <typename T>
__global__ void __launch_bounds__(THREADS)
    silu_and_mul_kernel(rows<const T> gate, rows<const T> up, rows<T> y, int64_t n) {
  constexpr int WIDTH = full_width<T>;
  using P = pack<T, WIDTH>;
  const int64_t i = blockIdx.x;
  const P *gates = reinterpret_cast<const P *>(gate.data + i * gate.stride);
  const P *ups = reinterpret_cast<const P *>(up.data + i * up.stride);
  P *out = reinterpret_cast<P *>(y.data + i * y.stride);
  for (int64_t at = threadIdx.x; at < n / WIDTH; at += blockDim.x) {
    P value = gates[at];
    const P factor = ups[at];
#pragma unroll
    for (int k = 0; k < WIDTH; k++)
      value.value[k] = (T)gated((float)value.value[k], (float)factor.value[k]);
    out[at] = value;
  }
}
/* ---- beyond the kernel ---- */
CUPLUG_TYPED_OPERATOR(silu_and_mul,
                      "silu_and_mul(gate: T[m, n], up: T[m, n]) -> y: T[m, n] "
                      "where T: float16 | bfloat16 | float32, n % 8 == 0, "
                      "stride(gate, -1) == 1, stride(up, -1) == 1, stride(y, -1) == 1, "
                      "align(gate) >= 16, align(up) >= 16, align(y) >= 16",
                      "The gated linear unit, with silu." CUPLUG_TAKES_STRIDES);

CUPLUG_CUDA_ENTRY(silu_and_mul, (T), gate, up, m, n, y) {
  return call.launch<silu_and_mul_kernel<T>>(
      {m, threads_for(n, full_width<T>)}, rows<const T>{gate.data(), gate.stride(0)},
      rows<const T>{up.data(), up.stride(0)}, rows<T>{y.data(), y.stride(0)}, n);
}

CUPLUG_HOST_ENTRY(silu_and_mul, (T), gate, up, m, n, y) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++)
      y[i * y.stride(0) + j] =
          (T)gated((float)gate[i * gate.stride(0) + j], (float)up[i * up.stride(0) + j]);
  return CUPLUG_OK;
}
CUPLUG_PLUGIN(silu_and_mul, "1.0.0");
