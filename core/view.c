/* SPDX-License-Identifier: Apache-2.0 */
#include "view.h"

#include <string.h>

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Takes one more dimension, outside of those before it. */
static void add_dimension(cuplug__view *v, int64_t size, int64_t stride) {
  if (size == 1) return;
  if (!v->ndim && stride == (int64_t)v->block_bytes) {
    v->block_bytes *= (uint64_t)size;
  } else if (v->ndim && stride == v->shape[v->ndim - 1] * v->strides[v->ndim - 1]) {
    v->shape[v->ndim - 1] *= size;
  } else {
    v->shape[v->ndim] = size;
    v->strides[v->ndim++] = stride;
  }
}

void cuplug__view_bytes(cuplug__view *v, const void *data, uint64_t bytes) {
  v->data = data;
  v->block_bytes = bytes;
  v->ndim = 1;
  v->shape[0] = 1;
  v->strides[0] = 0;
}

void cuplug__view_array(cuplug__view *v, const cuplug_tensor *x) {
  const int64_t element = cuplug_element_bytes(x), n = cuplug_n_elements(x);
  if (!x->strides || !n) {
    cuplug__view_bytes(v, x->data, (uint64_t)(n * element));
    return;
  }
  v->data = x->data;
  v->block_bytes = (uint64_t)element;
  v->ndim = 0;
  for (int32_t d = x->ndim - 1; d >= 0; d--) add_dimension(v, x->shape[d], x->strides[d] * element);
  if (!v->ndim) cuplug__view_bytes(v, v->data, v->block_bytes);
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* A place in a view: a block, and its index in each dimension. */
typedef struct place {
  const char *from;
  int64_t index[CUPLUG_MAX_NDIM];
} place;

static void find_block(const cuplug__view *v, uint64_t block, place *at) {
  at->from = v->data;
  for (int32_t d = 0; d < v->ndim; d++) {
    at->index[d] = (int64_t)(block % (uint64_t)v->shape[d]);
    at->from += at->index[d] * v->strides[d];
    block /= (uint64_t)v->shape[d];
  }
}

/* Goes on by n blocks, which are left in the innermost dimension. */
static void advance(const cuplug__view *v, place *at, int64_t n) {
  at->index[0] += n;
  at->from += n * v->strides[0];
  for (int32_t d = 0; d + 1 < v->ndim && at->index[d] == v->shape[d]; d++) {
    at->from += v->strides[d + 1] - v->shape[d] * v->strides[d];
    at->index[d] = 0;
    at->index[d + 1]++;
  }
}

/* A size that the compiler knows is copied by single instructions. */
#define COPY_EACH(size)                                                                       \
  for (int64_t i = 0; i < n; i++) memcpy(to + i * (size), from + i * stride, (size_t)(size)); \
  break

static void copy_blocks(char *to, const char *from, int64_t n, int64_t block, int64_t stride) {
  switch (block) {
  case 1:
    COPY_EACH(1);
  case 2:
    COPY_EACH(2);
  case 4:
    COPY_EACH(4);
  case 8:
    COPY_EACH(8);
  case 16:
    COPY_EACH(16);
  default:
    COPY_EACH(block);
  }
}

void cuplug__view_read(const cuplug__view *v, uint64_t first, uint64_t bytes, char *to) {
  const uint64_t block = v->block_bytes;
  place at;
  if (!bytes) return;
  find_block(v, first / block, &at);
  if (first % block) {
    uint64_t rest = least(block - first % block, bytes);
    memcpy(to, at.from + first % block, rest);
    advance(v, &at, 1);
    to += rest, bytes -= rest;
  }
  while (bytes >= block) {
    uint64_t n = least((uint64_t)(v->shape[0] - at.index[0]), bytes / block);
    copy_blocks(to, at.from, (int64_t)n, (int64_t)block, v->strides[0]);
    advance(v, &at, (int64_t)n);
    to += n * block, bytes -= n * block;
  }
  if (bytes) memcpy(to, at.from, bytes);
}
