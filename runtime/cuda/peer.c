/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that not only its GPU can access: pinned and managed memory, copies between GPUs. */
#include "base/core.h"

#include <runtime/gpus.h>

#define ADDRESS(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

static int allocate(int is_managed, uint64_t bytes, void **pointer) {
  CUdeviceptr address = 0;
  const unsigned flags = CUPLUG__HOST_PORTABLE | CUPLUG__HOST_MAPPED;
  if (!is_managed) return (int)core->driver->cuMemHostAlloc(pointer, bytes, flags);
  int code = core->driver->cuMemAllocManaged(&address, bytes, CUPLUG__MANAGED_GLOBAL);
  *pointer = (void *)(uintptr_t)address;
  return code;
}

int cuplug_allocate_shared(int32_t device, int is_managed, uint64_t bytes, void **pointer,
                           cuplug_error *error) {
  const char *what = is_managed ? "allocating managed memory" : "allocating pinned memory";
  *pointer = NULL;
  ENTER_OR_RETURN(device, error);
  RELAXED mode = core->capture_allow_unsafe();
  int code = allocate(is_managed, bytes ? bytes : 1, pointer);
  if (code != CUPLUG__CU_OUT_OF_MEMORY) return core->cuda_check(error, code, what);
  return core->fail(error, CUPLUG_ERROR_MEMORY, "%s: no memory for %llu bytes", what,
                    (unsigned long long)bytes);
}

int cuplug_free_shared(int32_t device, int is_managed, void *pointer, cuplug_error *error) {
  ENTER_OR_RETURN(device, error);
  RELAXED mode = core->capture_allow_unsafe();
  int code = is_managed ? (int)core->driver->cuMemFree(ADDRESS(pointer))
                        : (int)core->driver->cuMemFreeHost(pointer);
  return core->cuda_check(error, code, "freeing memory");
}

/* Makes later work on a stream of one GPU wait for the current work on a stream of another. */
static int order(int32_t waiting_device, void *waiting, int32_t device, void *stream,
                 cuplug_error *error) {
  CUevent event = NULL;
  ENTERED context = core->cuda_enter(device, error);
  if (context.status) return context.status;
  int code = core->driver->cuEventCreate(&event, CUPLUG__EVENT_NO_TIMING);
  if (!code) code = core->driver->cuEventRecord(event, stream);
  if (!code) {
    ENTERED other = core->cuda_enter(waiting_device, error);
    if (!other.status) code = core->driver->cuStreamWaitEvent(waiting, event, 0);
  }
  if (event) core->driver->cuEventDestroy(event); /* after it has completed */
  return core->cuda_check(error, code, "ordering two GPUs");
}

static int copy(int32_t device, const cuplug__context *other, void *to, const void *from,
                void *stream, uint64_t bytes, cuplug_error *error) {
  ENTERED context = core->cuda_enter(device, error);
  if (context.status) return context.status;
  int code = core->driver->cuMemcpyPeerAsync(ADDRESS(to), other->current, ADDRESS(from),
                                             context.current, bytes, stream);
  return core->cuda_check(error, code, "copying from GPU to GPU");
}

int cuplug_copy_peer(int32_t to_device, void *to, void *waiting, int32_t from_device,
                     const void *from, void *stream, uint64_t bytes, cuplug_error *error) {
  cuplug__clear(error);
  waiting = CUPLUG__STREAM(waiting), stream = CUPLUG__STREAM(stream);
  ENTERED context = core->cuda_enter(to_device, error);
  if (context.status || !bytes) return context.status;
  int status = order(from_device, stream, to_device, waiting, error);
  if (!status) status = copy(from_device, &context, to, from, stream, bytes, error);
  return status ? status : order(to_device, waiting, from_device, stream, error);
}

int cuplug_join_origins(int32_t device, void *stream, const uint64_t *origins, uint32_t n,
                        uint64_t *origin, cuplug_error *error) {
  cuplug_fault *unused; /* the record has no fault of its own */
  *origin = n ? origins[0] : 0;
  while (n && origins[n - 1] == *origin) n--;
  if (!n) return CUPLUG_OK;
  ENTER_OR_RETURN(device, error);
  return core->calls_begin(NULL, device, CUPLUG__STREAM(stream), origins, n, &unused, origin,
                           error);
}
