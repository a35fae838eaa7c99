/* SPDX-License-Identifier: Apache-2.0 */
/* The arrays of a staged call, each described once, before any transfer: its transferred bytes, its
 * layout on the device, and its form in the entry. They are transferred whole, or in parts along
 * the loop dimensions, which then count as one, whose elements are rows: row i of an array belongs
 * to element i of the broadcast loop shape, in C order. */
#ifndef CUPLUG_CORE_STAGING_STAGED_CALL_H
#define CUPLUG_CORE_STAGING_STAGED_CALL_H

#include "entry/run.h"
#include "host/view.h"
#include "staging/transfer.h"

/* The elements of an array for the rows of a part. */
typedef enum cuplug__overloads {
  CUPLUG__NO_ROWS,      /* all of it, whatever the part */
  CUPLUG__ONE_ROW,      /* one for all, by a stride of 0 */
  CUPLUG__SAME_ROWS,    /* one for each, all equal */
  CUPLUG__DISTINCT_ROWS /* others than other parts: it is cut */
} cuplug__overloads;

typedef struct cuplug__staged_array {
  cuplug__view view; /* on the host: its bytes, in the order that they have on the device */
  uint64_t bytes;    /* of a row; without rows of all */
  uint64_t offset;   /* on the device, of the entry's first element */
  cuplug__overloads rows;
  int is_known; /* 0: omitted, stays on the host, or its size is known after the run */
  int is_sent, is_received;
  int64_t shape[CUPLUG_MAX_NDIM], strides[CUPLUG_MAX_NDIM]; /* for the entry */
} cuplug__staged_array;

typedef struct cuplug__staged_call {
  cuplug__run *run;
  cuplug__progress_tracker tracker;
  int is_share; /* of a call: these rows, and no others */
  uint64_t first_row;
  uint64_t n_rows;    /* 1: everything is transferred at once */
  uint64_t row_bytes; /* of one row of all arrays that are cut */
  uint32_t n_arrays;
  cuplug_tensor tensors[CUPLUG_MAX_ARGUMENTS]; /* for the entry */
  cuplug__staged_array arrays[];
} cuplug__staged_call;

/* Returned by ways to run a staged call that does not fit them: nothing has been run, and no error
 * is set. */
#define CUPLUG__NOT_RUN INT32_MIN

/* Of all arrays of a run, there and back. */
uint64_t cuplug__staged_bytes(const cuplug__run *run);

/* Memory for a run's arrays, to be described and freed; NULL after an error. */
cuplug__staged_call *cuplug__staged_call_new(cuplug__run *run);

/* Describes them for a run of the entry on all at once. */
void cuplug__staged_call_whole(cuplug__staged_call *staged);

/* Describes them for runs of the entry on some rows each, as (rows, ...), contiguous. 0 if the call
 * cannot be split so: every output and in-out array must have the loop dimensions and be
 * contiguous, and loop dimensions must come first everywhere. */
int cuplug__staged_call_rows(cuplug__staged_call *staged);
/* Appends the reason to a description of the call; nothing if it has one row, or none. Returns
 * whether there is a reason. */
int cuplug__staged_call_explain(const cuplug__staged_call *staged, cuplug_error *error);

/* Bytes that a part of n rows has on the device. */
static inline uint64_t cuplug__staged_array_bytes(const cuplug__staged_array *array, uint64_t n) {
  return array->rows >= CUPLUG__SAME_ROWS ? n * array->bytes : array->bytes;
}

/* Where the part that begins with row `first` begins in the view. */
static inline uint64_t cuplug__staged_array_place(const cuplug__staged_array *array,
                                                  uint64_t first) {
  return array->rows == CUPLUG__DISTINCT_ROWS ? first * array->bytes : 0;
}

/* Sets the run's tensors to a part of n rows at these device addresses. */
void cuplug__staged_call_bind_rows(cuplug__staged_call *staged, uint64_t n, void *const *addresses);

/* Positions in a fault of a part become those in the whole array. */
void cuplug__staged_call_offset_fault(const cuplug__staged_call *staged, cuplug_fault *fault,
                                      uint64_t first_row);

#endif
