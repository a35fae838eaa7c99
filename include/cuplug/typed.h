/* SPDX-License-Identifier: Apache-2.0 */
/* Shorter entries in C++14 and CUDA: arrays by type, one entry for several dtypes, sizes of grids.
 * Nothing here is part of the ABI. Who uses __half and __nv_bfloat16 includes their headers: they
 * take as long to compile as a small plugin. */
#ifndef CUPLUG_TYPED_H
#define CUPLUG_TYPED_H

#include <cuplug/plugin.h>

#ifdef __cplusplus
struct __half;
struct __nv_bfloat16;

/* The dtype of a C++ type as a cuplug_type_id. */
template <typename T> struct cuplug_type_of;
#define CUPLUG__TYPE_OF(T, NAME) \
  template <> struct cuplug_type_of<T> { static constexpr uint32_t value = CUPLUG_##NAME; };
CUPLUG__TYPE_OF(bool, BOOL)
CUPLUG__TYPE_OF(int8_t, INT8)
CUPLUG__TYPE_OF(int16_t, INT16)
CUPLUG__TYPE_OF(int32_t, INT32)
CUPLUG__TYPE_OF(int64_t, INT64)
CUPLUG__TYPE_OF(uint8_t, UINT8)
CUPLUG__TYPE_OF(uint16_t, UINT16)
CUPLUG__TYPE_OF(uint32_t, UINT32)
CUPLUG__TYPE_OF(uint64_t, UINT64)
CUPLUG__TYPE_OF(float, FLOAT32)
CUPLUG__TYPE_OF(double, FLOAT64)
CUPLUG__TYPE_OF(__half, FLOAT16)
CUPLUG__TYPE_OF(__nv_bfloat16, BFLOAT16)
#undef CUPLUG__TYPE_OF

/* Array number k of a call; nullptr for an optional one that was left out. */
template <typename T> inline T *cuplug_data(const cuplug_call *call, uint32_t k) {
  return static_cast<T *>(call->tensors[k].data);
}

/* The size of the last dimension, 1 without dimensions; and how many rows of that size there are.
 */
inline int64_t cuplug_n_columns(const cuplug_tensor *x) {
  return x->ndim > 0 ? x->shape[x->ndim - 1] : 1;
}
inline int64_t cuplug_n_rows(const cuplug_tensor *x) {
  int64_t n = 1;
  for (int32_t i = 0; i + 1 < x->ndim; i++) n *= x->shape[i];
  return n;
}

/* Blocks of a grid for n items, `per_block` to each: at most what a grid may have, so kernels whose
 * n may exceed 2^31 - 1 blocks go on in strides of the grid. */
inline unsigned cuplug_n_blocks(int64_t n, int64_t per_block) {
  const int64_t blocks = n / per_block + (n % per_block != 0);
  return (unsigned)(blocks < 0x7fffffff ? blocks : 0x7fffffff);
}

template <typename... T> struct cuplug__types {};

template <typename F>
inline int cuplug__typed(const cuplug_call *call, const F &, cuplug__types<>) {
  return cuplug_fail(call, CUPLUG_ERROR_TYPE, "no code for this dtype");
}

template <typename F, typename T, typename... Others>
inline int cuplug__typed(const cuplug_call *call, const F &function, cuplug__types<T, Others...>) {
  if (cuplug_type(&call->tensors[0]) == cuplug_type_of<T>::value) return function(T());
  return cuplug__typed(call, function, cuplug__types<Others...>());
}

/* Defines the entry `name`, which calls function<T>(call) with T by the dtype of the call's first
 * array: one of the types that follow. */
#define CUPLUG_TYPED_ENTRY(name, function, ...)                                                   \
  CUPLUG_ENTRY int name(const cuplug_call *call) {                                                \
    return cuplug__typed(                                                                         \
        call, [=](auto t) { return function<decltype(t)>(call); }, cuplug__types<__VA_ARGS__>()); \
  }
#endif

#endif
