/* SPDX-License-Identifier: Apache-2.0 */
/* Channels for staging: pinned memory, a stream and events, created when needed and reused. */
#include "cuda/channel.h"

#include "base/status.h"
#include "cuda/driver.h"
#include "cuda/gpus.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cuplug__channel *free_channels[CUPLUG__MAX_GPUS]; /* under the lock, like the next */
static int n_free_channels[CUPLUG__MAX_GPUS];
static _Atomic uint64_t pinned_bytes[CUPLUG__MAX_GPUS]; /* all buffers of all channels */

/* 0 if that exceeds the limit. Small buffers are never rejected: no copy works without them. */
static int reserve_pinned(int32_t device, uint64_t bytes) {
  const int is_small = bytes <= CUPLUG__N_PINNED * CUPLUG__PINNED_SMALL;
  uint64_t seen = pinned_bytes[device];
  do
    if (!is_small && seen + bytes > CUPLUG__MAX_PINNED) return 0;
  while (!atomic_compare_exchange_weak(&pinned_bytes[device], &seen, seen + bytes));
  return 1;
}

uint64_t cuplug__channels_pinned(int32_t device) { return pinned_bytes[device]; }

static void unpin(cuplug__channel *channel) {
  if (!channel->pinned) return;
  cuplug__driver.cuMemFreeHost(channel->pinned);
  pinned_bytes[channel->device] -= CUPLUG__N_PINNED * channel->pinned_bytes;
  channel->pinned = NULL;
  channel->pinned_bytes = 0;
}

static void destroy_channel(cuplug__channel *channel) {
  unpin(channel);
  if (channel->block) {
    cuplug__driver.cuMemFreeAsync((CUdeviceptr)(uintptr_t)channel->block, channel->stream);
    cuplug__driver.cuStreamSynchronize(channel->stream); /* the driver then gives it to others */
  }
  for (int i = 0; i < CUPLUG__N_PINNED; i++)
    if (channel->events[i]) cuplug__driver.cuEventDestroy(channel->events[i]);
  if (channel->stream) cuplug__driver.cuStreamDestroy(channel->stream);
  if (channel->faults) cuplug__driver.cuMemFreeHost(channel->faults);
  free(channel);
}

static int create_channel(int32_t device, cuplug__channel **channel, cuplug_error *error) {
  CUstream stream = NULL;
  CUevent event;
  cuplug__channel *new = calloc(1, sizeof *new);
  if (!new) return cuplug__no_memory(error, "making a staging channel");
  new->device = device;
  int status = cuplug__fault_block_make(&new->faults, error);
  if (status) goto destroy;
  int code = cuplug__driver.cuStreamCreate(&stream, CUPLUG__STREAM_NON_BLOCKING);
  new->stream = stream;
  for (int i = 0; i < CUPLUG__N_PINNED && !code; i++) {
    code = cuplug__driver.cuEventCreate(&event, CUPLUG__EVENT_NO_TIMING);
    if (!code) new->events[i] = event;
  }
  status = cuplug__cuda_check(error, code, "making a staging channel");
  if (status) goto destroy;
  *channel = new;
  return CUPLUG_OK;

destroy:
  destroy_channel(new);
  return status;
}

int cuplug__channel_acquire(int32_t device, cuplug__channel **channel, cuplug_error *error) {
  pthread_mutex_lock(&lock);
  *channel = free_channels[device];
  if (*channel) {
    free_channels[device] = (*channel)->next;
    n_free_channels[device]--;
  }
  pthread_mutex_unlock(&lock);
  return *channel ? CUPLUG_OK : create_channel(device, channel, error);
}

/* A call that failed midway leaves work on the stream; an acquired channel must be idle. */
void cuplug__channel_release(cuplug__channel *channel) {
  int32_t device = channel->device;
  int code = cuplug__driver.cuStreamSynchronize(channel->stream);
  for (int k = 0; k < CUPLUG__N_PINNED; k++) cuplug__fault_clear(&channel->faults->records[k]);
  pthread_mutex_lock(&lock);
  int kept = !code && n_free_channels[device] < CUPLUG__MAX_FREE_CHANNELS;
  if (kept) {
    channel->next = free_channels[device];
    free_channels[device] = channel;
    n_free_channels[device]++;
  }
  pthread_mutex_unlock(&lock);
  if (!kept) destroy_channel(channel);
}

void cuplug__channels_trim(int32_t device) {
  pthread_mutex_lock(&lock);
  cuplug__channel *channel = free_channels[device], *next;
  free_channels[device] = NULL;
  n_free_channels[device] = 0;
  pthread_mutex_unlock(&lock);
  for (; channel; channel = next) {
    next = channel->next;
    destroy_channel(channel);
  }
}

static int pin(cuplug__channel *channel, uint64_t wanted, cuplug_error *error) {
  const uint64_t bytes = CUPLUG__N_PINNED * wanted;
  void *pinned;
  int code = cuplug__driver.cuMemHostAlloc(&pinned, bytes, CUPLUG__HOST_PORTABLE);
  if (code == CUPLUG__CU_OUT_OF_MEMORY) {
    cuplug__channels_trim(channel->device);
    code = cuplug__driver.cuMemHostAlloc(&pinned, bytes, CUPLUG__HOST_PORTABLE);
  }
  if (code) {
    pinned_bytes[channel->device] -= bytes;
    return cuplug__cuda_fail(error, code, "allocating pinned host memory");
  }
  channel->pinned = pinned;
  channel->pinned_bytes = wanted;
  return CUPLUG_OK;
}

int cuplug__channel_pin(cuplug__channel *channel, uint64_t bytes, cuplug_error *error) {
  const uint64_t n = CUPLUG__N_PINNED;
  uint64_t wanted = CUPLUG__PINNED_SMALL;
  while (wanted < CUPLUG__PINNED_LARGE && bytes > n * wanted) wanted *= 4;
  if (channel->pinned_bytes >= wanted) return CUPLUG_OK;
  int reserved = reserve_pinned(channel->device, n * wanted);
  if (!reserved) { /* the memory of idle channels may suffice */
    cuplug__channels_trim(channel->device);
    reserved = reserve_pinned(channel->device, n * wanted);
  }
  if (!reserved && channel->pinned) return CUPLUG_OK;
  if (!reserved) wanted = CUPLUG__PINNED_SMALL, reserve_pinned(channel->device, n * wanted);
  int code = channel->pinned ? (int)cuplug__driver.cuStreamSynchronize(channel->stream) : 0;
  if (code) {
    pinned_bytes[channel->device] -= n * wanted;
    return cuplug__cuda_fail(error, code, "waiting for a staging channel");
  }
  unpin(channel);
  return pin(channel, wanted, error);
}
