/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of device memory. */
#include "cuda/memory.h"

#include "base/status.h"
#include "cuda/channel.h"
#include "cuda/driver.h"
#include "cuda/gpus.h"
#include "cuda/stream.h"

#include <pthread.h>
#include <stdatomic.h>

/* Freed blocks up to this share of the device's memory remain in the pool: enough for reuse, and
 * the rest is available to other allocators in the process. */
#define KEPT_SHARE 8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUmemoryPool _Atomic pools[CUPLUG__MAX_GPUS];
static cuplug_reclaim *_Atomic reclaim_others;

static int create_pool(int32_t device, CUmemoryPool *pool) {
  CUPLUG__RELAXED mode = cuplug__capture_allow_unsafe();
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
  int code = cuplug__driver.cuDeviceGetAttribute(&supported, CUPLUG__MEMORY_POOLS_SUPPORTED,
                                                 cuplug__gpus[device].handle);
  if (!code && !supported)
    return cuplug__fail(error, CUPLUG_ERROR_CUDA,
                        "cuda:%d has no stream-ordered memory pools, like some virtual GPUs; use "
                        "another GPU, or the CPU",
                        device);
  if (!code) code = create_pool(device, pool);
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

/* ---- Kept memory ----------------------------------------------------------------------------- */

/* Freed memory of the legacy default stream is cached for the next request of the same size there:
 * the driver's free and allocation take the GPU a microsecond. Other streams may be destroyed, and
 * have no cache. It has no lock, because calls on a GPU take none. */

/* Blocks of one device, and the share of its memory that the largest of them may have. */
#define N_SLOTS 16
#define LARGEST_SHARE 1024

/* The thread that sets it to BUSY owns it; no thread waits for a busy one. */
enum { EMPTY, FULL, BUSY };

typedef struct slot {
  _Atomic int state;
  _Atomic uint64_t bytes; /* a hint, until the slot is owned */
  void *pointer;
} slot;

static slot slots[CUPLUG__MAX_GPUS][N_SLOTS];
static _Atomic unsigned next_place[CUPLUG__MAX_GPUS]; /* which block makes room */

static int own(slot *s, int state) {
  return atomic_compare_exchange_strong_explicit(&s->state, &state, BUSY, memory_order_acquire,
                                                 memory_order_relaxed);
}

static void *leave(slot *s, int state) {
  void *pointer = s->pointer;
  atomic_store_explicit(&s->state, state, memory_order_release);
  return pointer;
}

static void fill(slot *s, void *pointer, uint64_t bytes) {
  s->pointer = pointer;
  atomic_store_explicit(&s->bytes, bytes, memory_order_relaxed);
  leave(s, FULL);
}

static int has(slot *s, uint64_t bytes) {
  return atomic_load_explicit(&s->bytes, memory_order_relaxed) == bytes;
}

/* NULL: no cached block has this number of bytes. */
static void *take_kept(int32_t device, uint64_t bytes) {
  for (slot *s = slots[device]; s < slots[device] + N_SLOTS; s++) {
    if (!has(s, bytes) || !own(s, FULL)) continue;
    if (has(s, bytes)) return leave(s, EMPTY);
    leave(s, FULL);
  }
  return NULL;
}

static void give_to_pool(void *pointer) {
  cuplug__driver.cuMemFreeAsync((CUdeviceptr)(uintptr_t)pointer, CUPLUG__STREAM(NULL));
}

/* Returns whether the block is cached, maybe instead of another. */
static int keep(int32_t device, void *pointer, uint64_t bytes) {
  if (bytes > cuplug__gpus[device].memory_bytes / LARGEST_SHARE) return 0;
  for (slot *s = slots[device]; s < slots[device] + N_SLOTS; s++)
    if (own(s, EMPTY)) {
      fill(s, pointer, bytes);
      return 1;
    }
  slot *s = &slots[device][atomic_fetch_add(&next_place[device], 1) % N_SLOTS];
  if (!own(s, FULL)) return 0;
  void *const old = s->pointer;
  fill(s, pointer, bytes);
  give_to_pool(old);
  return 1;
}

/* Returns whether there were any. */
static int free_kept(int32_t device) {
  int n = 0;
  for (slot *s = slots[device]; s < slots[device] + N_SLOTS; s++) {
    if (!own(s, FULL)) continue;
    give_to_pool(leave(s, EMPTY));
    n++;
  }
  return n != 0;
}

static uint64_t kept_bytes(int32_t device) {
  uint64_t bytes = 0;
  for (slot *s = slots[device]; s < slots[device] + N_SLOTS; s++)
    if (atomic_load_explicit(&s->state, memory_order_acquire) == FULL)
      bytes += atomic_load_explicit(&s->bytes, memory_order_relaxed);
  return bytes;
}

/* ---- Allocating ------------------------------------------------------------------------------ */

static double gib(uint64_t bytes) { return (double)bytes / (1 << 30); }

static uint64_t pool_attribute(CUmemoryPool pool, CUmemPool_attribute attribute) {
  uint64_t value = 0;
  return cuplug__driver.cuMemPoolGetAttribute(pool, attribute, &value) ? 0 : value;
}

static uint64_t used_bytes(int32_t device, CUmemoryPool pool) {
  const uint64_t used = pool_attribute(pool, CUPLUG__POOL_USED), kept = kept_bytes(device);
  return used > kept ? used - kept : 0;
}

static int fail_out_of_memory(int32_t device, uint64_t bytes, const char *held,
                              cuplug_error *error) {
  size_t free_bytes = 0, total_bytes = 0;
  CUmemoryPool pool = atomic_load_explicit(&pools[device], memory_order_relaxed);
  cuplug__driver.cuMemGetInfo(&free_bytes, &total_bytes);
  return cuplug__fail(
      error, CUPLUG_ERROR_MEMORY,
      "out of device memory: requested %llu bytes (%.2f GiB) on cuda:%d, free %.2f of "
      "%.2f GiB, cuplug uses %.2f GiB%s",
      (unsigned long long)bytes, gib(bytes), device, gib(free_bytes), gib(total_bytes),
      gib(used_bytes(device, pool)), held);
}

/* Releases unused memory. The driver releases freed memory once the host has seen that the work
 * before the free is done: `stream` is waited for, unless it is captured; then the default stream,
 * which frees cached memory, is also not touched. */
static int give_back(int32_t device, CUmemoryPool pool, void *stream) {
  int is_captured = 0;
  if (!cuplug__capture_query(stream, &is_captured) && !is_captured) {
    if (free_kept(device)) cuplug__driver.cuStreamSynchronize(CUPLUG__STREAM(NULL));
    cuplug__driver.cuStreamSynchronize(stream);
  }
  cuplug__channels_trim(device);
  return cuplug__driver.cuMemPoolTrimTo(pool, 0);
}

/* After cuplug has released its caches, and then after others have. */
static int allocate_again(int32_t device, size_t bytes, CUmemoryPool pool, void *stream,
                          CUdeviceptr *address, char *held) {
  cuplug_reclaim *reclaim = atomic_load(&reclaim_others);
  CUPLUG__RELAXED mode = cuplug__capture_allow_unsafe();
  give_back(device, pool, stream);
  int code = cuplug__driver.cuMemAllocFromPoolAsync(address, bytes, pool, stream);
  if (code == CUPLUG__CU_OUT_OF_MEMORY && reclaim) {
    reclaim(device, held);
    cuplug__cuda_enter(device, NULL); /* if it has left another context current */
    code = cuplug__driver.cuMemAllocFromPoolAsync(address, bytes, pool, stream);
  }
  return code;
}

static int is_default(const void *stream) { return stream == CUPLUG__STREAM(NULL); }

/* In whole words, which kernels exchange that change a part of one. */
static size_t words_of(uint64_t bytes) { return bytes ? (bytes + 3) & ~(size_t)3 : 4; }

int cuplug__device_allocate(int32_t device, uint64_t bytes, void *stream, void **pointer,
                            cuplug_error *error) {
  CUmemoryPool pool;
  CUdeviceptr address = 0;
  char held[CUPLUG_RECLAIM_BYTES] = "";
  int status = device_pool(device, &pool, error);
  if (status) return status;
  if (bytes > cuplug__gpus[device].memory_bytes)
    return fail_out_of_memory(device, bytes, held, error);
  const size_t wanted = words_of(bytes);
  if (is_default(stream) && (*pointer = take_kept(device, wanted))) return CUPLUG_OK;
  int code = cuplug__driver.cuMemAllocFromPoolAsync(&address, wanted, pool, stream);
  if (code == CUPLUG__CU_OUT_OF_MEMORY)
    code = allocate_again(device, wanted, pool, stream, &address, held);
  if (code == CUPLUG__CU_OUT_OF_MEMORY) return fail_out_of_memory(device, bytes, held, error);
  if (code) return cuplug__cuda_fail(error, code, "allocating device memory");
  *pointer = (void *)(uintptr_t)address;
  return CUPLUG_OK;
}

void cuplug_set_reclaim(cuplug_reclaim *reclaim) { atomic_store(&reclaim_others, reclaim); }

int cuplug__device_free(void *pointer, void *stream, cuplug_error *error) {
  if (!pointer) return CUPLUG_OK;
  return cuplug__cuda_check(error,
                            cuplug__driver.cuMemFreeAsync((CUdeviceptr)(uintptr_t)pointer, stream),
                            "freeing device memory");
}

int cuplug__device_release(int32_t device, void *pointer, uint64_t bytes, void *stream,
                           cuplug_error *error) {
  if (pointer && is_default(stream) && keep(device, pointer, words_of(bytes))) return CUPLUG_OK;
  return cuplug__device_free(pointer, stream, error);
}

int cuplug__memory_query(int32_t device, cuplug_memory_info *info, cuplug_error *error) {
  CUmemoryPool pool;
  size_t free_bytes = 0, total_bytes = 0;
  int status = device_pool(device, &pool, error);
  if (status) return status;
  int code = cuplug__driver.cuMemGetInfo(&free_bytes, &total_bytes);
  if (code) return cuplug__cuda_fail(error, code, "querying free memory");
  *info = (cuplug_memory_info){.total_bytes = total_bytes,
                               .free_bytes = free_bytes,
                               .reserved_bytes = pool_attribute(pool, CUPLUG__POOL_RESERVED),
                               .used_bytes = used_bytes(device, pool),
                               .peak_used_bytes = pool_attribute(pool, CUPLUG__POOL_PEAK_USED),
                               .pinned_bytes = cuplug__channels_pinned(device)};
  return CUPLUG_OK;
}

int cuplug_trim(int32_t device, uint64_t *freed_bytes, cuplug_error *error) {
  cuplug_memory_info before, after;
  CUPLUG__ENTER_OR_RETURN(device, error);
  CUPLUG__RELAXED mode = cuplug__capture_allow_unsafe();
  int status = cuplug__memory_query(device, &before, error);
  if (status) return status;
  int code = give_back(device, atomic_load(&pools[device]), CUPLUG__STREAM(NULL));
  if (code) return cuplug__cuda_fail(error, code, "trimming the pool of device memory");
  status = cuplug__memory_query(device, &after, error);
  const uint64_t held = before.reserved_bytes + before.pinned_bytes;
  const uint64_t left = after.reserved_bytes + after.pinned_bytes;
  if (freed_bytes) *freed_bytes = held > left ? held - left : 0;
  return status;
}

/* ---- Pinned memory of the host --------------------------------------------------------------- */

/* The block of memory that contains an address. */
typedef struct block {
  unsigned int type; /* 0: the memory is unknown to the driver */
  int is_managed;
  unsigned long long id;
} block;

static block block_of(const char *address) {
  block b = {0};
  CUpointer_attribute attributes[] = {CUPLUG__POINTER_MEMORY_TYPE, CUPLUG__POINTER_IS_MANAGED,
                                      CUPLUG__POINTER_BUFFER_ID};
  void *values[] = {&b.type, &b.is_managed, &b.id};
  if (cuplug__driver.cuPointerGetAttributes(3, attributes, values, (CUdeviceptr)(uintptr_t)address))
    b.type = 0;
  return b;
}

static int is_host(const block *b) { return b->type == CUPLUG__MEMORY_TYPE_HOST && !b->is_managed; }

/* Both ends: views may exceed the registered memory. */
int cuplug__is_pinned(const void *memory, uint64_t bytes) {
  const block first = block_of(memory);
  if (!bytes || !is_host(&first)) return 0;
  const block last = block_of((const char *)memory + bytes - 1);
  return is_host(&last) && last.id == first.id;
}
