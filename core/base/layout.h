/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on shapes and strides: sizes, contiguity, the bytes an array spans, overlap. */
#ifndef CUPLUG_CORE_BASE_LAYOUT_H
#define CUPLUG_CORE_BASE_LAYOUT_H

#include <cuplug/host.h>
#include <stddef.h>

/* A tensor's device, ndim and dtype, which are adjacent, to be compared at once. */
#define CUPLUG__TYPE_BYTES (offsetof(cuplug_tensor, shape) - offsetof(cuplug_tensor, device))
_Static_assert(CUPLUG__TYPE_BYTES == sizeof(cuplug_device) + sizeof(int32_t) + sizeof(cuplug_dtype),
               "there are no gaps");

static inline uint64_t cuplug__min(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Bytes of a C-contiguous array; -1 if they exceed 2^63 - 1 or a size is negative. */
static inline int64_t cuplug__n_bytes(const cuplug_tensor *x) {
  int64_t n = cuplug_element_bytes(x), signs = 0;
  int overflow = 0;
  for (int32_t k = 0; k < x->ndim; k++) {
    signs |= x->shape[k];
    overflow |= __builtin_mul_overflow(n, x->shape[k], &n);
  }
  if (signs < 0) return -1;
  if (!overflow) return n;
  for (int32_t k = 0; k < x->ndim; k++)
    if (x->shape[k] == 0) return 0;
  return -1;
}

/* 1 when a size is known only after the run. */
static inline int cuplug__has_unknown(const cuplug_tensor *x) {
  for (int32_t k = 0; k < x->ndim; k++)
    if (x->shape[k] < 0) return 1;
  return 0;
}

/* The strides of C order. Unsigned: past a size of 0 the product may be anything. */
static inline void cuplug__contiguous_strides(int32_t ndim, const int64_t *shape,
                                              int64_t *strides) {
  uint64_t stride = 1;
  for (int32_t k = ndim - 1; k >= 0; k--) {
    strides[k] = (int64_t)stride;
    stride *= shape[k] ? (uint64_t)shape[k] : 1;
  }
}

int cuplug__has_contiguous_strides(const cuplug_tensor *x);

/* 1 when the elements follow each other in C order (empty arrays and sizes of 1 do not matter). */
static inline int cuplug__is_contiguous(const cuplug_tensor *x) {
  return !x->strides || cuplug__has_contiguous_strides(x);
}

/* 1 if its sizes can be read: callers may pass wrong fields. All other functions assume this. */
static inline int cuplug__has_sizes(const cuplug_tensor *x) {
  return (uint32_t)x->ndim <= CUPLUG_MAX_NDIM && (x->shape || !x->ndim);
}

/* 1 if the elements of an array whose bytes can be counted are within 2^63 bytes of the first. */
int cuplug__has_possible_strides(const cuplug_tensor *x);

/* NULL if there is no memory, or the offset exceeds the address space. */
static inline void *cuplug__first_element(const cuplug_tensor *x) {
  uintptr_t first;
  if (!x->data || __builtin_add_overflow((uintptr_t)x->data, x->byte_offset, &first)) return NULL;
  return (void *)first;
}

/* The addresses that an array touches: [low, high), empty for an empty array. */
typedef struct cuplug__span {
  uintptr_t low, high;
} cuplug__span;

/* The numbers of the dimensions, from the outermost to the innermost: by their strides, in C order
 * if these do not decide. */
void cuplug__sort_dims(const cuplug_tensor *x, int32_t *dims);

/* 1 if elements share memory, or interleave as only manual strides do: if a dimension's stride does
 * not exceed the extent of the narrower ones. */
int cuplug__shares_elements(const cuplug_tensor *x);

cuplug__span cuplug__strided_span(const cuplug_tensor *x);

static inline cuplug__span cuplug__span_of(const cuplug_tensor *x) {
  if (x->strides) return cuplug__strided_span(x);
  const uintptr_t low = (uintptr_t)cuplug__first_element(x);
  return (cuplug__span){low, low + (uintptr_t)cuplug__n_bytes(x)};
}

/* 1 when two arrays may share a byte. */
static inline int cuplug__spans_overlap(cuplug__span a, cuplug__span b) {
  return a.low < b.high && b.low < a.high && a.low < a.high && b.low < b.high;
}

static inline int cuplug__same_sizes(const int64_t *a, const int64_t *b, int32_t n) {
  for (int32_t k = 0; k < n; k++)
    if (a[k] != b[k]) return 0;
  return 1;
}

static inline int cuplug__is_cuda(cuplug_device device) {
  return device.type == CUPLUG_CUDA || device.type == CUPLUG_CUDA_MANAGED;
}

static inline int cuplug__is_host(cuplug_device device) {
  return device.type == CUPLUG_CPU || device.type == CUPLUG_CUDA_HOST;
}

/* ---- Overlap --------------------------------------------------------------------------------- */

/* 1 if a byte belongs to elements of both. Exact, unless this takes more than about 10,000 steps,
 * which only manual strides need: then 2. Call it for arrays whose spans overlap. */
int cuplug__overlap(const cuplug_tensor *a, const cuplug_tensor *b);

/* "overlaps" for what cuplug__overlap has returned. */
static inline const char *cuplug__overlap_verb(int overlap) {
  return overlap == 2 ? "may overlap (too many strides to decide it)" : "overlaps";
}

/* 1 when both have the same elements at the same addresses. */
int cuplug__same_memory(const cuplug_tensor *a, const cuplug_tensor *b);

#endif
