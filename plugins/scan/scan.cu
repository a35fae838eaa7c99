/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of scan.c. Adjacent lines are scanned by blocks of 32,
 * columns.cu, or, if they are short and many, by a thread each. Other lines are scanned by all of
 * the GPU if they are long, single_pass.cu, by a warp each if they are short, warp_per_line.cu, or
 * else by a block each, block_per_line.cu. */
#include "scan/values.cuh"

namespace {

constexpr int THREADS = 256;
constexpr int64_t LONG = 1 << 16; /* elements of a line that fills a GPU on its own */
constexpr int64_t FEW = 128;      /* lines that do not, with a block for each */
constexpr int64_t WIDE = 16;      /* adjacent lines, which blocks process in groups of 32 */
constexpr int64_t SHORT = 128;    /* elements of lines with a thread each, if they are MANY */
constexpr int64_t MANY = 1 << 12;
constexpr int64_t OF_WARP = 1 << 11; /* elements of lines with a warp each, if they are MANY */

template <typename T, typename Op>
__global__ void __launch_bounds__(THREADS)
    short_kernel(const T *__restrict__ x, T *__restrict__ out,
                 const __grid_constant__ scan_lines lines) {
  const int64_t line = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (line >= lines.n_lines) return;
  const T *from = x + scan_from(&lines, line);
  T *to = out + scan_to(&lines, line);
  scan_computed_t<T> sum = Op::template identity<scan_computed_t<T>>();
#pragma unroll 4
  for (int64_t i = 0; i < lines.n; i++) {
    sum = Op()(sum, static_cast<scan_computed_t<T>>(from[i * lines.step]));
    to[i * lines.step] = static_cast<T>(sum);
  }
}

template <typename T, typename Op>
__global__ void __launch_bounds__(THREADS)
    begin_lines_kernel(T *out, const __grid_constant__ scan_lines lines) {
  const int64_t line = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (line >= lines.n_lines) return;
  out[scan_to(&lines, line) - lines.step] = static_cast<T>(scan_computed_t<T>(Op::INITIAL));
}

template <typename T, typename Op> int scan(cuplug::call call, const scan_lines &lines) {
  const cuplug_call *c = call;
  const T *x = (const T *)c->tensors[0].data;
  T *out = (T *)c->outputs[0].data;
  const cuplug::grid of_lines({cuplug::blocks(lines.n_lines, THREADS)}, THREADS);
  if (lines.has_initial)
    if (int status = call.launch<begin_lines_kernel<T, Op>>(of_lines, out, lines)) return status;
  if (lines.n == 0) return CUPLUG_OK;
  if (lines.in.width > 1 && lines.n < SHORT && lines.n_lines >= MANY)
    return call.launch<short_kernel<T, Op>>(of_lines, x, out, lines);
  if (lines.in.width >= WIDE) return scan_columns(call, x, out, lines, Op());
  if (lines.n >= LONG && lines.n_lines <= FEW) return scan_long(call, x, out, lines, Op());
  if (lines.in.width == 1 && (lines.n <= 32 || (lines.n <= OF_WARP && lines.n_lines >= MANY)))
    return scan_short(call, x, out, lines, Op());
  return scan_each(call, x, out, lines, Op());
}

template <typename Op> int scan(cuplug::call call, bool is_backward) {
  const cuplug_call *c = call;
  const scan_lines lines = scan_lines_of(c, is_backward);
  if (lines.n_lines == 0) return CUPLUG_OK;
  switch (cuplug_type(&c->tensors[0])) {
  case CUPLUG_INT32:
  case CUPLUG_UINT32:
    return scan<uint32_t, Op>(call, lines);
  case CUPLUG_INT64:
  case CUPLUG_UINT64:
    return scan<uint64_t, Op>(call, lines);
  case CUPLUG_FLOAT16:
    return scan<__half, Op>(call, lines);
  case CUPLUG_BFLOAT16:
    return scan<__nv_bfloat16, Op>(call, lines);
  case CUPLUG_FLOAT32:
    return scan<float, Op>(call, lines);
  case CUPLUG_FLOAT64:
    return scan<double, Op>(call, lines);
  case CUPLUG_COMPLEX64:
    return scan<scan_complex<float>, Op>(call, lines);
  case CUPLUG_COMPLEX128:
    return scan<scan_complex<double>, Op>(call, lines);
  }
  return call.fail(CUPLUG_ERROR_TYPE, "no code for this dtype");
}

} // namespace

CUPLUG_ENTRY int cumulative_sum_cuda(const cuplug_call *call) {
  return scan<scan_plus>(call, false);
}
CUPLUG_ENTRY int cumulative_sum_backward_cuda(const cuplug_call *call) {
  return scan<scan_plus>(call, true);
}
CUPLUG_ENTRY int cumulative_prod_cuda(const cuplug_call *call) {
  return scan<scan_times>(call, false);
}
