/* SPDX-License-Identifier: Apache-2.0 */
/* For each row, with a = max_k |x[k]| and the largest value g, 127 or 448:
 *   scales = a / g, values[j] = x[j] / scales, rounded to nearest, ties to even; 0 for subnormal
 *   scales
 * quantize_int8(x) -> (values: int8[..., n], scales: float32[...]), g = 127
 * quantize_float8(x) -> (values: float8_e4m3fn[..., n], scales: float32[...]), g = 448
 * x: T[..., n], float16, bfloat16 or float32. values * scales equals x to within half a step. The
 * scale of a row with NaN is NaN. Otherwise, the scale of a row with infinity is infinity, and its
 * values are meaningless. Sources: Dettmers et al., LLM.int8(), arXiv:2208.07339, section 2;
 * Micikevicius et al., FP8 Formats for Deep Learning, arXiv:2209.05433. */
#include "rows/rows.h"

#include <math.h>
#include <stdbool.h>

CUPLUG_ENTRY int quantize_int8_cuda(const cuplug_call *call);
CUPLUG_ENTRY int quantize_float8_cuda(const cuplug_call *call);

/* The largest magnitude; NaN exceeds all numbers. */
ROWS_INLINE float greatest_magnitude(rows_block *v, const cuplug_tensor *x, int64_t row,
                                     int64_t n) {
  uint32_t lanes[ROWS_LANES] = {0}, most = 0; /* bits, in the order of magnitudes */
  ROWS_OVER(n) {
    rows_load(v, x, row * n + begin, m, 0);
    ROWS_LANES_EACH(i, lane, {
      uint32_t bits;
      memcpy(&bits, &v->at[i], sizeof bits);
      bits &= 0x7fffffffu;
      lanes[lane] = bits > lanes[lane] ? bits : lanes[lane];
    })
  }
  for (int k = 0; k < ROWS_LANES; k++) most = lanes[k] > most ? lanes[k] : most;
  float found;
  memcpy(&found, &most, sizeof found);
  return found;
}

/* -127 to 127, rounded; any number for NaN. */
ROWS_INLINE uint8_t int8_of(float x) {
  const float most = x < 127 ? x : 127, least = most > -127 ? most : -127;
  const float shifted = least + 0x1.8p23f;
  uint32_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  return (uint8_t)bits;
}

/* |x| <= 448: a sign, 4 bits of exponent from 2^-6 on, 3 bits of fraction. */
ROWS_INLINE uint8_t float8_of(float x) {
  uint32_t bits, small;
  memcpy(&bits, &x, sizeof bits);
  const uint32_t sign = bits >> 31 << 7, magnitude = bits & 0x7fffffffu;
  const float from_zero = fabsf(x) + 0x1p14f; /* its last bit is a step of subnormal numbers */
  memcpy(&small, &from_zero, sizeof small);
  const uint32_t rounded = magnitude + 0x7ffffu + (magnitude >> 20 & 1);
  const uint32_t normal = (rounded >> 20) - ((127 - 7) << 3);
  const uint32_t value = magnitude < 0x3c800000u ? small & 0xffu : normal;
  return (uint8_t)(sign | (magnitude > 0x43e00000u ? 0x7eu : value));
}

ROWS_INLINE void quantize(const cuplug_call *call, int64_t row, int64_t n, float greatest,
                          uint8_t (*of)(float)) {
  const cuplug_tensor *x = call->tensors;
  rows_block v;
  const float most = greatest_magnitude(&v, x, row, n), scale = most / greatest;
  const float factor = scale >= 0x1p-126f ? 1 / scale : 0;
  ((float *)call->tensors[2].data)[row] = scale;
  ROWS_OVER(n) {
    uint8_t *values = (uint8_t *)call->tensors[1].data + row * n + begin;
    if (n > ROWS_BLOCK) rows_load(&v, x, row * n + begin, m, 0);
    ROWS_EACH(i, values[i] = of(v.at[i] * factor))
  }
}
#define ROWS(name, greatest, of)                                     \
  VECTORS static int name(void *call_, int64_t begin, int64_t end) { \
    const cuplug_call *call = call_;                                 \
    for (int64_t row = begin; row < end; row++)                      \
      quantize(call, row, rows_length(call->tensors), greatest, of); \
    return CUPLUG_OK;                                                \
  }
ROWS(int8_rows, 127, int8_of)
ROWS(float8_rows, 448, float8_of)

/* Rows without elements also have a scale. */
static int run(const cuplug_call *call, cuplug_body *body) {
  const cuplug_tensor *x = call->tensors, *scales = x + 2;
  return rows_parallel(call, cuplug_n_elements(scales), rows_length(x), body, (void *)call);
}
CUPLUG_ENTRY int quantize_int8_host(const cuplug_call *call) { return run(call, int8_rows); }
CUPLUG_ENTRY int quantize_float8_host(const cuplug_call *call) { return run(call, float8_rows); }

CUPLUG_OPERATOR(
    quantize_int8_cuda, quantize_int8_host,
    "quantize_int8(x: T[..., n]) -> (values: int8[..., n], scales: float32[...])" ROWS_DTYPES,
    "Rows as 8-bit integers, with a scale for each row." ROWS_PROPERTIES);
CUPLUG_OPERATOR(quantize_float8_cuda, quantize_float8_host,
                "quantize_float8(x: T[..., n]) -> (values: float8_e4m3fn[..., n], "
                "scales: float32[...])" ROWS_DTYPES,
                "Rows as 8-bit floats, with a scale for each row." ROWS_PROPERTIES);
