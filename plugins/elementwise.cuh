/* SPDX-License-Identifier: Apache-2.0 */
/* What the CUDA entries of element-wise operators share: kernels at the speed of a copy for arrays
 * of any strides, and the dtypes as C++ sees them. */
#ifndef CUPLUG_PLUGINS_ELEMENTWISE_CUH
#define CUPLUG_PLUGINS_ELEMENTWISE_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuplug/walk.cuh>
#include <cuplug/walk.h>

namespace elementwise {

/* The type to compute with. */
template <typename T> struct computed { using type = T; };
template <> struct computed<__half> { using type = float; };
template <> struct computed<__nv_bfloat16> { using type = float; };
template <typename T> using computed_t = typename computed<T>::type;

template <typename T> constexpr int WIDTH = sizeof(T) < 16 ? 16 / sizeof(T) : 1;

/* The inputs and, last, the output; all of one dtype. */
template <int ARITY, typename T> struct operands;
template <typename T> struct operands<1, T> : cuplug::walks::walked<1, 2, T, T> {};
template <typename T> struct operands<2, T> : cuplug::walks::walked<3, 4, T, T, T> {};

/* out[i] = op(in[i] ...) */
template <int ARITY, typename T, typename Op> struct map : operands<ARITY, T> {
  Op op;
  template <class P> __device__ void operator()(P &p, int j, int64_t, int64_t) const {
    using cuplug::walks::get;
    using C = computed_t<T>;
    if constexpr (ARITY == 1)
      get<1>(p).value[j] = (T)op((C)get<0>(p).value[j]);
    else
      get<2>(p).value[j] = (T)op((C)get<0>(p).value[j], (C)get<1>(p).value[j]);
  }
};

template <typename T> constexpr int LINES_UNROLL = CUPLUG__LINES_UNROLL(WIDTH<T>);

/* Elements of tiles along each dimension, with that many inputs. */
template <int ARITY, typename T> constexpr int SIDE = CUPLUG__TILE_SIDE(ARITY *(int)sizeof(T));

/* The sizes and strides of any loop. */
template <int ARITY> struct layout {
  static constexpr int NDIM = sizeof(cuplug_loop::sizes) / sizeof(long long);
  cuplug::divisors<NDIM> sizes;
  cuplug::strides<ARITY + 1, NDIM> steps;
};

template <int ARITY, typename T, typename Op>
__global__ void __launch_bounds__(cuplug::THREADS)
    packs_kernel(const map<ARITY, T, Op> code, int64_t n) {
  cuplug::walks::in_packs<WIDTH<T>, 1, 0, 0, int64_t>(code, n, cuplug::divisors<0>(),
                                                      cuplug::strides<ARITY + 1, 0>());
}

template <int ARITY, typename T, typename Op>
__global__ void __launch_bounds__(cuplug::THREADS)
    lines_kernel(const map<ARITY, T, Op> code, int64_t n, const __grid_constant__ cuplug_cut cut,
                 const __grid_constant__ layout<ARITY> own) {
  cuplug::walks::in_lines<WIDTH<T>, LINES_UNROLL<T>, 0, int64_t>(code, n, cut, own.sizes, own.steps,
                                                                 cut.near, cut.still);
}

template <int ARITY, typename T, typename Op>
__global__ void __launch_bounds__(cuplug::THREADS)
    tiles_kernel(const map<ARITY, T, Op> code, int64_t n, const __grid_constant__ cuplug_cut cut,
                 const __grid_constant__ layout<ARITY> own) {
  cuplug::walks::in_tiles<SIDE<ARITY, T>, WIDTH<T>, (1 << ARITY) - 1, 0>(code, n, cut, own.sizes,
                                                                         own.steps, cut.across);
}

/* Whether all arrays are contiguous, and begin at multiples of 16 bytes. */
template <int ARITY> bool are_plain(const cuplug_tensor (&tensors)[ARITY + 1]) {
  uint64_t addresses = 0;
  for (const cuplug_tensor &x : tensors) {
    if (x.strides) return false;
    addresses |= (uint64_t)x.data;
  }
  return addresses % 16 == 0;
}

inline unsigned n_blocks(int64_t n, int64_t per_block) {
  return (unsigned)((n + per_block - 1) / per_block);
}

/* By the rule of <cuplug/walk.h>. */
template <int ARITY, typename T, typename Op>
int launch_any(const cuplug_call *call, const cuplug_tensor (&tensors)[ARITY + 1],
               const map<ARITY, T, Op> &code, int64_t n) {
  long long strides[layout<ARITY>::NDIM + 1][32];
  cuplug_loop loop;
  cuplug_cut cut;
  layout<ARITY> own;
  cuplug__loop_start(&loop, ARITY + 1, strides);
  for (int32_t d = 0; d < tensors[0].ndim; d++) cuplug__loop_add(&loop, tensors, d, 0);
  cuplug__loop_collapse(&loop, 1);
  const cuplug_walk_kind kind =
      cuplug__walk(&loop, tensors, 1u << ARITY, WIDTH<T>, SIDE<ARITY, T>, &cut);
  for (int d = 0; d < loop.ndim; d++) {
    own.sizes.of[d] = cuplug__divisor(loop.sizes[d], 1);
    for (int k = 0; k <= ARITY; k++) own.steps.of[k][d] = strides[d][k];
  }
  const unsigned blocks =
      n_blocks(cut.n_items, kind == CUPLUG_WALK_TILES ? 1 : cuplug::THREADS * LINES_UNROLL<T>);
  if (kind == CUPLUG_WALK_TILES)
    return cuplug_launch<tiles_kernel<ARITY, T, Op>>(call, blocks, cuplug::THREADS, 0, code, n, cut,
                                                     own);
  if (kind == CUPLUG_WALK_LINES)
    return cuplug_launch<lines_kernel<ARITY, T, Op>>(call, blocks, cuplug::THREADS, 0, code, n, cut,
                                                     own);
  return cuplug_launch<packs_kernel<ARITY, T, Op>>(call, blocks ? blocks : 1, cuplug::THREADS, 0,
                                                   code, n);
}

/* out[i] = op(in[i] ...) for tensors of one shape, the output last; it may be its own input. */
template <int ARITY, typename T, typename Op>
int map_tensors(const cuplug_call *call, const cuplug_tensor (&tensors)[ARITY + 1], Op op) {
  const int64_t n = cuplug_n_elements(&tensors[0]);
  map<ARITY, T, Op> code;
  for (int k = 0; k <= ARITY; k++) code.arrays[k] = tensors[k].data;
  code.op = op;
  if (n == 0) return CUPLUG_OK;
  if (!are_plain<ARITY>(tensors)) return launch_any<ARITY, T, Op>(call, tensors, code, n);
  const unsigned blocks = n_blocks(n, (int64_t)WIDTH<T> * cuplug::THREADS);
  return cuplug_launch<packs_kernel<ARITY, T, Op>>(call, blocks, cuplug::THREADS, 0, code, n);
}

/* The first ARITY tensors of the call in, the last out. */
template <int ARITY, typename T, typename Op> int map_call(const cuplug_call *call, Op op) {
  cuplug_tensor tensors[ARITY + 1];
  for (int k = 0; k < ARITY; k++) tensors[k] = call->tensors[k];
  tensors[ARITY] = call->tensors[call->n_tensors - 1];
  return map_tensors<ARITY, T>(call, tensors, op);
}

inline int no_dtype(const cuplug_call *call) {
  return cuplug_fail(call, CUPLUG_ERROR_TYPE, "no code for this dtype");
}

} // namespace elementwise

/* X(DTYPE, C++ type) */
#define ELEMENTWISE_FLOATING(X) \
  X(FLOAT16, __half)            \
  X(BFLOAT16, __nv_bfloat16)    \
  X(FLOAT32, float)             \
  X(FLOAT64, double)
#define ELEMENTWISE_SIGNED(X) \
  X(INT8, int8_t)             \
  X(INT16, int16_t)           \
  X(INT32, int32_t)           \
  X(INT64, int64_t)

#endif
