/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the host entries of gather and gather_backward: the rows that indices select. */
#ifndef CUPLUG_PLUGINS_GATHER_INDICES_H
#define CUPLUG_PLUGINS_GATHER_INDICES_H

#include <cuplug/format.h>
#include <cuplug/plugin.h>

#include "gather/sizes.h"

#include <stdatomic.h>

/* n indices into an axis of size m. */
typedef struct indices {
  const void *data;
  int64_t n, m, mode;
  uint32_t type;
} indices;

/* For the two dtypes that have their own loops. */
static inline int64_t index_at(const indices *x, int64_t i) {
  return x->type == CUPLUG_INT64 ? ((const int64_t *)x->data)[i] : ((const int32_t *)x->data)[i];
}

/* For any dtype. A value outside of int64 is replaced by an equivalent one. */
static inline int64_t any_index_at(const indices *x, int64_t i) {
  switch (x->type) {
  case CUPLUG_INT8:
    return ((const int8_t *)x->data)[i];
  case CUPLUG_INT16:
    return ((const int16_t *)x->data)[i];
  case CUPLUG_UINT8:
    return ((const uint8_t *)x->data)[i];
  case CUPLUG_UINT16:
    return ((const uint16_t *)x->data)[i];
  case CUPLUG_UINT32:
    return ((const uint32_t *)x->data)[i];
  case CUPLUG_UINT64: {
    const uint64_t u = ((const uint64_t *)x->data)[i];
    return u <= INT64_MAX           ? (int64_t)u
           : x->mode == GATHER_WRAP ? (int64_t)(u % (uint64_t)x->m)
                                    : INT64_MAX;
  }
  default:
    return index_at(x, i);
  }
}

/* Returns the row that an index selects, or -1 for none. */
static inline int64_t resolve(const indices *x, int64_t index) {
  const int64_t m = x->m;
  if (x->mode == GATHER_RAISE) {
    index += index < 0 ? m : 0;
    return (uint64_t)index < (uint64_t)m ? index : -1;
  }
  if (x->mode == GATHER_CLIP) return index < 0 ? 0 : index < m ? index : m - 1;
  index %= m;
  return index < 0 ? index + m : index;
}

/* Resolves [begin, end) to rows[0 ...]. Returns the position of the first bad index, or `end`. */
static inline int64_t resolve_range(const indices *x, int64_t begin, int64_t end, int64_t *rows) {
  const int64_t *plain = x->type == CUPLUG_INT64 && x->mode == GATHER_RAISE ? x->data : NULL;
  for (int64_t i = begin; i < end; i++) {
    int64_t row = plain ? plain[i] : resolve(x, any_index_at(x, i));
    if (plain) row += row < 0 ? x->m : 0;
    if ((uint64_t)row >= (uint64_t)x->m) return i;
    rows[i - begin] = row;
  }
  return end;
}

/* Sets *first to `seen` if that is smaller. Threads share *first. */
static inline void note_first(_Atomic int64_t *first, int64_t seen) {
  int64_t least = atomic_load_explicit(first, memory_order_relaxed);
  while (seen < least && !atomic_compare_exchange_weak_explicit(
                             first, &least, seen, memory_order_relaxed, memory_order_relaxed))
    ;
}

/* The indices of a call: from an array, or the first scalar if `array` is NULL. */
static inline indices indices_of(const cuplug_call *call, const cuplug_tensor *array) {
  if (!array) return (indices){&call->scalars[0].i, 1, 0, call->scalars[1].i, CUPLUG_INT64};
  return (indices){array->data, cuplug_n_elements(array), 0, call->scalars[0].i,
                   cuplug_type(array)};
}

static inline int fail_index(const cuplug_call *call, const indices *x, int64_t position) {
  const long long index = any_index_at(x, position);
  if (x->data == &call->scalars[0].i)
    return cuplug_failf(call, CUPLUG_ERROR_INDEX,
                        "index: index %lld is out of bounds for size %lld", index, (long long)x->m);
  if (x->type == CUPLUG_UINT64) /* it may be outside of int64 */
    return cuplug_failf(call, CUPLUG_ERROR_INDEX,
                        "index: index %llu at position %lld is out of bounds for size %lld",
                        (unsigned long long)((const uint64_t *)x->data)[position],
                        (long long)position, (long long)x->m);
  return cuplug_failf(call, CUPLUG_ERROR_INDEX,
                      "index: index %lld at position %lld is out of bounds for size %lld", index,
                      (long long)position, (long long)x->m);
}

#endif
