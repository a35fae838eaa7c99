/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the kernels of gather and gather_backward: the rows that indices select. */
#ifndef CUPLUG_PLUGINS_GATHER_INDICES_CUH
#define CUPLUG_PLUGINS_GATHER_INDICES_CUH

#include <cuplug/plugin.h>

#include "gather/sizes.h"

namespace {

constexpr int THREADS = 256;
constexpr unsigned FILLED = 2048; /* blocks that keep any GPU busy */

/* n rows of n_words words are taken from the m rows of the source (in each of its parts). */
struct shape {
  int64_t n, m, n_words;
  int mode;
};

/* Returns the row that an index selects, or -1 for none. */
__host__ __device__ inline int64_t resolve(int64_t index, const shape &s) {
  int64_t row = index;
  if (s.mode == GATHER_RAISE) {
    row += row < 0 ? s.m : 0;
    return (uint64_t)row < (uint64_t)s.m ? row : -1;
  }
  if (s.mode == GATHER_CLIP) return row < 0 ? 0 : row < s.m ? row : s.m - 1;
  row %= s.m;
  return row < 0 ? row + s.m : row;
}

/* Returns the row of index number `at`, and records a fault for a missing one. */
__device__ inline int64_t resolve(int64_t index, const shape &s, int64_t at, cuplug_fault *fault) {
  const int64_t row = resolve(index, s);
  if (row < 0) cuplug_fault_index(fault, 1, at, index, -s.m, s.m);
  return row;
}

/* Along the first axis: row i belongs to index number i. */
template <typename I> struct plain_index {
  const I *index;
  /* Sets the rows of several numbers, -1 for numbers below 0. All indices are loaded before the
   * first is used, since no load is moved ahead of code that may record a fault. */
  template <int N>
  __device__ void find(const int64_t (&at)[N], const shape &s, cuplug_fault *fault,
                       int64_t (&row)[N]) const {
    I found[N];
#pragma unroll
    for (int k = 0; k < N; k++) found[k] = at[k] >= 0 ? index[at[k]] : 0;
#pragma unroll
    for (int k = 0; k < N; k++) row[k] = at[k] >= 0 ? resolve(found[k], s, at[k], fault) : -1;
  }
};

/* Along any axis, with an index of any dtype: n rows in each part of the source. */
struct any_index {
  const void *index; /* NULL: `only`, already resolved, is taken from each part */
  int64_t n, only;
  uint32_t type;

  /* A value outside of int64 is replaced by an equivalent one. */
  __device__ int64_t at(int64_t i, const shape &s) const {
    switch (type) {
    case CUPLUG_INT8:
      return ((const int8_t *)index)[i];
    case CUPLUG_INT16:
      return ((const int16_t *)index)[i];
    case CUPLUG_INT32:
      return ((const int32_t *)index)[i];
    case CUPLUG_UINT8:
      return ((const uint8_t *)index)[i];
    case CUPLUG_UINT16:
      return ((const uint16_t *)index)[i];
    case CUPLUG_UINT32:
      return ((const uint32_t *)index)[i];
    case CUPLUG_UINT64: {
      const uint64_t u = ((const uint64_t *)index)[i];
      return u <= INT64_MAX ? u : s.mode == GATHER_WRAP ? u % (uint64_t)s.m : INT64_MAX;
    }
    default:
      return ((const int64_t *)index)[i];
    }
  }

  /* The row, in its part, of index number i. */
  __device__ int64_t row_of_part(int64_t i, const shape &s, cuplug_fault *fault) const {
    return index ? resolve(at(i, s), s, i, fault) : only;
  }

  /* Not inlined: all of its branches, for each of the rows of a thread, would take ten times the
   * code and compile time. Kernels that call it take this struct and the shape as
   * __grid_constant__. Otherwise each thread would copy both to memory to pass them. */
  __device__ __noinline__ int64_t row(int64_t i, const shape &s, cuplug_fault *fault) const {
    const bool is_small = s.n <= UINT32_MAX; /* its division takes a fraction of the time */
    const int64_t part = is_small ? (uint32_t)i / (uint32_t)n : i / n, place = i - part * n;
    const int64_t found = row_of_part(place, s, fault);
    return found < 0 ? -1 : part * s.m + found;
  }
  template <int N>
  __device__ void find(const int64_t (&at)[N], const shape &s, cuplug_fault *fault,
                       int64_t (&found)[N]) const {
#pragma unroll
    for (int k = 0; k < N; k++) found[k] = at[k] >= 0 ? row(at[k], s, fault) : -1;
  }
};

/* The indices of a call, n in all parts: from an array or, if `array` is NULL, the first scalar,
 * which is rejected if it is bad. */
inline int any_index_of(const cuplug_call *call, const cuplug_tensor *array,
                        const gather_sizes &sizes, any_index *index, shape *s) {
  const int64_t n = array ? cuplug_n_elements(array) : 1;
  *s = {sizes.n_outer * n, sizes.m, 0, (int)call->scalars[array ? 0 : 1].i};
  *index = {array ? array->data : nullptr, n, 0, array ? cuplug_type(array) : 0};
  if (s->n == 0) return CUPLUG_OK;
  if (s->m == 0) return gather_fail_empty(call, sizes.axis);
  if (array) return CUPLUG_OK;
  index->only = resolve(call->scalars[0].i, *s);
  if (index->only >= 0) return CUPLUG_OK;
  return cuplug_failf(call, CUPLUG_ERROR_INDEX, "index: index %lld is out of bounds for size %lld",
                      (long long)call->scalars[0].i, (long long)s->m);
}

/* Returns the result of `use` for the simplest form of the indices. */
template <class F> int with_index(const any_index &index, const shape &s, const F &use) {
  const bool is_plain = index.index && s.n == index.n;
  if (is_plain && index.type == CUPLUG_INT64)
    return use(plain_index<int64_t>{(const int64_t *)index.index});
  if (is_plain && index.type == CUPLUG_INT32)
    return use(plain_index<int32_t>{(const int32_t *)index.index});
  return use(index);
}

inline unsigned n_blocks(int64_t n, int64_t per_block) {
  return (unsigned)((n + per_block - 1) / per_block);
}

/* Threads along a row of n_words. The others of a block process other rows. */
inline dim3 row_threads(const shape &s) {
  unsigned along = 1;
  while (along < s.n_words && along < THREADS) along *= 2;
  return dim3(along, THREADS / along);
}

/* For `n_rows` rows each. If rows are few, several blocks share each of them, to fill a GPU. */
inline dim3 row_blocks(const shape &s, const dim3 &threads, int64_t n_rows) {
  const unsigned blocks = n_blocks(s.n, n_rows), wanted = blocks < FILLED ? FILLED / blocks : 1;
  const int64_t useful = s.n_words ? (s.n_words + threads.x - 1) / threads.x
                                   : 1; /* of no bytes: only the indices are checked */
  return dim3(blocks, wanted < useful ? wanted : (unsigned)useful);
}

} // namespace

#endif
