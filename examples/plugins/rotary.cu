/* SPDX-License-Identifier: Apache-2.0 */
/* rotary(q, cos, sin, positions, k): rotates pairs of elements (i, i + r) of each head, in place.
 *   q[t, h, i], q[t, h, i + r] = q_i c - q_(i+r) s, q_(i+r) c + q_i s
 * with c = cos[positions[t], i]. The same for k, which may be omitted. q and k may be slices of one
 * buffer, such as q = qkv[:, :h], k = qkv[:, h:2h]; they are not copied. T: float32, float64;
 * 2 r <= d. rotary_backward(grad_q, cos, sin, positions, grad_k): rotates gradients back, in place.
 * Source: Su et al., RoFormer, arXiv:2104.09864, equation 34, in the halves of GPT-NeoX. */
#include <cuplug/plugin.hpp>

/* An array of three dimensions with any strides. */
template <typename T> struct heads {
  T *data;
  int64_t n_heads, of_token, of_head, of_element;
};

template <typename T>
__host__ __device__ void rotate(const heads<T> &x, int64_t t, int64_t h, int64_t i, int64_t r,
                                float c, float s) {
  T *a = x.data + t * x.of_token + h * x.of_head + i * x.of_element, *b = a + r * x.of_element;
  const T first = *a, second = *b;
  *a = first * c - second * s;
  *b = second * c + first * s;
}

/* cos or sin: rows with any distance between them. */
struct table {
  const float *data;
  int64_t of_row;
};
static table table_of(cuplug::array<const float> x) { return {x, x.stride(0)}; }

template <typename T>
__global__ void rotary_kernel(heads<T> x, table cos, table sin, float sign, int64_t r, int64_t m,
                              const int64_t *positions, cuplug_fault *fault, uint32_t number) {
  const int64_t t = blockIdx.x, at = positions[t];
  if (at < 0 || at >= m) {
    cuplug_fault_index(fault, number, t, at, 0, m);
    return;
  }
  for (int64_t j = threadIdx.x; j < x.n_heads * r; j += blockDim.x)
    rotate(x, t, j / r, j % r, r, cos.data[at * cos.of_row + j % r],
           sign * sin.data[at * sin.of_row + j % r]);
}
template <typename T> static heads<T> heads_of(cuplug::array<T> x) {
  return {x, x.shape(1), x.stride(0), x.stride(1), x.stride(2)};
}

template <typename Call, typename X, typename P>
static int rotate_host(Call call, std::initializer_list<X> arrays, table cos, table sin, float sign,
                       P positions, int64_t n, int64_t m, int64_t r) {
  for (int64_t t = 0; t < n; t++)
    if (positions[t] < 0 || positions[t] >= m)
      return call.fail(CUPLUG_ERROR_INDEX,
                       "positions: got one outside of cos, expected 0 <= p < m");
  for (auto x : arrays)
    for (int64_t t = 0; x && t < n; t++)
      for (int64_t j = 0; j < x.shape(1) * r; j++)
        rotate(heads_of(x), t, j / r, j % r, r, cos.data[positions[t] * cos.of_row + j % r],
               sign * sin.data[positions[t] * sin.of_row + j % r]);
  return CUPLUG_OK;
}
/* ---- beyond the kernel ---- */
CUPLUG_TYPED_OPERATOR(
    rotary,
    "rotary(inout q: T[n, h, d], cos: float32[m, r], sin: float32[m, r], "
    "positions: int64[n], inout k: T[n, hk, d] = None) "
    "where T: float32 | float64, 2 * r <= d, stride(cos, -1) == 1, stride(sin, -1) == 1, "
    "stride(positions, -1) == 1",
    "Rotary position embedding of queries and keys, in place." CUPLUG_TAKES_STRIDES CUPLUG_GRADIENT(
        rotary_backward) CUPLUG_LINEAR(q, k));

CUPLUG_CUDA_ENTRY(rotary, (T), q, cos, sin, positions, k, n, m, r) {
  for (auto x : {q, k})
    if (x && n && x.size())
      if (int status = call.launch<rotary_kernel<T>>({n, 128}, heads_of(x), table_of(cos),
                                                     table_of(sin), 1.0f, r, m, positions,
                                                     call.fault(), positions.number()))
        return status;
  return CUPLUG_OK;
}

CUPLUG_HOST_ENTRY(rotary, (T), q, cos, sin, positions, k, n, m, r) {
  return rotate_host(call, {q, k}, table_of(cos), table_of(sin), 1, positions, n, m, r);
}

CUPLUG_TYPED_OPERATOR(
    rotary_backward,
    "rotary_backward(inout grad_q: T[n, h, d], cos: float32[m, r], sin: float32[m, r], "
    "positions: int64[n], inout grad_k: T[n, hk, d] = None) "
    "where T: float32 | float64, 2 * r <= d, stride(cos, -1) == 1, stride(sin, -1) == 1, "
    "stride(positions, -1) == 1",
    "The gradients of rotary: rotated back, in place." CUPLUG_TAKES_STRIDES CUPLUG_LINEAR(grad_q,
                                                                                          grad_k));

CUPLUG_CUDA_ENTRY(rotary_backward, (T), grad_q, cos, sin, positions, grad_k, n, m, r) {
  for (auto x : {grad_q, grad_k})
    if (x && n && x.size())
      if (int status = call.launch<rotary_kernel<T>>({n, 128}, heads_of(x), table_of(cos),
                                                     table_of(sin), -1.0f, r, m, positions,
                                                     call.fault(), positions.number()))
        return status;
  return CUPLUG_OK;
}

CUPLUG_HOST_ENTRY(rotary_backward, (T), grad_q, cos, sin, positions, grad_k, n, m, r) {
  return rotate_host(call, {grad_q, grad_k}, table_of(cos), table_of(sin), -1, positions, n, m, r);
}
CUPLUG_PLUGIN(rotary, "1.0.0");
