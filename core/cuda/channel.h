/* SPDX-License-Identifier: Apache-2.0 */
/* Channels for staging: a stream, pinned memory, device memory and fault records. The device has
 * been entered in every call. */
#ifndef CUPLUG_CORE_CUDA_CHANNEL_H
#define CUPLUG_CORE_CUDA_CHANNEL_H

#include "cuda/fault.h"

/* A channel's pinned buffers are small at first. After a copy that exceeds their sum, they become
 * four or sixteen times as large. Beyond MAX_PINNED of one device they remain small. */
#define CUPLUG__N_PINNED 8
#define CUPLUG__PINNED_SMALL ((uint64_t)256 << 10)
#define CUPLUG__PINNED_LARGE ((uint64_t)4 << 20)
#define CUPLUG__MAX_PINNED ((uint64_t)256 << 20)
#define CUPLUG__MAX_FREE_CHANNELS 16 /* of one device; more are made when needed, and destroyed */

/* A staging channel: its own non-blocking stream, pinned buffers, and fault records that no other
 * call uses. Acquired from a bounded free list; its release waits for its stream and drops faults
 * that were not read. */
typedef struct cuplug__channel {
  int32_t device;
  void *stream;
  char *pinned; /* the buffers, consecutive */
  void *events[CUPLUG__N_PINNED];
  uint64_t pinned_bytes; /* of each buffer */
  void *block;           /* device memory that small calls use in turn */
  uint64_t block_bytes;
  cuplug__fault_block *faults; /* a record for each call in progress */
  struct cuplug__channel *next;
} cuplug__channel;

int cuplug__channel_acquire(int32_t device, cuplug__channel **channel, cuplug_error *error);
void cuplug__channel_release(cuplug__channel *channel);
/* Allocates pinned buffers that suit copies of `bytes`, if the channel has none. They may be small
 * for any request, if other channels hold much. */
int cuplug__channel_pin(cuplug__channel *channel, uint64_t bytes, cuplug_error *error);
/* Destroys the free channels of a device. */
void cuplug__channels_trim(int32_t device);
/* Bytes of the pinned buffers of all channels of a device. */
uint64_t cuplug__channels_pinned(int32_t device);

#endif
