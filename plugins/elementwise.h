/* SPDX-License-Identifier: Apache-2.0 */
/* Code shared by the host entries of element-wise operators: the dtypes as C types, the vectors of
 * the CPU, and the loop. */
#ifndef CUPLUG_PLUGINS_ELEMENTWISE_H
#define CUPLUG_PLUGINS_ELEMENTWISE_H

#include <cuplug/halves.h>
#include <cuplug/nontemporal.h>
#include <cuplug/plugin.h>

#include "vectors.h"

/* X(DTYPE, type). The other dtypes are computed as float32 through ELEMENTWISE_HALVES_ENTRY. */
#define ELEMENTWISE_FLOATING(X) \
  X(FLOAT32, float)             \
  X(FLOAT64, double)

/* Below this number, threads cost more time than they save, since they must be woken up first. */
#define ELEMENTWISE_PARALLEL_FROM 65536

#define ELEMENTWISE_GRAIN_BYTES 65536 /* of a thread's range: a multiple of all blocks */

#define ELEMENTWISE_BLOCK_BYTES 8192 /* bytes of outputs that stay in the cache */

static inline int elementwise_parallel(const cuplug_call *call, int64_t n, cuplug_body *body) {
  const int64_t grain = ELEMENTWISE_GRAIN_BYTES / cuplug_element_bytes(&call->tensors[0]);
  return cuplug_parallel(call, n, grain, body, (void *)call);
}

/* The head of a host entry. Its body is compiled for several vector widths and called for ranges of
 * elements, `begin` to `end` - 1: for all, or in parallel if that saves time. The arrays have the
 * same layout; the output is the last. */
#define ELEMENTWISE_ENTRY(name)                                                         \
  VECTORS static int name##_range(const cuplug_call *call, int64_t begin, int64_t end); \
  static int name##_body(void *call, int64_t begin, int64_t end) {                      \
    return name##_range(call, begin, end);                                              \
  }                                                                                     \
  CUPLUG_ENTRY int name(const cuplug_call *call) {                                      \
    const int64_t n = cuplug_n_elements(&call->tensors[0]);                             \
    if (n < ELEMENTWISE_PARALLEL_FROM) return name##_range(call, 0, n);                 \
    return elementwise_parallel(call, n, name##_body);                                  \
  }                                                                                     \
  VECTORS static int name##_range(const cuplug_call *call, int64_t begin, int64_t end)

/* The same for operators that compute float16 and bfloat16 as float32. The body then has blocks of
 * float32. */
#define ELEMENTWISE_HALVES_ENTRY(name)                                                             \
  VECTORS static int name##_floats(const cuplug_call *call, int64_t begin, int64_t end);           \
  ELEMENTWISE_ENTRY(name) {                                                                        \
    const uint32_t type = cuplug_type(&call->tensors[0]);                                          \
    if (type != CUPLUG_FLOAT16 && type != CUPLUG_BFLOAT16) return name##_floats(call, begin, end); \
    return elementwise_halves(call, begin, end, name##_floats);                                    \
  }                                                                                                \
  VECTORS static int name##_floats(const cuplug_call *call, int64_t begin, int64_t end)

/* The iterations of the following loop do not depend on each other. */
#ifdef __clang__
#define ELEMENTWISE_SIMD _Pragma("clang loop vectorize(assume_safety)")
#else
#define ELEMENTWISE_SIMD _Pragma("GCC ivdep")
#endif

/* The statement that follows i, for each i of the range. */
#define ELEMENTWISE_LOOP(i, ...) ELEMENTWISE_SIMD for (int64_t i = begin; i < end; i++) __VA_ARGS__;

/* out[i] = value for each i of the range, where `value` may use i. A large output is computed in
 * blocks of complete lines, which are stored bypassing the caches: it would not fit there, and its
 * lines need not be read first. */
#define ELEMENTWISE_MAP(call, stored, out, i, value)                                              \
  do {                                                                                            \
    enum { BLOCK = CUPLUG_NONTEMPORAL_BLOCK / sizeof(stored) };                                   \
    const int past_ = (end - begin) * (int64_t)sizeof(stored) >= ELEMENTWISE_GRAIN_BYTES &&       \
                      cuplug_n_elements(&call->tensors[0]) >=                                     \
                          (int64_t)(CUPLUG_NONTEMPORAL_FROM / sizeof(stored));                    \
    const int64_t step_ = past_ ? BLOCK : ELEMENTWISE_BLOCK_BYTES / sizeof(stored);               \
    const int64_t lead_ = past_ ? (uintptr_t)out % CUPLUG_LINE_BYTES / sizeof(stored) : 0;        \
    stored block_[BLOCK] __attribute__((aligned(CUPLUG_LINE_BYTES)));                             \
    for (int64_t line_ = begin - lead_; line_ < end; line_ += step_) {                            \
      const int64_t begin_ = line_ < begin ? begin : line_;                                       \
      const int64_t end_ = line_ + step_ < end ? line_ + step_ : end;                             \
      stored *restrict to_ = past_ ? block_ : out + begin_;                                       \
      for (uint32_t k_ = 0; past_ && k_ + 1 < call->n_tensors; k_++)                              \
        cuplug_prefetch_ahead((stored *)call->tensors[k_].data + begin_, sizeof block_);          \
      for (int64_t i = begin_; i < end_; i++) to_[i - begin_] = (stored)(value);                  \
      if (past_) cuplug_copy_nontemporal(out + begin_, block_, (end_ - begin_) * sizeof(stored)); \
    }                                                                                             \
    if (past_) cuplug_nontemporal_fence();                                                        \
  } while (0)

typedef int elementwise_range(const cuplug_call *call, int64_t begin, int64_t end);

/* Calls `range` for blocks of at most three arrays that are float32 instead of float16 or bfloat16.
 * The last one is written. */
static inline int elementwise_halves(const cuplug_call *call, int64_t begin, int64_t end,
                                     elementwise_range *range) {
  enum { MOST = 3, BLOCK = 512 };
  float blocks[MOST][BLOCK] __attribute__((aligned(CUPLUG_LINE_BYTES)));
  uint16_t past_block[BLOCK] __attribute__((aligned(CUPLUG_LINE_BYTES)));
  const int is_bfloat16 = cuplug_type(&call->tensors[0]) == CUPLUG_BFLOAT16;
  const uint32_t last = call->n_tensors - 1, n_inputs = last ? last : 1;
  uint16_t *out = call->tensors[last].data;
  const int past = last && (end - begin) * 2 >= ELEMENTWISE_GRAIN_BYTES &&
                   cuplug_n_elements(&call->tensors[0]) >= CUPLUG_NONTEMPORAL_FROM / 2;
  cuplug_tensor tensors[MOST];
  cuplug_call floats = *call;
  int64_t m;
  floats.tensors = tensors;
  for (uint32_t k = 0; k <= last; k++)
    tensors[k] = (cuplug_tensor){
        .data = blocks[k], .ndim = 1, .dtype = {CUPLUG_FLOAT32 >> 24, 32, 1}, .shape = &m};
  int64_t line = begin - (past ? (int64_t)((uintptr_t)out % CUPLUG_LINE_BYTES / 2) : 0);
  for (; line < end; line += BLOCK) {
    const int64_t at = line < begin ? begin : line;
    m = (line + BLOCK < end ? line + BLOCK : end) - at;
    for (uint32_t k = 0; k < n_inputs; k++) {
      const uint16_t *from = (const uint16_t *)call->tensors[k].data + at;
      if (past) cuplug_prefetch_ahead(from, sizeof past_block);
      (is_bfloat16 ? cuplug_bfloat16_load_block : cuplug_float16_load_block)(blocks[k], from,
                                                                             (size_t)m);
    }
    int status = range(&floats, 0, m);
    if (status) return status;
    uint16_t *to = past ? past_block : out + at;
    (is_bfloat16 ? cuplug_bfloat16_store_block : cuplug_float16_store_block)(to, blocks[last],
                                                                             (size_t)m);
    if (past) cuplug_copy_nontemporal(out + at, past_block, (size_t)m * 2);
  }
  if (past) cuplug_nontemporal_fence();
  return CUPLUG_OK;
}

static inline int elementwise_no_dtype(const cuplug_call *call) {
  return cuplug_fail(call, CUPLUG_ERROR_TYPE, "no code for this dtype");
}

#endif
