/* SPDX-License-Identifier: Apache-2.0 */
/* Short lines of adjacent elements: each by the lanes of a warp or, if it has few elements, by some
 * of them. */
#include "scan/values.cuh"

namespace {

constexpr int THREADS = 256, ROUNDS = 4; /* elements that a lane reads at once */
constexpr unsigned ALL = 0xffffffffu;

/* The value of a lane. */
template <typename C> __device__ C value_of(const C &value, int lane) {
  uint32_t words[sizeof value / 4];
  memcpy(words, &value, sizeof value);
#pragma unroll
  for (uint32_t &word : words) word = __shfl_sync(ALL, word, lane);
  C found;
  memcpy(&found, words, sizeof value);
  return found;
}

/* `lanes`, a power of two, share a line. */
template <typename T, typename Op>
__global__ void __launch_bounds__(THREADS)
    warp_kernel(const T *__restrict__ x, T *__restrict__ out,
                const __grid_constant__ scan_lines lines, int lanes) {
  using C = scan_computed_t<T>;
  const int lane = threadIdx.x % 32, own = lane & (lanes - 1), last = lane | (lanes - 1);
  const int64_t line = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / lanes;
  const bool is_there = line < lines.n_lines;
  const T *from = x + scan_from(&lines, is_there ? line : 0);
  T *to = out + scan_to(&lines, is_there ? line : 0);
  const int64_t n = is_there ? lines.n : 0;
  C total = Op::template identity<C>();
  for (int64_t first = 0; first < lines.n; first += ROUNDS * lanes) {
    C values[ROUNDS];
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
      const int64_t i = first + r * lanes + own;
      values[r] = Op::template identity<C>();
      if (i < n) values[r] = static_cast<C>(from[i * lines.step]);
    }
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
      const int64_t i = first + r * lanes + own;
      if (first + r * lanes >= lines.n) break;
      C value = values[r];
#pragma unroll
      for (int step = 1; step < 32; step *= 2) {
        const C before = value_of(value, lane - step);
        if (own >= step) value = Op()(before, value);
      }
      value = Op()(total, value);
      total = value_of(value, last);
      if (i < n) to[i * lines.step] = static_cast<T>(value);
    }
  }
}

template <typename T, typename Op>
int run(cuplug::call call, const T *x, T *out, const scan_lines &lines) {
  int lanes = 1;
  while (lanes < 32 && lanes < lines.n) lanes *= 2;
  const int64_t blocks = cuplug::blocks(lines.n_lines, THREADS / lanes);
  return call.launch<warp_kernel<T, Op>>({blocks, THREADS}, x, out, lines, lanes);
}

} // namespace

SCAN_DTYPES(SCAN_DEFINE, scan_short)
