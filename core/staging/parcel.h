/* SPDX-License-Identifier: Apache-2.0 */
/* The arrays of a staged call, each described once, before anything moves: what of it travels, how
 * it lies on the device, what the entry sees of it. They travel whole, or in parts along the loop
 * dimensions, which count as one then, whose elements are rows: row i of an array is what it has
 * for element i of the broadcast loop shape, in C order. */
#ifndef CUPLUG_CORE_STAGING_PARCEL_H
#define CUPLUG_CORE_STAGING_PARCEL_H

#include "entry/run.h"
#include "host/view.h"

/* What an array has for the rows of a part. */
typedef enum cuplug__rows {
  CUPLUG__NO_ROWS,   /* all of it, whatever the part */
  CUPLUG__ONE_ROW,   /* one for all, by a stride of 0 */
  CUPLUG__SAME_ROWS, /* one for each, all alike */
  CUPLUG__OWN_ROWS   /* others than other parts: it is cut */
} cuplug__rows;

typedef struct cuplug__parcel {
  cuplug__view view; /* on the host: its bytes, in the order that they have on the device */
  uint64_t bytes;    /* of a row; without rows of all */
  uint64_t offset;   /* on the device, of the entry's first element */
  cuplug__rows rows;
  int is_known; /* 0: it was left out, stays on the host, or its size is known after the run */
  int is_sent, is_received;
  int64_t shape[CUPLUG_MAX_NDIM], strides[CUPLUG_MAX_NDIM]; /* for the entry */
} cuplug__parcel;

typedef struct cuplug__shipment {
  cuplug__run *run;
  int is_share; /* of a call: these rows, and no others */
  uint64_t first_row;
  uint64_t n_rows;    /* 1: all travels at once */
  uint64_t row_bytes; /* of one row of all arrays that are cut */
  uint32_t n_parcels;
  cuplug_tensor tensors[CUPLUG_MAX_ARGUMENTS]; /* for the entry */
  cuplug__parcel parcels[];
} cuplug__shipment;

/* Of all arrays of a run, there and back. */
uint64_t cuplug__staged_bytes(const cuplug__run *run);

/* Room for the arrays of a run, to be described and freed; NULL: there is no memory, which the
 * error says. */
cuplug__shipment *cuplug__shipment_new(cuplug__run *run);

/* Describes them for a run of the entry on all at once. */
void cuplug__shipment_whole(cuplug__shipment *shipment);

/* Describes them for runs of the entry on some rows each, which it sees as (rows, ...), contiguous.
 * 0 where the call cannot be cut so: every output and in-out array must have the loop dimensions
 * and be contiguous, and wherever loop dimensions stand they must stand first. */
int cuplug__shipment_rows(cuplug__shipment *shipment);
/* Appends why not, to what is said of the call; nothing where it has one row, or none. Returns
 * whether there is a reason. */
int cuplug__shipment_explain(const cuplug__shipment *shipment, cuplug_error *error);

/* Bytes that a part of n rows has on the device. */
static inline uint64_t cuplug__parcel_bytes(const cuplug__parcel *parcel, uint64_t n) {
  return parcel->rows >= CUPLUG__SAME_ROWS ? n * parcel->bytes : parcel->bytes;
}

/* Where the part that begins with row `first` begins in the view. */
static inline uint64_t cuplug__parcel_place(const cuplug__parcel *parcel, uint64_t first) {
  return parcel->rows == CUPLUG__OWN_ROWS ? first * parcel->bytes : 0;
}

/* Makes the run's tensors those of a part of n rows, at these device addresses. */
void cuplug__shipment_show(cuplug__shipment *shipment, uint64_t n, void *const *addresses);

/* Positions in a fault of a part become those in the whole array. */
void cuplug__shipment_shift(const cuplug__shipment *shipment, cuplug_fault *fault,
                            uint64_t first_row);

#endif
