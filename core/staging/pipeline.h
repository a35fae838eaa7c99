/* SPDX-License-Identifier: Apache-2.0 */
/* What slices of a call go through: lanes, and slots of pinned and device memory; how many there
 * are, and where each lies. */
#ifndef CUPLUG_CORE_STAGING_PIPELINE_H
#define CUPLUG_CORE_STAGING_PIPELINE_H

#include "base/layout.h"
#include "cuda/lane.h"
#include "host/copies.h"
#include "host/watch.h"
#include "staging/parcel.h"

/* Slices on their way: a slot each. Slices in turn go to the lanes in turn. */
#define CUPLUG__N_LANES 3
#define CUPLUG__SLOTS_OF_LANE 4
#define CUPLUG__N_SLOTS (CUPLUG__N_LANES * CUPLUG__SLOTS_OF_LANE)

/* Where a slice lies, array behind array, in pinned and alike in device memory. */
typedef struct cuplug__slot {
  cuplug__lane *lane;
  void *event; /* the slice is back in pinned memory */
  char *pinned;
  char *device;
  cuplug_fault *fault;
  cuplug__host_copy copies[CUPLUG_MAX_ARGUMENTS];
} cuplug__slot;

typedef struct cuplug__pipeline {
  cuplug__shipment *shipment;
  cuplug__watch *watch;
  cuplug__lane *lanes[CUPLUG__N_LANES];
  void *block; /* device memory of all slots; lane 0's, like what is shared */
  cuplug__slot slots[CUPLUG__N_SLOTS];
  void *shared[CUPLUG_MAX_ARGUMENTS]; /* device memory of what is not cut */
  uint64_t direct_mask;               /* bit k: array k is pinned, and needs no buffers */
  uint64_t buffered_bytes;            /* of a row, of the arrays that are not */
  int n_helpers;
  cuplug__host_pages pages[CUPLUG_MAX_ARGUMENTS]; /* of outputs */
  uint64_t slot_bytes, n_slices;
  uint64_t slice; /* rows of each slice but the last */
  uint64_t offsets[CUPLUG_MAX_ARGUMENTS];
} cuplug__pipeline;

/* 1 for calls that are described in rows, of which there are enough, and some fit a slot. */
int cuplug__pipeline_suits(const cuplug__shipment *shipment);

/* Takes all that a call needs, for `shipment` and `watch`, which are set, of a pipeline that is
 * zero otherwise; *fits becomes 0 where memory is not to be had. To be given in any case. */
int cuplug__pipeline_take(cuplug__pipeline *pipeline, int *fits);
/* Waits for the GPU. */
void cuplug__pipeline_give(cuplug__pipeline *pipeline);

static inline int cuplug__is_direct(const cuplug__pipeline *p, uint32_t k) {
  return p->direct_mask >> k & 1;
}

/* Of slice i. */
static inline uint64_t cuplug__slice_rows(const cuplug__pipeline *p, uint64_t i) {
  return cuplug__least(p->slice, p->shipment->n_rows - i * p->slice);
}

/* Of slice i of array k; 0 for arrays that are not cut. */
static inline uint64_t cuplug__slice_bytes(const cuplug__pipeline *p, uint64_t i, uint32_t k) {
  const cuplug__parcel *x = &p->shipment->parcels[k];
  return x->rows == CUPLUG__OWN_ROWS ? cuplug__parcel_bytes(x, cuplug__slice_rows(p, i)) : 0;
}

#endif
