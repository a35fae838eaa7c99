/* SPDX-License-Identifier: Apache-2.0 */
/* Code shared by the CUDA entries of element-wise operators: kernels that run at the speed of a
 * copy for arrays of any strides, and the dtypes as C++ types. */
#ifndef CUPLUG_PLUGINS_ELEMENTWISE_CUH
#define CUPLUG_PLUGINS_ELEMENTWISE_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuplug/walk.cuh>
#include <cuplug/walk.h>

namespace elementwise {

/* ---- Dtypes ---------------------------------------------------------------------------------- */

/* A complex number. Its product is written out, without C's check for infinities. */
template <typename T> struct alignas(2 * sizeof(T)) complex_number {
  T re, im;
  __device__ complex_number operator*(const complex_number &y) const {
    return {re * y.re - im * y.im, re * y.im + im * y.re};
  }
};

template <typename T> constexpr uint32_t dtype_of = 0;
#define ELEMENTWISE_DTYPE(DTYPE, T) \
  template <> inline constexpr uint32_t dtype_of<T> = CUPLUG_##DTYPE;
ELEMENTWISE_DTYPE(FLOAT16, __half)
ELEMENTWISE_DTYPE(BFLOAT16, __nv_bfloat16)
ELEMENTWISE_DTYPE(FLOAT32, float)
ELEMENTWISE_DTYPE(FLOAT64, double)
ELEMENTWISE_DTYPE(COMPLEX64, complex_number<float>)
ELEMENTWISE_DTYPE(COMPLEX128, complex_number<double>)
ELEMENTWISE_DTYPE(INT8, int8_t)
ELEMENTWISE_DTYPE(INT16, int16_t)
ELEMENTWISE_DTYPE(INT32, int32_t)
ELEMENTWISE_DTYPE(INT64, int64_t)
ELEMENTWISE_DTYPE(UINT8, uint8_t)
ELEMENTWISE_DTYPE(UINT16, uint16_t)
ELEMENTWISE_DTYPE(UINT32, uint32_t)
ELEMENTWISE_DTYPE(UINT64, uint64_t)
#undef ELEMENTWISE_DTYPE

/* The scalars of an operator. */
template <typename... T> struct types {
  template <typename... MORE> using with = types<T..., MORE...>;
};
using floating = types<__half, __nv_bfloat16, float, double>;

/* The type of the computation. */
template <typename T> struct computed { using type = T; };
template <> struct computed<__half> { using type = float; };
template <> struct computed<__nv_bfloat16> { using type = float; };
template <typename T> using computed_t = typename computed<T>::type;

/* ---- Code for an element --------------------------------------------------------------------- */

template <typename T> constexpr int WIDTH = sizeof(T) < 16 ? 16 / sizeof(T) : 1;

/* The inputs and, last, the output; all of one dtype. */
template <int ARITY, typename T> struct operands;
template <typename T> struct operands<1, T> : cuplug::walks::walked<1, 2, T, T> {};
template <typename T> struct operands<2, T> : cuplug::walks::walked<3, 4, T, T, T> {};

/* True if an operator of one input has code for words of adjacent elements. */
template <class OP, typename T, class = void> constexpr bool has_words = false;
template <class OP, typename T>
constexpr bool has_words<OP, T, decltype(void(OP().of_word(types<T>(), 0u)))> = true;

/* out[i] = op(in[i] ...) for complete packs whose elements are T's, in the form in which they are
 * moved, so that they are not split twice. */
template <int ARITY, typename T, class OP, class P>
__device__ inline void map_pack(const OP &op, P &p) {
  using namespace cuplug::walks;
  using C = computed_t<T>;
  using whole = cuplug::pack<T, sizeof(get<0>(p)) / sizeof(T)>;
  const auto first = same_bytes<whole>(get<0>(p));
  whole out;
  if constexpr (ARITY == 1 && sizeof out % 4 == 0 && has_words<OP, T>) {
    auto words = same_bytes<cuplug::pack<unsigned, sizeof out / 4>>(first);
#pragma unroll
    for (unsigned &word : words.value) word = op.of_word(types<T>(), word);
    put(out, words);
  } else if constexpr (ARITY == 1) {
#pragma unroll
    for (int j = 0; j < sizeof out / sizeof(T); j++) out.value[j] = (T)op((C)first.value[j]);
  } else {
    const auto second = same_bytes<whole>(get<1>(p));
#pragma unroll
    for (int j = 0; j < sizeof out / sizeof(T); j++)
      out.value[j] = (T)op((C)first.value[j], (C)second.value[j]);
  }
  put(get<ARITY>(p), out);
}

/* out[i] = op(in[i] ...) */
template <int ARITY, typename T, class OP> struct map : operands<ARITY, T> {
  static constexpr bool TAKES_PACKS = true;
  OP op;
  template <class P> __device__ void operator()(P &p) const { map_pack<ARITY, T>(op, p); }
  template <class P> __device__ void operator()(P &p, int j, int64_t, int64_t) const {
    using cuplug::walks::get;
    using C = computed_t<T>;
    if constexpr (ARITY == 1)
      get<1>(p).value[j] = (T)op((C)get<0>(p).value[j]);
    else
      get<2>(p).value[j] = (T)op((C)get<0>(p).value[j], (C)get<1>(p).value[j]);
  }
};

/* An element of which only the size is known. As an integer, since bytes would be moved one by one.
 */
template <int BYTES> struct word_of { using type = uint8_t; };
template <> struct word_of<2> { using type = uint16_t; };
template <> struct word_of<4> { using type = uint32_t; };
template <> struct word_of<8> { using type = uint64_t; };
template <> struct word_of<16> {
  struct alignas(16) type {
    uint64_t at[2];
  };
};
template <int BYTES> using word = typename word_of<BYTES>::type;

/* The same if the run determines which type of this size the elements have. Most of a kernel for
 * strided arrays locates and moves them. Sharing it among all types keeps plugins small. */
template <int ARITY, int BYTES, class OP, class TYPES> struct sized_map;
template <int ARITY, int BYTES, class OP, typename... T>
struct sized_map<ARITY, BYTES, OP, types<T...>> : operands<ARITY, word<BYTES>> {
  static constexpr bool TAKES_PACKS = true;
  OP op;
  uint32_t dtype;
  template <typename U, class P> __device__ void compute(P &p) const {
    if constexpr (sizeof(U) == BYTES)
      if (dtype == dtype_of<U>) map_pack<ARITY, U>(op, p);
  }
  template <class P> __device__ void operator()(P &p) const { (compute<T>(p), ...); }
  template <typename U, class P> __device__ void compute(P &p, int j) const {
    if constexpr (sizeof(U) == BYTES) {
      if (dtype != dtype_of<U>) return;
      using cuplug::walks::get;
      const auto read = [&](const word<BYTES> &stored) {
        U x;
        memcpy(&x, &stored, BYTES);
        return (computed_t<U>)x;
      };
      U out;
      if constexpr (ARITY == 1)
        out = (U)op(read(get<0>(p).value[j]));
      else
        out = (U)op(read(get<0>(p).value[j]), read(get<1>(p).value[j]));
      memcpy(&get<ARITY>(p).value[j], &out, BYTES);
    }
  }
  template <class P> __device__ void operator()(P &p, int j, int64_t, int64_t) const {
    (compute<T>(p, j), ...);
  }
};

/* ---- Kernels --------------------------------------------------------------------------------- */

/* The sizes and strides of a loop with at most NDIM dimensions. */
template <int N, int NDIM> struct layout {
  cuplug::divisors<NDIM> sizes;
  cuplug::strides<N, NDIM> steps;
};
constexpr int ANY = sizeof(cuplug_loop::sizes) / sizeof(long long); /* number of dimensions */

/* Numbers packs. */
template <int NDIM> struct index_of { using type = unsigned; };
template <> struct index_of<ANY> { using type = int64_t; };

template <int WIDTH, class CODE>
__global__ void __launch_bounds__(cuplug::THREADS) packs_kernel(const CODE code, int64_t n) {
  cuplug::walks::in_packs<WIDTH, 1, 0, 0, int64_t>(code, n, cuplug::divisors<0>(),
                                                   cuplug::strides<CODE::N, 0>());
}

/* Each plugin has each kernel for all sizes of elements. Of lines there are three. WIDTH is more
 * than 1 if input and output are adjacent along the last of FEW dimensions, or the only one, with
 * fewer than CUPLUG__WIDE_FROM elements. The other kernel handles all loops. */
constexpr int FEW = 3;

template <int WIDTH, int NDIM, class CODE>
__global__ void __launch_bounds__(cuplug::THREADS)
    lines_kernel(const CODE code, int64_t n, const __grid_constant__ cuplug_loop_split cut,
                 const __grid_constant__ layout<CODE::N, NDIM> own) {
  using index = typename index_of<NDIM>::type;
  constexpr int KNOWN = NDIM == ANY ? 0 : NDIM;
  constexpr uint64_t NEAR = WIDTH > 1 ? (1ull << CODE::N) - 1 : 0;
  cuplug::walks::in_lines<WIDTH, 1, KNOWN, index>(code, n, cut, own.sizes, own.steps, NEAR, 0);
}

/* With one input, which goes through the tile. */
template <int SIDE, int WIDTH, class CODE>
__global__ void __launch_bounds__(cuplug::THREADS, cuplug::walks::TILE_BLOCKS<WIDTH>)
    tiles_kernel(const CODE code, int64_t n, const __grid_constant__ cuplug_loop_split cut,
                 const __grid_constant__ layout<CODE::N, ANY> own) {
  cuplug::walks::in_tiles<SIDE, WIDTH, 1, 0>(code, n, cut, own.sizes, own.steps);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* Returns whether all arrays are contiguous, and aligned to 16 bytes. */
template <int N> bool are_plain(const cuplug_tensor (&tensors)[N]) {
  uint64_t addresses = 0;
  for (const cuplug_tensor &x : tensors) {
    if (x.strides) return false;
    addresses |= (uint64_t)x.data;
  }
  return addresses % 16 == 0;
}

/* How a call iterates over the elements. */
template <int N> struct plan {
  cuplug_walk_kind kind = CUPLUG_WALK_PACKS;
  int64_t n;
  int width; /* elements per pack, by lines */
  cuplug_loop_split cut;
  cuplug_loop loop;
  long long strides[ANY + 1][CUPLUG_MAX_LOOP_ARRAYS];
};

/* By the rule of <cuplug/walk.h>. Gradients, which have two inputs, are seldom strided: they use no
 * tiles, and single elements along lines, as do loops with an input that is not unit-stride. */
template <int N>
void make_plan(const cuplug_tensor (&tensors)[N], int width, int side, plan<N> *p) {
  constexpr uint64_t WRITTEN = 1ull << (N - 1);
  cuplug__loop_start(&p->loop, N, p->strides);
  for (int32_t d = 0; d < tensors[0].ndim; d++) cuplug__loop_add(&p->loop, tensors, d, 0);
  cuplug__loop_collapse(&p->loop, 1);
  p->kind = cuplug__walk(&p->loop, tensors, WRITTEN, width, N == 2 ? side : 0, &p->cut);
  const bool is_usual = p->n < CUPLUG__WIDE_FROM && p->loop.ndim <= FEW;
  p->width = N == 2 && is_usual && p->cut.near == 3 ? width : 1;
  if (p->kind == CUPLUG_WALK_LINES && p->width != width)
    cuplug__cut_lines(&p->loop, tensors, WRITTEN, 1, &p->cut);
}

/* In a loop with fewer dimensions, the first ones have one element. */
template <int NDIM, int N> layout<N, NDIM> layout_of(const plan<N> &p) {
  layout<N, NDIM> own;
  const int more = NDIM == ANY ? 0 : NDIM - p.loop.ndim;
  for (int to = 0; to < p.loop.ndim + more; to++) {
    const int d = to - more;
    own.sizes.of[to] = cuplug__divisor(d < 0 ? 1 : p.loop.sizes[d], 1);
    for (int k = 0; k < N; k++) own.steps.of[k][to] = d < 0 ? 0 : p.strides[d][k];
  }
  return own;
}

/* Launches the blocks that these items need. One of them handles the elements after complete packs.
 */
template <auto kernel, typename... A>
int launch(const cuplug_call *call, int64_t items, int per_block, const A &...arguments) {
  const int64_t n_blocks = (items + per_block - 1) / per_block;
  return cuplug_launch<kernel>(call, (unsigned)(n_blocks ? n_blocks : 1), cuplug::THREADS, 0,
                               arguments...);
}

template <class CODE, int N, class OP> CODE code_of(const cuplug_tensor (&tensors)[N], OP op) {
  CODE code;
  for (int k = 0; k < N; k++) code.arrays[k] = tensors[k].data;
  code.op = op;
  return code;
}

template <int WIDTH, int NDIM, class CODE, int N>
int launch_lines(const cuplug_call *call, const CODE &code, const plan<N> &p) {
  return launch<lines_kernel<WIDTH, NDIM, CODE>>(call, p.cut.n_items, cuplug::THREADS, code, p.n,
                                                 p.cut, layout_of<NDIM>(p));
}

/* For arrays that are not in packs. */
template <int WIDTH, class CODE, int N>
int launch_strided(const cuplug_call *call, const CODE &code, const plan<N> &p) {
  if constexpr (N == 2) {
    constexpr int SIDE = CUPLUG__TILE_SIDE(sizeof(typename CODE::template type<0>));
    if (p.kind == CUPLUG_WALK_TILES)
      return launch<tiles_kernel<SIDE, WIDTH, CODE>>(call, p.cut.n_items, 1, code, p.n, p.cut,
                                                     layout_of<ANY>(p));
    if constexpr (WIDTH > 1)
      if (p.width > 1)
        return p.loop.ndim == 1 ? launch_lines<WIDTH, 1>(call, code, p)
                                : launch_lines<WIDTH, FEW>(call, code, p);
  }
  return launch_lines<1, ANY>(call, code, p);
}

template <typename T, class TYPES, int N, class OP>
int map_type(const cuplug_call *call, const cuplug_tensor (&tensors)[N], OP op) {
  using typed = map<N - 1, T, OP>;
  using sized = sized_map<N - 1, sizeof(T), OP, TYPES>;
  constexpr int W = WIDTH<T>;
  plan<N> p;
  p.n = cuplug_n_elements(&tensors[0]);
  if (p.n == 0) return CUPLUG_OK;
  if (!are_plain(tensors)) make_plan(tensors, W, CUPLUG__TILE_SIDE(sizeof(T)), &p);
  if (p.kind == CUPLUG_WALK_PACKS)
    return launch<packs_kernel<W, typed>>(call, p.n / W, cuplug::THREADS,
                                          code_of<typed>(tensors, op), p.n);
  sized code = code_of<sized>(tensors, op);
  code.dtype = dtype_of<T>;
  return launch_strided<W>(call, code, p);
}

/* out[i] = op(in[i] ...) for the first ARITY tensors of the call and the last, which may be its own
 * input. All have one shape and one of the types. */
template <int ARITY, typename... T, class OP>
int map_call(const cuplug_call *call, types<T...>, OP op) {
  cuplug_tensor tensors[ARITY + 1];
  for (int k = 0; k < ARITY; k++) tensors[k] = call->tensors[k];
  tensors[ARITY] = call->tensors[call->n_tensors - 1];
  const uint32_t dtype = cuplug_type(&tensors[0]);
  int status = CUPLUG_OK;
  const auto has = [&](auto one) {
    using U = decltype(one);
    if (dtype == dtype_of<U>) status = map_type<U, types<T...>>(call, tensors, op);
    return dtype == dtype_of<U>;
  };
  if ((has(T{}) || ...)) return status;
  return cuplug_fail(call, CUPLUG_ERROR_TYPE, "no code for this dtype");
}

} // namespace elementwise

#endif
