/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes for staging: a stream, pinned memory, device memory and a fault record. The device has been
 * entered in every call. */
#ifndef CUPLUG_CORE_CUDA_LANE_H
#define CUPLUG_CORE_CUDA_LANE_H

#include <cuplug/host.h>

/* A lane's pinned buffers are small at first, and four times or sixteen times as large once a copy
 * has come that they do not hold together. Past MAX_PINNED of one device they stay small. */
#define CUPLUG__N_PINNED 8
#define CUPLUG__PINNED_SMALL ((uint64_t)256 << 10)
#define CUPLUG__PINNED_LARGE ((uint64_t)4 << 20)
#define CUPLUG__MAX_PINNED ((uint64_t)256 << 20)
#define CUPLUG__MAX_FREE_LANES 16 /* of one device; more are made when needed, and destroyed */

/* A staging lane: a non-blocking stream of its own, pinned buffers, and a fault record that no
 * other call uses. Taken from a bounded free list and given
 * back, which waits for its stream and drops a fault that was not taken. */
typedef struct cuplug__lane {
  int32_t device;
  void *stream;
  char *pinned; /* the buffers, one behind the other */
  void *events[CUPLUG__N_PINNED];
  uint64_t pinned_bytes; /* of each buffer */
  void *block;           /* device memory that small calls have in turn */
  uint64_t block_bytes;
  cuplug_fault *fault;
  struct cuplug__lane *next;
} cuplug__lane;

int cuplug__lane_take(int32_t device, cuplug__lane **lane, cuplug_error *error);
void cuplug__lane_give(cuplug__lane *lane);
/* Gives the lane pinned buffers that suit copies of `bytes`, if it has not got them. They may be
 * small ones whatever is asked for, where other lanes have much. */
int cuplug__lane_pin(cuplug__lane *lane, uint64_t bytes, cuplug_error *error);
/* Destroys the free lanes of a device. */
void cuplug__lanes_trim(int32_t device);
/* Bytes of the pinned buffers of all lanes of a device. */
uint64_t cuplug__lanes_pinned(int32_t device);

#endif
