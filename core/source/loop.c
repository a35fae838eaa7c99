/* SPDX-License-Identifier: Apache-2.0 */
#include "source/loop.h"

#include <string.h>

void cuplug__loop_start(cuplug_loop *loop, uint32_t n_arrays,
                        long long (*strides)[CUPLUG_MAX_LOOP_ARRAYS]) {
  loop->strides = strides;
  loop->ndim = 0;
  loop->n_arrays = n_arrays;
  loop->n = 1;
}

void cuplug__loop_add(cuplug_loop *loop, const cuplug_tensor *tensors, int32_t dim,
                      uint32_t still) {
  long long size = 1;
  for (uint32_t k = 0; k < loop->n_arrays; k++)
    if (!(still >> k & 1)) size = tensors[k].shape[dim];
  loop->n *= size;
  if (size == 1) return;
  for (uint32_t k = 0; k < loop->n_arrays; k++)
    loop->strides[loop->ndim][k] = still >> k & 1 ? 0 : tensors[k].strides[dim];
  loop->sizes[loop->ndim++] = size;
}

static long long magnitude(long long x) { return x < 0 ? -x : x; }

/* Whether dimension b is to be outside of a: the last array that moves along both decides. */
static int is_slower(const cuplug_loop *loop, int a, int b) {
  for (uint32_t k = loop->n_arrays; k-- > 0;) {
    long long x = magnitude(loop->strides[a][k]), y = magnitude(loop->strides[b][k]);
    if (x && y && x != y) return y > x;
  }
  return 0;
}

static void swap(cuplug_loop *loop, int a, int b) {
  long long strides[32], size = loop->sizes[a];
  const size_t bytes = loop->n_arrays * sizeof(*strides);
  memcpy(strides, loop->strides[a], bytes);
  memcpy(loop->strides[a], loop->strides[b], bytes);
  memcpy(loop->strides[b], strides, bytes);
  loop->sizes[a] = loop->sizes[b];
  loop->sizes[b] = size;
}

/* Insertion: the dimensions are nearly always in order. */
static void sort(cuplug_loop *loop) {
  for (int d = 1; d < loop->ndim; d++)
    for (int at = d; at > 0 && is_slower(loop, at - 1, at); at--) swap(loop, at - 1, at);
}

/* Whether all arrays go on in dimension `outer` where `inner`, the next, ends. */
static int can_merge(const cuplug_loop *loop, int outer, int inner) {
  for (uint32_t k = 0; k < loop->n_arrays; k++)
    if (loop->strides[outer][k] != loop->strides[inner][k] * loop->sizes[inner]) return 0;
  return 1;
}

void cuplug__loop_collapse(cuplug_loop *loop, int any_order) {
  int last = 0; /* of the dimensions kept */
  if (any_order) sort(loop);
  for (int d = 1; d < loop->ndim; d++) {
    int merges = can_merge(loop, last, d);
    if (!merges) last++;
    loop->sizes[last] = merges ? loop->sizes[last] * loop->sizes[d] : loop->sizes[d];
    if (last != d)
      memcpy(loop->strides[last], loop->strides[d], loop->n_arrays * sizeof(**loop->strides));
  }
  if (loop->ndim) loop->ndim = last + 1;
}
