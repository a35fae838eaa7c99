/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes for staging: pinned memory, a stream and events, made when needed and used again. */
#include "cuda/lane.h"

#include "base/status.h"
#include "cuda/driver.h"
#include "cuda/fault.h"
#include "cuda/gpus.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cuplug__lane *free_lanes[CUPLUG__MAX_GPUS]; /* under the lock, like the next two */
static int n_free_lanes[CUPLUG__MAX_GPUS];
static uint64_t pinned_bytes[CUPLUG__MAX_GPUS]; /* all buffers of all lanes */

/* 0 when that would be too much. Small buffers are never refused: no copy works without. */
static int reserve_pinned(int32_t device, uint64_t bytes) {
  pthread_mutex_lock(&lock);
  int fits = bytes <= CUPLUG__N_PINNED * CUPLUG__PINNED_SMALL ||
             pinned_bytes[device] + bytes <= CUPLUG__MAX_PINNED;
  if (fits) pinned_bytes[device] += bytes;
  pthread_mutex_unlock(&lock);
  return fits;
}

static void unreserve_pinned(int32_t device, uint64_t bytes) {
  pthread_mutex_lock(&lock);
  pinned_bytes[device] -= bytes;
  pthread_mutex_unlock(&lock);
}

uint64_t cuplug__lanes_pinned(int32_t device) {
  pthread_mutex_lock(&lock);
  const uint64_t bytes = pinned_bytes[device];
  pthread_mutex_unlock(&lock);
  return bytes;
}

static void unpin(cuplug__lane *lane) {
  if (!lane->pinned) return;
  cuplug__driver.cuMemFreeHost(lane->pinned);
  unreserve_pinned(lane->device, CUPLUG__N_PINNED * lane->pinned_bytes);
  lane->pinned = NULL;
  lane->pinned_bytes = 0;
}

static void destroy_lane(cuplug__lane *lane) {
  unpin(lane);
  if (lane->block) {
    cuplug__driver.cuMemFreeAsync((CUdeviceptr)(uintptr_t)lane->block, lane->stream);
    cuplug__driver.cuStreamSynchronize(lane->stream); /* the driver gives it to others then */
  }
  for (int i = 0; i < CUPLUG__N_PINNED; i++)
    if (lane->events[i]) cuplug__driver.cuEventDestroy(lane->events[i]);
  if (lane->stream) cuplug__driver.cuStreamDestroy(lane->stream);
  if (lane->fault) cuplug__fault_release(lane->fault);
  free(lane);
}

static int create_lane(int32_t device, cuplug__lane **lane, cuplug_error *error) {
  CUstream stream = NULL;
  CUevent event;
  cuplug__lane *new = calloc(1, sizeof *new);
  if (!new) return cuplug__no_memory(error, "making a staging lane");
  new->device = device;
  int status = cuplug__fault_make(&new->fault, error);
  if (status) goto destroy;
  int code = cuplug__driver.cuStreamCreate(&stream, CUPLUG__STREAM_NON_BLOCKING);
  new->stream = stream;
  for (int i = 0; i < CUPLUG__N_PINNED && !code; i++) {
    code = cuplug__driver.cuEventCreate(&event, CUPLUG__EVENT_NO_TIMING);
    if (!code) new->events[i] = event;
  }
  status = cuplug__cuda_check(error, code, "making a staging lane");
  if (status) goto destroy;
  *lane = new;
  return CUPLUG_OK;

destroy:
  destroy_lane(new);
  return status;
}

int cuplug__lane_take(int32_t device, cuplug__lane **lane, cuplug_error *error) {
  pthread_mutex_lock(&lock);
  *lane = free_lanes[device];
  if (*lane) {
    free_lanes[device] = (*lane)->next;
    n_free_lanes[device]--;
  }
  pthread_mutex_unlock(&lock);
  return *lane ? CUPLUG_OK : create_lane(device, lane, error);
}

/* A call that failed midway leaves work behind; the lane must be idle before the next has it. */
void cuplug__lane_give(cuplug__lane *lane) {
  int32_t device = lane->device;
  int code = cuplug__driver.cuStreamSynchronize(lane->stream);
  cuplug__fault_clear(lane->fault);
  pthread_mutex_lock(&lock);
  int kept = !code && n_free_lanes[device] < CUPLUG__MAX_FREE_LANES;
  if (kept) {
    lane->next = free_lanes[device];
    free_lanes[device] = lane;
    n_free_lanes[device]++;
  }
  pthread_mutex_unlock(&lock);
  if (!kept) destroy_lane(lane);
}

void cuplug__lanes_trim(int32_t device) {
  pthread_mutex_lock(&lock);
  cuplug__lane *lane = free_lanes[device], *next;
  free_lanes[device] = NULL;
  n_free_lanes[device] = 0;
  pthread_mutex_unlock(&lock);
  for (; lane; lane = next) {
    next = lane->next;
    destroy_lane(lane);
  }
}

static int pin(cuplug__lane *lane, uint64_t wanted, cuplug_error *error) {
  const uint64_t bytes = CUPLUG__N_PINNED * wanted;
  void *pinned;
  int code = cuplug__driver.cuMemHostAlloc(&pinned, bytes, CUPLUG__HOST_PORTABLE);
  if (code == CUPLUG__CU_OUT_OF_MEMORY) {
    cuplug__lanes_trim(lane->device);
    code = cuplug__driver.cuMemHostAlloc(&pinned, bytes, CUPLUG__HOST_PORTABLE);
  }
  if (code) {
    unreserve_pinned(lane->device, bytes);
    return cuplug__cuda_fail(error, code, "allocating pinned host memory");
  }
  lane->pinned = pinned;
  lane->pinned_bytes = wanted;
  return CUPLUG_OK;
}

int cuplug__lane_pin(cuplug__lane *lane, uint64_t bytes, cuplug_error *error) {
  const uint64_t n = CUPLUG__N_PINNED;
  uint64_t wanted = CUPLUG__PINNED_SMALL;
  while (wanted < CUPLUG__PINNED_LARGE && bytes > n * wanted) wanted *= 4;
  if (lane->pinned_bytes >= wanted) return CUPLUG_OK;
  int reserved = reserve_pinned(lane->device, n * wanted);
  if (!reserved) { /* what idle lanes have may be enough */
    cuplug__lanes_trim(lane->device);
    reserved = reserve_pinned(lane->device, n * wanted);
  }
  if (!reserved && lane->pinned) return CUPLUG_OK;
  if (!reserved) wanted = CUPLUG__PINNED_SMALL, reserve_pinned(lane->device, n * wanted);
  int code = lane->pinned ? (int)cuplug__driver.cuStreamSynchronize(lane->stream) : 0;
  if (code) {
    unreserve_pinned(lane->device, n * wanted);
    return cuplug__cuda_fail(error, code, "waiting for a staging lane");
  }
  unpin(lane);
  return pin(lane, wanted, error);
}
