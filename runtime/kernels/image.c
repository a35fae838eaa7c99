/* SPDX-License-Identifier: Apache-2.0 */
/* Machine code in the driver: libraries of kernels and variables. */
#include "kernels/image.h"

#include "base/core.h"
#include "kernels/driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cuplug_image *images; /* under the lock: loaded images stay reachable */

int cuplug__fail_load(cuplug_error *error, int code, const cuplug_image *image) {
  const char *name = image->name;
  if (code == CUPLUG__CU_NO_BINARY_FOR_GPU)
    return core->fail(error, CUPLUG_ERROR_CUDA,
                      "%s: it was compiled for the architecture of another GPU", name);
  if (code == CUPLUG__CU_UNSUPPORTED_PTX_VERSION)
    return core->fail(error, CUPLUG_ERROR_CUDA,
                      "%s: the compiler of its PTX is newer than the driver, which supports CUDA "
                      "%d.%d: update the driver, or use an older compiler",
                      name, *core->driver_version / 1000, *core->driver_version % 1000 / 10);
  if (*image->log)
    return core->fail(error, CUPLUG_ERROR_CUDA, "%s: the driver refuses it: %s", name, image->log);
  core->cuda_fail(error, code, "loading compiled code");
  core->prefix(error, "%s: ", name);
  return error ? error->status : CUPLUG_ERROR_CUDA;
}

static int load_data(cuplug_image *image, void *code) {
  CUjit_option options[] = {CUPLUG__JIT_ERROR_LOG, CUPLUG__JIT_ERROR_LOG_BYTES};
  void *values[] = {image->log, (void *)(uintptr_t)sizeof image->log};
  RELAXED mode = core->capture_allow_unsafe();
  return (int)cuplug__kernel_driver()->cuLibraryLoadData(&image->library, code, options, values, 2,
                                                         NULL, NULL, 0);
}

int cuplug_load_image(const void *image, uint64_t bytes, const char *name, cuplug_image **loaded,
                      cuplug_error *error) {
  cuplug__clear(error);
  *loaded = NULL;
  int status = core->cuda_start(error);
  if (status) return status;
  if (!cuplug__kernel_driver()->cuLibraryLoadData)
    return core->fail(error, CUPLUG_ERROR_CUDA,
                      "%s: code compiled at run time wants an NVIDIA driver of CUDA 12.0 or newer",
                      name);
  cuplug_image *made = calloc(1, sizeof *made + strlen(name) + 1);
  char *copy = made ? malloc(bytes + 1) : NULL; /* PTX ends with a zero */
  if (copy) {
    strcpy(made->name, name);
    memcpy(copy, image, bytes);
    copy[bytes] = 0;
    int code = load_data(made, copy);
    status = code ? cuplug__fail_load(error, code, made) : CUPLUG_OK;
  } else {
    status = core->no_memory(error, "loading compiled code");
  }
  free(copy);
  if (status) {
    free(made);
    return status;
  }
  pthread_mutex_lock(&lock);
  made->next = images;
  images = *loaded = made;
  pthread_mutex_unlock(&lock);
  return CUPLUG_OK;
}

static int name_kernels(const CUkernel *kernels, const char **names, uint32_t n) {
  int code = 0;
  for (uint32_t k = 0; k < n && !code; k++)
    code = (int)cuplug__kernel_driver()->cuKernelGetName(&names[k], kernels[k]);
  return code;
}

int cuplug_list_kernels(cuplug_image *image, const char **names, uint32_t *n, cuplug_error *error) {
  const uint32_t room = *n;
  cuplug__clear(error);
  *n = 0;
  if (!cuplug__kernel_driver()->cuKernelGetName || !core->driver->cuLibraryEnumerateKernels)
    return CUPLUG_OK;
  RELAXED mode = core->capture_allow_unsafe();
  int code = (int)core->driver->cuLibraryGetKernelCount(n, image->library);
  const uint32_t n_named = *n < room ? *n : room;
  if (code || !n_named) return core->cuda_check(error, code, "listing kernels");
  CUkernel *kernels = calloc(n_named, sizeof *kernels);
  if (!kernels) return core->no_memory(error, "listing kernels");
  code = (int)core->driver->cuLibraryEnumerateKernels(kernels, n_named, image->library);
  if (!code) code = name_kernels(kernels, names, n_named);
  free(kernels);
  return core->cuda_check(error, code, "listing kernels");
}

int cuplug_find_global(cuplug_image *image, const char *lowered, const char *name, int32_t device,
                       void **pointer, uint64_t *bytes, cuplug_error *error) {
  CUdeviceptr address = 0;
  size_t size = 0;
  ENTER_OR_RETURN(device, error);
  RELAXED mode = core->capture_allow_unsafe();
  int code = cuplug__kernel_driver()->cuLibraryGetGlobal(&address, &size, image->library, lowered);
  if (code == CUPLUG__CU_NOT_FOUND)
    return core->fail(error, CUPLUG_ERROR_NOT_FOUND, "%s: there is no variable %s", image->name,
                      name);
  if (code) return cuplug__fail_load(error, code, image);
  *pointer = (void *)(uintptr_t)address;
  *bytes = size;
  return CUPLUG_OK;
}
