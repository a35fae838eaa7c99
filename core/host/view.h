/* SPDX-License-Identifier: Apache-2.0 */
/* Host arrays of any layout as their bytes in C order, so that any range of them can be copied to
 * and from contiguous memory without a contiguous copy of the whole. */
#ifndef CUPLUG_CORE_HOST_VIEW_H
#define CUPLUG_CORE_HOST_VIEW_H

#include <cuplug/host.h>

/* Blocks of contiguous bytes at strides, without dimensions of size 1 or that could be merged. */
typedef struct cuplug__view {
  char *data;
  uint64_t block_bytes;
  int32_t ndim;                     /* 0: all is one block */
  int64_t shape[CUPLUG_MAX_NDIM];   /* in blocks, innermost first */
  int64_t strides[CUPLUG_MAX_NDIM]; /* in bytes; 0 if the array is broadcast */
} cuplug__view;

void cuplug__view_array(cuplug__view *view, const cuplug_tensor *x);
void cuplug__view_bytes(cuplug__view *view, const void *data, uint64_t bytes);
/* Repeats the view at a stride in bytes, as one more dimension outside of the others. */
void cuplug__view_add(cuplug__view *view, int64_t size, int64_t stride);

static inline int cuplug__view_is_contiguous(const cuplug__view *view) { return !view->ndim; }

/* The position of byte `first` of C order. */
char *cuplug__view_place(const cuplug__view *view, uint64_t first);

/* 1 if a row's elements are far apart, and next to elements of other rows. */
int cuplug__view_is_transposed(const cuplug__view *view);

/* Ranges that end at multiples of these bytes are copied fastest: of transposed arrays, rows that
 * share lines. 1: any. */
uint64_t cuplug__view_piece(const cuplug__view *view);

/* Copies the bytes [first, first + bytes) of C order to contiguous memory, or writes them from it.
 * Bytes between the elements are not touched. */
void cuplug__view_copy(const cuplug__view *view, int is_write, uint64_t first, uint64_t bytes,
                       void *packed);

#endif
