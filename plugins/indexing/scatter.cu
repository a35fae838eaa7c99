/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of scatter.c. Additions are atomic. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuplug/plugin.hpp>
#include <cuplug/walk.cuh>
#include <cuplug/walk.h>

#include "atomic_add.cuh"
#include "indexing/scatter.cuh"

namespace {

constexpr int THREADS = 256;
constexpr int AT_ONCE = 4; /* values per thread, whose loads do not wait for each other */

/* Blocks for which a multiprocessor has threads. About a million values are then in flight on the
 * largest GPUs, if registers suffice. */
#if defined(__CUDA_ARCH__) && \
    (__CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 || __CUDA_ARCH__ == 1000)
constexpr int FULL = 2048 / THREADS;
#else
constexpr int FULL = 1024 / THREADS;
#endif

/* Positions that are computed without divisions, and with 32 bits if all numbers are below 2^31. */
struct lines {
  places p;
  cuplug_divisor line, width; /* values of a line and its neighbors; elements of a row */
  bool is_short;
};

lines lines_of(const places &p) {
  const int64_t most = INT32_MAX - THREADS * AT_ONCE, n_x = p.x.n_outer * p.x.m * p.x.width;
  return {p, cuplug__divisor(p.n_along * p.x.width, 1), cuplug__divisor(p.x.width, 1),
          p.n < most && n_x < most};
}

template <typename N> constexpr N NOWHERE = N(-1);

/* The row of the values that contains value e, and the number of its index. */
template <typename N> __device__ inline N row_of(const lines &l, N e) {
  return l.p.x.width == 1 ? e : cuplug::divide(e, l.width);
}
template <typename N> __device__ inline N number_of(const lines &l, N e) {
  return l.p.has_rows ? row_of(l, e) : e;
}

template <typename I, typename N>
__device__ inline void read_indices(const lines &l, N first, int64_t (&seen)[AT_ONCE]) {
#pragma unroll
  for (int k = 0; k < AT_ONCE; k++) {
    const N e = first + k * THREADS;
    if (e < (N)l.p.n) seen[k] = ((const I *)l.p.indices)[number_of(l, e)];
  }
}

/* The elements of x for values `first`, first + THREADS and so on; NOWHERE for bad indices, one of
 * which is recorded, and after the last value. All indices are read before one is used, so that no
 * load waits for another. */
template <typename N>
__device__ inline void find_places(const lines &l, N first, N (&at)[AT_ONCE], cuplug_fault *fault) {
  const elements_axis &x = l.p.x;
  int64_t seen[AT_ONCE];
  if (l.p.type == CUPLUG_INT32)
    read_indices<int32_t>(l, first, seen);
  else
    read_indices<int64_t>(l, first, seen);
  int bad = -1; /* the last one, since a record holds one */
#pragma unroll
  for (int k = 0; k < AT_ONCE; k++) {
    const N e = first + k * THREADS, row = row_of(l, e);
    const N outer = x.n_outer == 1 ? 0 : cuplug::divide(e, l.line);
    const int64_t index = seen[k] + (seen[k] < 0 ? x.m : 0);
    at[k] = NOWHERE<N>;
    if (e >= (N)l.p.n) continue;
    if ((uint64_t)index < (uint64_t)x.m)
      at[k] = (outer * (N)x.m + (N)index) * (N)x.width + (e - row * (N)x.width);
    else
      bad = k;
  }
  if (bad < 0) return;
  const int64_t number = number_of(l, first + bad * (N)THREADS);
  cuplug_fault_index(fault, 1, number, places_index(&l.p, number), -x.m, x.m);
}

/* Calls `work` with the number of a thread's first value, in the required integer width. */
template <typename F> __device__ inline void with_first(const lines &l, const F &work) {
  if (l.is_short)
    work(blockIdx.x * (THREADS * AT_ONCE) + threadIdx.x);
  else
    work((int64_t)blockIdx.x * (THREADS * AT_ONCE) + threadIdx.x);
}

enum class move { take, put, clear, take_last };

template <move what, typename T, typename N>
__device__ inline void move_values(T *x, T *values, const lines &l, N first, int64_t *last,
                                   cuplug_fault *fault) {
  N at[AT_ONCE];
  T moved[AT_ONCE];
  find_places(l, first, at, fault);
#pragma unroll
  for (int k = 0; k < AT_ONCE; k++) {
    const N e = first + k * THREADS;
    moved[k] = T{};
    if (at[k] == NOWHERE<N>) continue;
    if constexpr (what == move::put) moved[k] = values[e];
    if constexpr (what == move::take) moved[k] = x[at[k]];
    if constexpr (what == move::take_last)
      if (last[at[k]] == e) moved[k] = x[at[k]];
  }
#pragma unroll
  for (int k = 0; k < AT_ONCE; k++) {
    const N e = first + k * THREADS;
    if (at[k] == NOWHERE<N>) continue;
    if constexpr (what == move::put || what == move::clear)
      x[at[k]] = moved[k];
    else
      values[e] = moved[k];
    if constexpr (what == move::clear) last[at[k]] = e;
  }
}

template <typename T, move what>
__global__ void __launch_bounds__(THREADS, sizeof(T) <= 8 ? FULL : FULL * 3 / 4)
    move_kernel(T *x, T *values, const __grid_constant__ lines l, int64_t *last,
                cuplug_fault *fault) {
  with_first(l, [&](auto first) { move_values<what>(x, values, l, first, last, fault); });
}

template <move what>
int run(cuplug::call call, const places &p, void *x, void *values, int64_t element_bytes,
        int64_t *last = nullptr) {
  if (p.n == 0) return CUPLUG_OK;
#define CASE(T)                                                                               \
  return call.launch<move_kernel<T, what>>({cuplug::blocks(p.n, THREADS * AT_ONCE), THREADS}, \
                                           (T *)x, (T *)values, lines_of(p), last, call.fault());
  ELEMENTS_BY_WIDTH(element_bytes, CASE)
#undef CASE
  return CUPLUG_OK;
}

/* ---- Additions ------------------------------------------------------------------------------- */

__device__ inline uint16_t sum_of(uint16_t a, uint16_t b, __half *) {
  return __half_as_ushort(
      __float2half(__half2float(__ushort_as_half(a)) + __half2float(__ushort_as_half(b))));
}
__device__ inline uint16_t sum_of(uint16_t a, uint16_t b, __nv_bfloat16 *) {
  return __bfloat16_as_ushort(__float2bfloat16(__bfloat162float(__ushort_as_bfloat16(a)) +
                                               __bfloat162float(__ushort_as_bfloat16(b))));
}
__device__ inline uint16_t sum_of(uint16_t a, uint16_t b, uint16_t *) { return a + b; }
__device__ inline uint8_t sum_of(uint8_t a, uint8_t b, uint8_t *) { return a + b; }

template <int n_bytes> struct word_part { using type = uint8_t; };
template <> struct word_part<2> { using type = uint16_t; };

/* Elements smaller than a word are exchanged within one. */
template <typename T> __device__ void add_to(T *x, T value) {
  using U = typename word_part<sizeof(T)>::type;
  const int shift = (int)((uintptr_t)x & 3) * 8;
  unsigned *word = (unsigned *)((uintptr_t)x & ~(uintptr_t)3), seen = *word, before;
  const U own = *reinterpret_cast<const U *>(&value);
  do {
    before = seen;
    const unsigned sum = sum_of((U)(before >> shift), own, (T *)nullptr);
    const unsigned mask = (unsigned)(U)~U(0) << shift;
    seen = atomicCAS(word, before, (before & ~mask) | sum << shift);
  } while (seen != before);
}

/* Elements consist of n_parts numbers; complex ones have two. */
template <int n_parts, typename T, typename N>
__device__ inline void add_values(T *x, const T *__restrict__ values, const lines &l, N first,
                                  cuplug_fault *fault) {
  N at[AT_ONCE];
  T added[AT_ONCE][n_parts];
#pragma unroll
  for (int k = 0; k < AT_ONCE; k++) {
    const N e = first + k * THREADS;
    if (e >= (N)l.p.n) continue;
    for (int i = 0; i < n_parts; i++) added[k][i] = values[(int64_t)e * n_parts + i];
  }
  find_places(l, first, at, fault);
#pragma unroll
  for (int k = 0; k < AT_ONCE; k++) {
    if (at[k] == NOWHERE<N>) continue;
    for (int i = 0; i < n_parts; i++) add_to(x + (int64_t)at[k] * n_parts + i, added[k][i]);
  }
}

template <int n_bytes>
constexpr int BLOCKS = n_bytes <= 4   ? FULL
                       : n_bytes == 8 ? FULL * 3 / 4
                                      : FULL * 5 / 8;

template <typename T, int n_parts>
__global__ void __launch_bounds__(THREADS, BLOCKS<sizeof(T) * n_parts>)
    add_kernel(T *x, const T *__restrict__ values, const __grid_constant__ lines l,
               cuplug_fault *fault) {
  with_first(l, [&](auto first) { add_values<n_parts>(x, values, l, first, fault); });
}

template <typename T, int n_parts = 1>
int add(cuplug::call call, const places &p, void *x, void *values) {
  return call.launch<add_kernel<T, n_parts>>({cuplug::blocks(p.n, THREADS * AT_ONCE), THREADS},
                                             (T *)x, (const T *)values, lines_of(p), call.fault());
}

int run_add(cuplug::call call, const places &p, void *x, void *values) {
  if (p.n == 0) return CUPLUG_OK;
  const cuplug_call *c = call;
  switch (cuplug_type(&c->outputs[0])) {
  case CUPLUG_INT8:
  case CUPLUG_UINT8:
    return add<uint8_t>(call, p, x, values);
  case CUPLUG_INT16:
  case CUPLUG_UINT16:
    return add<uint16_t>(call, p, x, values);
  case CUPLUG_INT32:
  case CUPLUG_UINT32:
    return add<unsigned>(call, p, x, values);
  case CUPLUG_INT64:
  case CUPLUG_UINT64:
    return add<unsigned long long>(call, p, x, values);
  case CUPLUG_FLOAT16:
    return add<__half>(call, p, x, values);
  case CUPLUG_BFLOAT16:
    return add<__nv_bfloat16>(call, p, x, values);
  case CUPLUG_FLOAT32:
    return add<float>(call, p, x, values);
  case CUPLUG_FLOAT64:
    return add<double>(call, p, x, values);
  case CUPLUG_COMPLEX64:
    return add<float, 2>(call, p, x, values);
  default:
    return add<double, 2>(call, p, x, values);
  }
}

/* ---- Entries --------------------------------------------------------------------------------- */

int64_t n_bytes(const cuplug_tensor &x) { return cuplug_n_elements(&x) * cuplug_element_bytes(&x); }

/* The positions in x that indices select. The indices must have the sizes of x, except along the
 * axis. */
int find(const cuplug_call *c, const cuplug_tensor &x, places *p) {
  *p = places_of(&c->tensors[1], &x, c->scalars[0].i, 0);
  return elements_check_beside(c, "indices", &c->tensors[1], &x, c->scalars[0].i);
}

int copy(cuplug::call call, const cuplug_tensor &to, const cuplug_tensor &from) {
  return n_bytes(to) ? call.check(cudaMemcpyAsync(to.data, from.data, n_bytes(to),
                                                  cudaMemcpyDefault, call.stream()))
                     : CUPLUG_OK;
}

} // namespace

CUPLUG_ENTRY int take_along_axis_cuda(const cuplug_call *c) {
  const cuplug_tensor &x = c->tensors[0];
  places p;
  const int status = find(c, x, &p);
  return status ? status
                : run<move::take>(c, p, x.data, c->outputs[0].data, cuplug_element_bytes(&x));
}

CUPLUG_ENTRY int take_along_axis_backward_cuda(const cuplug_call *c) {
  places p;
  const int status = find(c, c->tensors[2], &p);
  return status ? status : scatter_add(c, p, c->tensors[0].data);
}

CUPLUG_ENTRY int put_along_axis_cuda(const cuplug_call *c) {
  const cuplug_tensor &x = c->tensors[0];
  places p;
  const int status = find(c, x, &p);
  return status ? status
                : run<move::put>(c, p, x.data, c->tensors[2].data, cuplug_element_bytes(&x));
}

CUPLUG_ENTRY int put_cuda(const cuplug_call *c) {
  const cuplug_tensor &x = c->tensors[0];
  return run<move::put>(c, places_of(&c->tensors[1], &x, 0, 1), x.data, c->tensors[2].data,
                        cuplug_element_bytes(&x));
}

CUPLUG_ENTRY int scatter_cuda(const cuplug_call *c) {
  const cuplug_tensor &out = c->outputs[0];
  places p;
  int status = find(c, c->tensors[0], &p);
  if (!status) status = copy(c, out, c->tensors[0]);
  return status ? status
                : run<move::put>(c, p, out.data, c->tensors[2].data, cuplug_element_bytes(&out));
}

CUPLUG_ENTRY int scatter_add_cuda(const cuplug_call *c) {
  places p;
  int status = find(c, c->tensors[0], &p);
  if (!status) status = copy(c, c->outputs[0], c->tensors[0]);
  return status ? status : run_add(c, p, c->outputs[0].data, c->tensors[2].data);
}

CUPLUG_ENTRY int scatter_add_backward_cuda(const cuplug_call *c) {
  const cuplug_tensor &grad = c->tensors[0];
  places p;
  int status = find(c, grad, &p);
  if (!status) status = copy(c, c->outputs[0], grad);
  return status ? status
                : run<move::take>(c, p, grad.data, c->outputs[1].data, cuplug_element_bytes(&grad));
}

CUPLUG_ENTRY int scatter_backward_cuda(const cuplug_call *c) {
  places p;
  const int status = find(c, c->tensors[0], &p);
  return status ? status : scatter_gradients(c, p, c->outputs[1].data);
}

CUPLUG_ENTRY int put_backward_cuda(const cuplug_call *c) {
  return scatter_gradients(c, places_of(&c->tensors[1], &c->tensors[0], 0, 1), c->outputs[1].data);
}

int scatter_gradients(const cuplug_call *c, const places &p, void *grad_values) {
  const cuplug::call call(c);
  const cuplug_tensor &grad = c->tensors[0];
  void *grad_x = c->outputs[0].data;
  const int64_t width = cuplug_element_bytes(&grad), n = cuplug_n_elements(&grad);
  int64_t *last = call.workspace<int64_t>(n ? n : 1);
  if (!last) return CUPLUG_ERROR_MEMORY;
  int status = copy(call, c->outputs[0], grad);
  if (!status) status = run<move::clear>(call, p, grad_x, nullptr, width, last);
  return status ? status : run<move::take_last>(call, p, grad.data, grad_values, width, last);
}

int scatter_add(const cuplug_call *c, const places &p, void *values) {
  const cuplug::call call(c);
  const cuplug_tensor &out = c->outputs[0];
  int status = CUPLUG_OK;
  if (n_bytes(out)) status = call.check(cudaMemsetAsync(out.data, 0, n_bytes(out), call.stream()));
  return status ? status : run_add(call, p, out.data, values);
}
