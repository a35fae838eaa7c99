/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of concat.c. Adjacent threads store 16 adjacent bytes each,
 * whatever their rows and parts, so each sector is written once. */
#include "indexing/concat.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuplug/plugin.hpp>
#include <cuplug/walk.cuh>

#include "elements.h"
#include "indexing/unaligned_packs.cuh"

namespace {

using namespace cuplug::walks;
using cuplug::divide;
using cuplug::pack;

__device__ inline int rest_of(int n, const cuplug_divisor &by) {
  return n - (int)(divide((unsigned)n, by) * (unsigned)by.size);
}
__device__ inline int64_t rest_of(int64_t n, const cuplug_divisor &by) {
  return n - divide(n, by) * by.size;
}

/* The position of an element, and the numbers of its part's elements before it and from it on. */
template <typename T, typename OFFSET> struct place {
  const T *at;
  OFFSET before, after;
  bool is_near; /* these are contiguous */
};

/* joins_rows on the device. A single part begins repeatedly. OFFSET holds the distances of a pack's
 * elements, which may be in several rows, from the start of the first of these rows. */
template <typename T, int PARTS, typename OFFSET> struct parts {
  using element = T;
  using offset = OFFSET;
  static constexpr int N = PARTS;
  const T *data[PARTS]; /* where a part would begin if it were the whole row */
  long long row_step[PARTS];
  OFFSET step[PARTS], end[PARTS];
  cuplug_divisor size, period;

  /* `rows`: the start of a row in each part; `down`: the number of rows below it. */
  __device__ place<T, OFFSET> find(const T *const (&rows)[PARTS], int down, OFFSET column) const {
    if constexpr (PARTS == 1) column = rest_of(column, period);
    const T *from = rows[0];
    OFFSET begin = 0, past = end[0], own = step[0], of_row = (OFFSET)row_step[0];
#pragma unroll
    for (int k = 1; k < PARTS; k++) {
      if (column < end[k - 1]) continue;
      from = rows[k], begin = end[k - 1], past = end[k], own = step[k];
      of_row = (OFFSET)row_step[k];
    }
    return {from + (down * of_row + column * own), column - begin, past - column, own == 1};
  }
};

/* A pack for each thread. */
template <int WIDTH, class FROM>
__global__ void __launch_bounds__(cuplug::THREADS)
    join_kernel(const __grid_constant__ FROM from, typename FROM::element *out, int64_t n) {
  using T = typename FROM::element;
  using offset = typename FROM::offset;
  const int64_t first = ((int64_t)blockIdx.x * cuplug::THREADS + threadIdx.x) * WIDTH;
  if (first >= n) return;
  const int64_t row = divide(first, from.size);
  const int left = n - first < WIDTH ? (int)(n - first) : WIDTH;
  offset column = (offset)(first - row * from.size.size);
  const T *rows[FROM::N];
#pragma unroll
  for (int k = 0; k < FROM::N; k++) rows[k] = from.data[k] + row * from.row_step[k];
  const auto own = from.find(rows, 0, column);
  if (own.is_near && own.after >= WIDTH) {
    store_along<WIDTH>(out + first, 1, load_together<WIDTH>(own.at, own.before, own.after));
    return;
  }
  int down = 0;
  if (left < WIDTH) {
#pragma unroll 1
    for (int j = 0; j < left; j++) {
      out[first + j] = *from.find(rows, down, column).at;
      if (++column == (offset)from.size.size) column = 0, down++;
    }
    return;
  }
  pack<T, WIDTH> each;
#pragma unroll
  for (int j = 0; j < WIDTH; j++) {
    each.value[j] = *from.find(rows, down, column).at;
    if (++column == (offset)from.size.size) column = 0, down++;
  }
  store_along<WIDTH>(out + first, 1, each);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

template <typename T, int PARTS, typename OFFSET>
parts<T, PARTS, OFFSET> parts_of(const joins_rows &rows) {
  parts<T, PARTS, OFFSET> p;
  int64_t begin = 0;
  p.size = cuplug__divisor(rows.size, 1);
  p.period = cuplug__divisor(rows.period, 1);
  for (int k = 0; k < PARTS; k++) {
    const joins_part &own = rows.parts[k < rows.n_parts ? k : rows.n_parts - 1];
    const uint64_t ahead = (uint64_t)begin * (uint64_t)own.step * sizeof(T);
    p.data[k] = (const T *)((uint64_t)own.data - ahead);
    p.row_step[k] = own.row_step;
    p.step[k] = (OFFSET)own.step;
    p.end[k] = (OFFSET)own.end;
    begin = own.end;
  }
  return p;
}

/* Returns whether an int holds the distance of a pack's elements from the start of its first row.
 */
bool are_short(const joins_rows &rows) {
  constexpr double MOST = 1 << 30, DOWN = 16; /* rows of a pack */
  bool fit = (double)rows.size < MOST;
  for (int k = 0; k < rows.n_parts; k++) {
    const double row_step = (double)rows.parts[k].row_step, step = (double)rows.parts[k].step;
    fit &= DOWN * fabs(row_step) + (double)rows.size * fabs(step) < MOST;
  }
  return fit;
}

template <typename T, int PARTS, typename OFFSET>
int launch(cuplug::call call, const joins_rows &rows, void *out) {
  constexpr int WIDTH = sizeof(T) < 16 ? 16 / sizeof(T) : 1;
  const int64_t n = rows.n * rows.size, n_packs = (n + WIDTH - 1) / WIDTH;
  return call.launch<join_kernel<WIDTH, parts<T, PARTS, OFFSET>>>(
      {cuplug::blocks(n_packs, cuplug::THREADS), cuplug::THREADS}, parts_of<T, PARTS, OFFSET>(rows),
      (T *)out, n);
}

template <typename T> int join(cuplug::call call, const joins_rows &rows, void *out) {
  const bool is_short = are_short(rows);
  if (rows.n_parts == 1 && is_short) return launch<T, 1, int>(call, rows, out);
  if (rows.n_parts == 1) return launch<T, 1, int64_t>(call, rows, out);
  if (rows.n_parts == 2 && is_short) return launch<T, 2, int>(call, rows, out);
  if (is_short) return launch<T, JOINS_MOST, int>(call, rows, out);
  return launch<T, JOINS_MOST, int64_t>(call, rows, out);
}

int join(cuplug::call call, const joins_rows &rows, void *out) {
  if (rows.n * rows.size == 0) return CUPLUG_OK;
#define CASE(T) return join<T>(call, rows, out);
  ELEMENTS_BY_WIDTH(rows.element_bytes, CASE)
#undef CASE
  return CUPLUG_OK;
}

/* ---- Sums of repeated elements --------------------------------------------------------------- */

/* A complex number, which is summed in two parts. */
template <typename R> struct alignas(2 * sizeof(R)) pair {
  R real, imag;
  __host__ __device__ pair(R real = 0, R imag = 0) : real(real), imag(imag) {}
  __host__ __device__ pair operator+(const pair &b) const { return {real + b.real, imag + b.imag}; }
};

/* n sums of every w-th element in rows of `size`. */
template <typename C, typename T, typename OUT>
__global__ void __launch_bounds__(cuplug::THREADS)
    sum_kernel(const T *__restrict__ rows, OUT *__restrict__ out, int64_t n, int64_t w,
               int64_t size) {
  const int64_t at = (int64_t)blockIdx.x * cuplug::THREADS + threadIdx.x;
  if (at >= n) return;
  const T *from = rows + at / w * size;
  C sum(0);
  for (int64_t j = at % w; j < size; j += w) sum = sum + static_cast<C>(from[j]);
  out[at] = static_cast<OUT>(sum);
}

template <typename C, typename T, typename OUT>
int sum(cuplug::call call, const T *rows, OUT *out, int64_t n, int64_t w, int64_t size) {
  if (n == 0) return CUPLUG_OK;
  return call.launch<sum_kernel<C, T, OUT>>({cuplug::blocks(n, cuplug::THREADS), cuplug::THREADS},
                                            rows, out, n, w, size);
}

template <typename T, typename C = T> int backward(cuplug::call call) {
  const cuplug_call *c = call;
  const cuplug_tensor *grad = &c->tensors[0], *out = &c->outputs[0];
  return sum<C>(call, (const T *)grad->data, (T *)out->data, cuplug_n_elements(out), out->shape[1],
                grad->shape[1]);
}

/* In three steps: each thread sums n / MANY, then MANY / FEW, then FEW numbers. */
template <typename T, typename C = T>
int sum_to_one(cuplug::call call, const void *from, int64_t n, void *to) {
  constexpr int64_t MANY = 16384, FEW = 128;
  C *many = call.workspace<C>(MANY + FEW), *few = many + MANY;
  if (!many) return CUPLUG_ERROR_MEMORY;
  int status = sum<C>(call, (const T *)from, many, MANY, MANY, n);
  if (!status) status = sum<C>(call, (const C *)many, few, FEW, FEW, MANY);
  return status ? status : sum<C>(call, (const C *)few, (T *)to, 1, 1, FEW);
}

} // namespace

CUPLUG_ENTRY int join_cuda(const cuplug_call *call) {
  return join(call, joins_rows_of(call), call->outputs[0].data);
}
CUPLUG_ENTRY int join_backward_cuda(const cuplug_call *call) {
  int64_t begin = 0;
  for (int k = 0; k < (int)call->n_tensors - (int)call->n_inputs; k++) {
    const cuplug_tensor *out = &call->outputs[k];
    if (int status = join(call, joins_part_of(call, k, begin), out->data)) return status;
    begin += out->shape[1];
  }
  return CUPLUG_OK;
}
CUPLUG_ENTRY int repeat_cuda(const cuplug_call *call) { return join_cuda(call); }

/* Calls a function of a type of numbers and of the type that their sums are computed in. */
#define BY_TYPE(type, F, ...)                    \
  switch (type) {                                \
  case CUPLUG_FLOAT16:                           \
    return F<__half, float>(__VA_ARGS__);        \
  case CUPLUG_BFLOAT16:                          \
    return F<__nv_bfloat16, float>(__VA_ARGS__); \
  case CUPLUG_FLOAT32:                           \
    return F<float>(__VA_ARGS__);                \
  case CUPLUG_FLOAT64:                           \
    return F<double>(__VA_ARGS__);               \
  case CUPLUG_COMPLEX64:                         \
    return F<pair<float>>(__VA_ARGS__);          \
  }                                              \
  return F<pair<double>>(__VA_ARGS__);

CUPLUG_ENTRY int repeat_backward_cuda(const cuplug_call *call) {
  BY_TYPE(cuplug_type(&call->tensors[0]), backward, call)
}

int sum_all(const cuplug_call *call, const void *from, int64_t n, void *to, uint32_t type) {
  BY_TYPE(type, sum_to_one, call, from, n, to)
}
