/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include "cuda.h"
#include "driver.h"
#include "status.h"

#include <pthread.h>
#include <stdlib.h>

/* Freed blocks up to this share of the device's memory stay with the pool: enough to reuse, and
 * other allocators in the process find the rest. */
#define KEPT_SHARE 8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUmemoryPool _Atomic pools[CUPLUG__MAX_GPUS];
static cuplug__lane *free_lanes[CUPLUG__MAX_GPUS]; /* under the lock, like n_free_lanes */
static int n_free_lanes[CUPLUG__MAX_GPUS];
static uint64_t pinned_bytes[CUPLUG__MAX_GPUS]; /* under the lock; all buffers of all lanes */

/* ---- The device pool ----------------------------------------------------------------------- */

static int create_pool(int32_t device, CUmemoryPool *pool) {
  const cuplug__gpu *gpu = &cuplug__gpus[device];
  cuplug__pool_properties properties = {.allocation_type = CUPLUG__ALLOCATION_PINNED,
                                        .location_type = CUPLUG__LOCATION_DEVICE,
                                        .location_id = gpu->handle};
  uint64_t kept_bytes = gpu->memory_bytes / KEPT_SHARE;
  int code = cuplug__driver.cuMemPoolCreate(pool, &properties);
  if (code == CUPLUG__CU_NOT_SUPPORTED)
    return cuplug__driver.cuDeviceGetDefaultMemPool(pool, gpu->handle);
  if (!code)
    cuplug__driver.cuMemPoolSetAttribute(*pool, CUPLUG__POOL_RELEASE_THRESHOLD, &kept_bytes);
  return code;
}

static int make_pool(int32_t device, CUmemoryPool *pool, cuplug_error *error) {
  int supported = 0;
  CUstreamCaptureMode mode = CUPLUG__CAPTURE_RELAXED;
  int code = cuplug__driver.cuDeviceGetAttribute(&supported, CUPLUG__MEMORY_POOLS_SUPPORTED,
                                                 cuplug__gpus[device].handle);
  if (!code && !supported)
    return cuplug__fail(error, CUPLUG_ERROR_CUDA,
                        "cuda:%d has no stream-ordered memory pools, as some virtual GPUs: use "
                        "another GPU, or the CPU",
                        device);
  cuplug__driver.cuThreadExchangeStreamCaptureMode(&mode);
  if (!code) code = create_pool(device, pool);
  cuplug__driver.cuThreadExchangeStreamCaptureMode(&mode);
  return cuplug__cuda_check(error, code, "making a pool of device memory");
}

static int device_pool(int32_t device, CUmemoryPool *pool, cuplug_error *error) {
  int status = CUPLUG_OK;
  *pool = atomic_load_explicit(&pools[device], memory_order_acquire);
  if (*pool) return CUPLUG_OK;
  pthread_mutex_lock(&lock);
  *pool = atomic_load_explicit(&pools[device], memory_order_relaxed);
  if (!*pool) status = make_pool(device, pool, error);
  if (!status) atomic_store_explicit(&pools[device], *pool, memory_order_release);
  pthread_mutex_unlock(&lock);
  return status;
}

static double gib(uint64_t bytes) { return (double)bytes / (1 << 30); }

static uint64_t pool_attribute(CUmemoryPool pool, CUmemPool_attribute attribute) {
  uint64_t value = 0;
  return cuplug__driver.cuMemPoolGetAttribute(pool, attribute, &value) ? 0 : value;
}

static int fail_out_of_memory(int32_t device, uint64_t bytes, cuplug_error *error) {
  size_t free_bytes = 0, total_bytes = 0;
  CUmemoryPool pool = atomic_load_explicit(&pools[device], memory_order_relaxed);
  cuplug__driver.cuMemGetInfo(&free_bytes, &total_bytes);
  return cuplug__fail(error, CUPLUG_ERROR_MEMORY,
                      "out of device memory: wanted %llu bytes (%.2f GiB) on cuda:%d, free %.2f of "
                      "%.2f GiB, cuplug uses %.2f GiB",
                      (unsigned long long)bytes, gib(bytes), device, gib(free_bytes),
                      gib(total_bytes), gib(pool_attribute(pool, CUPLUG__POOL_USED)));
}

int cuplug__device_allocate(int32_t device, uint64_t bytes, void *stream, void **pointer,
                            cuplug_error *error) {
  CUmemoryPool pool;
  CUdeviceptr address = 0;
  int status = device_pool(device, &pool, error);
  if (status) return status;
  if (bytes > cuplug__gpus[device].memory_bytes) return fail_out_of_memory(device, bytes, error);
  size_t wanted = bytes ? bytes : 1;
  int code = cuplug__driver.cuMemAllocFromPoolAsync(&address, wanted, pool, stream);
  if (code == CUPLUG__CU_OUT_OF_MEMORY) {
    cuplug__driver.cuMemPoolTrimTo(pool, 0);
    code = cuplug__driver.cuMemAllocFromPoolAsync(&address, wanted, pool, stream);
  }
  if (code == CUPLUG__CU_OUT_OF_MEMORY) return fail_out_of_memory(device, bytes, error);
  if (code) return cuplug__cuda_fail(error, code, "allocating device memory");
  *pointer = (void *)(uintptr_t)address;
  return CUPLUG_OK;
}

int cuplug__device_free(void *pointer, void *stream, cuplug_error *error) {
  if (!pointer) return CUPLUG_OK;
  return cuplug__cuda_check(error,
                            cuplug__driver.cuMemFreeAsync((CUdeviceptr)(uintptr_t)pointer, stream),
                            "freeing device memory");
}

int cuplug__memory_query(int32_t device, cuplug_memory_info *info, cuplug_error *error) {
  CUmemoryPool pool;
  size_t free_bytes = 0, total_bytes = 0;
  int status = device_pool(device, &pool, error);
  if (status) return status;
  int code = cuplug__driver.cuMemGetInfo(&free_bytes, &total_bytes);
  if (code) return cuplug__cuda_fail(error, code, "asking for free memory");
  *info = (cuplug_memory_info){.total_bytes = total_bytes,
                               .free_bytes = free_bytes,
                               .reserved_bytes = pool_attribute(pool, CUPLUG__POOL_RESERVED),
                               .used_bytes = pool_attribute(pool, CUPLUG__POOL_USED),
                               .most_used_bytes = pool_attribute(pool, CUPLUG__POOL_MOST_USED)};
  pthread_mutex_lock(&lock);
  info->pinned_bytes = pinned_bytes[device];
  pthread_mutex_unlock(&lock);
  return CUPLUG_OK;
}

/* ---- Lanes --------------------------------------------------------------------------------- */

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

static void unpin(cuplug__lane *lane) {
  if (!lane->pinned) return;
  cuplug__driver.cuMemFreeHost(lane->pinned);
  unreserve_pinned(lane->device, CUPLUG__N_PINNED * lane->pinned_bytes);
  lane->pinned = NULL;
  lane->pinned_bytes = 0;
}

static void destroy_lane(cuplug__lane *lane) {
  unpin(lane);
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
  int status = cuplug__fault_private(&new->fault, error);
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
  cuplug__fault_take(lane->fault, NULL);
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

int cuplug__memory_trim(int32_t device, uint64_t *freed_bytes, cuplug_error *error) {
  cuplug_memory_info before, after;
  int status = cuplug__memory_query(device, &before, error);
  if (status) return status;
  pthread_mutex_lock(&lock);
  cuplug__lane *lane = free_lanes[device], *next;
  free_lanes[device] = NULL;
  n_free_lanes[device] = 0;
  pthread_mutex_unlock(&lock);
  for (; lane; lane = next) {
    next = lane->next;
    destroy_lane(lane);
  }
  int code = cuplug__driver.cuMemPoolTrimTo(atomic_load(&pools[device]), 0);
  if (code) return cuplug__cuda_fail(error, code, "trimming the pool of device memory");
  status = cuplug__memory_query(device, &after, error);
  *freed_bytes = before.reserved_bytes + before.pinned_bytes;
  const uint64_t left = after.reserved_bytes + after.pinned_bytes;
  *freed_bytes = *freed_bytes > left ? *freed_bytes - left : 0;
  return status;
}

static int pin(cuplug__lane *lane, uint64_t wanted, cuplug_error *error) {
  void *pinned;
  int code =
      cuplug__driver.cuMemHostAlloc(&pinned, CUPLUG__N_PINNED * wanted, CUPLUG__HOST_PORTABLE);
  if (code) {
    unreserve_pinned(lane->device, CUPLUG__N_PINNED * wanted);
    return cuplug__cuda_fail(error, code, "allocating pinned host memory");
  }
  lane->pinned = pinned;
  lane->pinned_bytes = wanted;
  return CUPLUG_OK;
}

int cuplug__lane_pin(cuplug__lane *lane, uint64_t bytes, cuplug_error *error) {
  const uint64_t n = CUPLUG__N_PINNED;
  uint64_t wanted = bytes > n * CUPLUG__PINNED_SMALL ? CUPLUG__PINNED_LARGE : CUPLUG__PINNED_SMALL;
  if (lane->pinned_bytes >= wanted) return CUPLUG_OK;
  int reserved = reserve_pinned(lane->device, n * wanted);
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
