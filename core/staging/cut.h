/* SPDX-License-Identifier: Apache-2.0 */
/* A call cut along its loop dimensions: which calls can be, and what an entry sees of a part. The
 * loop dimensions count as one, whose elements are rows here: row i of an array is what it has for
 * element i of the broadcast loop shape, in C order. */
#ifndef CUPLUG_CORE_STAGING_CUT_H
#define CUPLUG_CORE_STAGING_CUT_H

#include "entry/run.h"
#include "host/view.h"

typedef struct cuplug__cut {
  uint64_t n_rows;
  uint64_t row_bytes; /* of one row of all arrays that are cut */
  uint32_t n_tensors;
  uint32_t cut_mask;                  /* arrays of which each part has its own rows */
  uint32_t loop_mask;                 /* those, and arrays whose rows are all the same */
  uint64_t bytes[CUPLUG_MAX_TENSORS]; /* of a row of each array; without loop dimensions of all */
  cuplug__view views[CUPLUG_MAX_TENSORS];    /* inputs on the host, all rows */
  cuplug_tensor tensors[CUPLUG_MAX_TENSORS]; /* for an entry: (rows, ...), contiguous */
  int64_t shapes[CUPLUG_MAX_TENSORS][CUPLUG_MAX_NDIM + 1];
  int64_t strides[CUPLUG_MAX_TENSORS][CUPLUG_MAX_NDIM + 1];
} cuplug__cut;

/* 1, and fills `cut`, for calls that can be cut: every output and in-out array has the loop
 * dimensions, and wherever they stand they stand first. Outputs are contiguous. */
int cuplug__cut_loop(const cuplug__run *run, cuplug__cut *cut);

/* Bytes that array k has on the device in a part of n rows. */
uint64_t cuplug__part_bytes(const cuplug__cut *cut, uint32_t k, uint64_t n);

/* Bytes that n rows of the arrays that are cut have to travel, in and out. */
uint64_t cuplug__travelling_bytes(const cuplug__run *run, const cuplug__cut *cut, uint64_t n);

/* Makes the run's tensors those of a part of n rows, at these device addresses. */
void cuplug__set_part(cuplug__run *run, cuplug__cut *cut, uint64_t n, char *const *addresses);

/* Positions in a fault of a part become those in the whole array. */
void cuplug__shift_fault(const cuplug__cut *cut, cuplug_fault *fault, uint64_t first_row);

static inline int cuplug__is_inout(const cuplug__run *run, uint32_t k) {
  return k < run->frame->n_inputs && cuplug__is_written(run, k);
}

#endif
