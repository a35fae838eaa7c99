/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions on devices: enter, do, leave. */
#include "base/status.h"
#include "cuda/driver.h"
#include "cuda/gpus.h"
#include "cuda/memory.h"
#include "cuda/stream.h"

#include <internal/functions.h>

/* In the first version. */
#define DEVICE_INFO_BYTES (offsetof(cuplug_device_info, name) + 128)
#define MEMORY_INFO_BYTES (offsetof(cuplug_memory_info, pinned_bytes) + 8)

int cuplug_n_devices(int32_t *n, int32_t *driver_version, cuplug_error *error) {
  int status = cuplug__cuda_start(error);
  if (n) *n = status ? 0 : cuplug__n_gpus;
  if (driver_version) *driver_version = cuplug__driver_version;
  if (!status) cuplug__clear(error);
  return status;
}

int cuplug_query_device(int32_t id, cuplug_device_info *info, cuplug_error *error) {
  cuplug_device_info found = {.struct_bytes = 0};
  int status = cuplug__cuda_start(error);
  if (!status) status = cuplug__cuda_check_device(id, error);
  if (status) return status;
  const cuplug__gpu *gpu = &cuplug__gpus[id];
  int code = cuplug__driver.cuDeviceGetName(found.name, sizeof found.name, gpu->handle);
  if (code) return cuplug__cuda_fail(error, code, "querying a GPU's name");
  found.name[sizeof found.name - 1] = 0;
  found.compute_capability = gpu->capability;
  found.memory_bytes = gpu->memory_bytes;
  cuplug__clear(error);
  return cuplug__struct_give(info, &found, sizeof found, DEVICE_INFO_BYTES, "cuplug_device_info",
                             error);
}

int cuplug_query_attribute(int32_t device, int32_t attribute, int32_t *value, int32_t *is_known,
                           cuplug_error *error) {
  *value = *is_known = 0;
  int status = cuplug__cuda_start(error);
  if (!status) status = cuplug__cuda_check_device(device, error);
  if (status) return status;
  cuplug__clear(error);
  int code = cuplug__driver.cuDeviceGetAttribute(value, (CUdevice_attribute)attribute,
                                                 cuplug__gpus[device].handle);
  *is_known = !code;
  if (code == CUPLUG__CU_INVALID_VALUE) return CUPLUG_OK;
  return cuplug__cuda_check(error, code, "querying a GPU's attributes");
}

int cuplug_allocate_device(int32_t device, uint64_t bytes, void *stream, void **pointer,
                           cuplug_error *error) {
  *pointer = NULL;
  CUPLUG__ENTER_OR_RETURN(device, error);
  return cuplug__device_allocate(device, bytes, CUPLUG__STREAM(stream), pointer, error);
}

int cuplug_free_device(int32_t device, void *pointer, void *stream, cuplug_error *error) {
  CUPLUG__ENTER_OR_RETURN(device, error);
  return cuplug__device_free(pointer, CUPLUG__STREAM(stream), error);
}

int cuplug_release_device(int32_t device, void *pointer, uint64_t bytes, void *stream) {
  CUPLUG__ENTERED context = cuplug__cuda_enter(device, NULL);
  if (context.status) return context.status;
  return cuplug__device_release(device, pointer, bytes, CUPLUG__STREAM(stream), NULL);
}

int cuplug_query_memory(int32_t device, cuplug_memory_info *info, cuplug_error *error) {
  cuplug_memory_info found;
  CUPLUG__ENTER_OR_RETURN(device, error);
  int status = cuplug__memory_query(device, &found, error);
  return status ? status
                : cuplug__struct_give(info, &found, sizeof found, MEMORY_INFO_BYTES,
                                      "cuplug_memory_info", error);
}

int cuplug_order_streams(int32_t device, void *waiting, void *stream, cuplug_error *error) {
  CUPLUG__ENTER_OR_RETURN(device, error);
  return cuplug__stream_wait(device, CUPLUG__STREAM(waiting), CUPLUG__STREAM(stream), error);
}

/* The GPU of the context that is current. */
static int current_device(int32_t *device) {
  CUdevice handle;
  int code = cuplug__driver.cuCtxGetDevice(&handle);
  for (int32_t id = 0; !code && id < cuplug__n_gpus; id++)
    if (cuplug__gpus[id].handle == handle) *device = id;
  return code;
}

int cuplug_query_stream(void *stream, int32_t *device, int32_t *is_captured, cuplug_error *error) {
  CUcontext previous = NULL, context;
  int captured = 0;
  *device = -1;
  *is_captured = 0;
  int status = cuplug__cuda_start(error);
  if (status) return status;
  cuplug__clear(error);
  if ((uintptr_t)stream <= CUPLUG__LAST_DEFAULT_STREAM) return CUPLUG_OK;
  int code = cuplug__driver.cuStreamGetCtx(stream, &context);
  if (!code) code = cuplug__driver.cuCtxGetCurrent(&previous);
  if (!code) code = cuplug__driver.cuCtxSetCurrent(context);
  if (code) return cuplug__cuda_fail(error, code, "querying a stream's GPU");
  code = current_device(device);
  if (!code) code = cuplug__capture_query(stream, &captured);
  *is_captured = captured;
  cuplug__driver.cuCtxSetCurrent(previous);
  return cuplug__cuda_check(error, code, "querying a stream's GPU");
}

int cuplug_query_pointer(const void *pointer, int32_t *device, cuplug_error *error) {
  int ordinal = 0;
  int status = cuplug__cuda_start(error);
  if (status) return status;
  cuplug__clear(error);
  int code = cuplug__driver.cuPointerGetAttribute(&ordinal, CUPLUG__POINTER_DEVICE,
                                                  (CUdeviceptr)(uintptr_t)pointer);
  *device = code ? -1 : ordinal;
  return cuplug__cuda_check(error, code, "querying the GPU of memory");
}
