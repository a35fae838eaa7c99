/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of triangles.c. Packs without kept elements are not loaded. */
#include "indexing/triangles.h"

#include <cuplug/plugin.hpp>
#include <cuplug/walk.cuh>
#include <cuplug/walk.h>

#include "elements.h"
#include "indexing/unaligned_packs.cuh"

namespace {

using namespace cuplug::walks;
using cuplug::divide;
using cuplug::pack;

/* triangles on the device. */
struct matrices {
  cuplug_divisor n_rows, size;
  int64_t n, past;
  bool is_upper;
  __device__ bool keeps(int64_t row, int64_t column) const {
    return (column < row + past) != is_upper;
  }
};

/* A pack for each thread. */
template <int WIDTH, typename T>
__global__ void __launch_bounds__(cuplug::THREADS)
    triangle_kernel(const T *__restrict__ x, T *out, const __grid_constant__ matrices own) {
  const int64_t first = ((int64_t)blockIdx.x * cuplug::THREADS + threadIdx.x) * WIDTH;
  if (first >= own.n) return;
  const int64_t line = divide(first, own.size);
  int64_t column = first - line * own.size.size;
  int64_t row = line - divide(line, own.n_rows) * own.n_rows.size;
  const int left = own.n - first < WIDTH ? (int)(own.n - first) : WIDTH;
  unsigned kept = 0;
#pragma unroll
  for (int j = 0; j < WIDTH; j++) {
    kept |= (unsigned)(j < left && own.keeps(row, column)) << j;
    if (++column < own.size.size) continue;
    column = 0;
    if (++row == own.n_rows.size) row = 0;
  }
  if (left < WIDTH) {
#pragma unroll 1
    for (int j = 0; j < left; j++) out[first + j] = kept >> j & 1 ? x[first + j] : T{};
    return;
  }
  pack<T, WIDTH> all = {};
  if (kept) all = load_together<WIDTH>(x + first, first, own.n - first);
#pragma unroll
  for (int j = 0; j < WIDTH; j++)
    if (!(kept >> j & 1)) all.value[j] = T{};
  store_along<WIDTH>(out + first, 1, all);
}

template <typename T> int launch(cuplug::call call, const matrices &own) {
  constexpr int WIDTH = sizeof(T) < 16 ? 16 / sizeof(T) : 1;
  const cuplug_call *c = call;
  const int64_t n_packs = (own.n + WIDTH - 1) / WIDTH;
  return call.launch<triangle_kernel<WIDTH, T>>(
      {cuplug::blocks(n_packs, cuplug::THREADS), cuplug::THREADS}, (const T *)c->tensors[0].data,
      (T *)c->outputs[0].data, own);
}

int triangle(cuplug::call call, bool is_upper) {
  const triangles t = triangles_of(call, is_upper);
  if (t.n == 0) return CUPLUG_OK;
  const matrices own = {cuplug__divisor(t.n_rows, 1), cuplug__divisor(t.size, 1), t.n, t.past,
                        is_upper};
  const cuplug_call *c = call;
#define CASE(T) return launch<T>(call, own);
  ELEMENTS_BY_WIDTH(cuplug_element_bytes(&c->tensors[0]), CASE)
#undef CASE
  return CUPLUG_OK;
}

} // namespace

CUPLUG_ENTRY int tril_cuda(const cuplug_call *call) { return triangle(call, false); }
CUPLUG_ENTRY int triu_cuda(const cuplug_call *call) { return triangle(call, true); }
