/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of rotary.c. A block rotates the heads of a token. Threads rotate
 * W adjacent pairs, moved at once if they are adjacent and aligned. */
#include "rows/launch.cuh"
#include "rows/rotary.h"

namespace {

constexpr int PAIRS = 4, THREADS = 128;

struct angles {
  const float *cos, *sin;
  float sign;
  int64_t r, m, of_cos, of_sin; /* strides of rows */
  const void *positions;
  bool is_narrow; /* int32, else int64 */

  __device__ int64_t position_at(int64_t t) const {
    return is_narrow ? static_cast<const int32_t *>(positions)[t]
                     : static_cast<const int64_t *>(positions)[t];
  }
};

template <typename T> __device__ void rotate(T &a, T &b, float c, float s) {
  const float first = (float)a, second = (float)b;
  a = (T)(first * c - second * s);
  b = (T)(second * c + first * s);
}

template <typename T, int W, bool IS_INTERLEAVED>
__global__ void __launch_bounds__(THREADS)
    rotary_kernel(T *data, const __grid_constant__ rotary_shape x,
                  const __grid_constant__ angles given, cuplug_fault *fault, uint32_t number) {
  const int64_t t = blockIdx.x, at = given.position_at(t), r = given.r;
  if (at < 0 || at >= given.m) {
    if (threadIdx.x == 0) cuplug_fault_index(fault, number, t, at, 0, given.m);
    return;
  }
  const float *cos = given.cos + at * given.of_cos, *sin = given.sin + at * given.of_sin;
  const int64_t of_head = r / W;
  for (int64_t j = threadIdx.x; j < x.n_heads * of_head; j += THREADS) {
    const int64_t h = j / of_head, i = (j - h * of_head) * W;
    T *const head = data + t * x.of_token + h * x.of_head;
    if constexpr (W == 1) {
      T *const a = head + (IS_INTERLEAVED ? 2 * i : i) * x.of_element;
      rotate(*a, a[(IS_INTERLEAVED ? 1 : r) * x.of_element], cos[i], given.sign * sin[i]);
    } else if constexpr (IS_INTERLEAVED) {
      auto *const place = reinterpret_cast<rows::pack<T, 2 * W> *>(head + 2 * i);
      rows::pack<T, 2 *W> pairs = *place;
#pragma unroll
      for (int k = 0; k < W; k++)
        rotate(pairs.value[2 * k], pairs.value[2 * k + 1], cos[i + k], given.sign * sin[i + k]);
      *place = pairs;
    } else {
      auto *const first = reinterpret_cast<rows::pack<T, W> *>(head + i);
      auto *const second = reinterpret_cast<rows::pack<T, W> *>(head + i + r);
      rows::pack<T, W> a = *first, b = *second;
#pragma unroll
      for (int k = 0; k < W; k++)
        rotate(a.value[k], b.value[k], cos[i + k], given.sign * sin[i + k]);
      *first = a;
      *second = b;
    }
  }
}

/* Returns whether all packs of an array are aligned. */
template <typename T> bool is_packed(const cuplug_tensor *x, int64_t r) {
  const int64_t n = 2 * PAIRS;
  return r % PAIRS == 0 && x->strides[2] == 1 && x->strides[0] % n == 0 && x->strides[1] % n == 0 &&
         (uint64_t)x->data % (n * sizeof(T)) == 0;
}

template <typename T, bool IS_INTERLEAVED>
int run_on(const cuplug::call &call, const cuplug_tensor *x, const angles &given) {
  if (!x->data || cuplug_n_elements(x) == 0 || given.r == 0) return CUPLUG_OK;
  const cuplug::grid grid = {x->shape[0], THREADS};
  const rotary_shape shape = rotary_shape_of(x);
  if (is_packed<T>(x, given.r))
    return call.launch<rotary_kernel<T, PAIRS, IS_INTERLEAVED>>(grid, (T *)x->data, shape, given,
                                                                call.fault(), 3u);
  return call.launch<rotary_kernel<T, 1, IS_INTERLEAVED>>(grid, (T *)x->data, shape, given,
                                                          call.fault(), 3u);
}

int run(const cuplug_call *call, float sign) {
  const cuplug_tensor *t = call->tensors;
  const angles given = {(const float *)t[1].data,
                        (const float *)t[2].data,
                        sign,
                        t[1].shape[1],
                        t[1].shape[0],
                        t[1].strides[0],
                        t[2].strides[0],
                        t[3].data,
                        cuplug_type(t + 3) == CUPLUG_INT32};
  return rows::by_dtype(t, [=](auto zero) {
    using T = decltype(zero);
    for (const cuplug_tensor *x : {t, t + 4}) {
      const int status =
          call->scalars[0].i ? run_on<T, true>(call, x, given) : run_on<T, false>(call, x, given);
      if (status) return status;
    }
    return (int)CUPLUG_OK;
  });
}

} // namespace

CUPLUG_ENTRY int rotary_cuda(const cuplug_call *call) { return run(call, 1); }
CUPLUG_ENTRY int rotary_backward_cuda(const cuplug_call *call) { return run(call, -1); }
