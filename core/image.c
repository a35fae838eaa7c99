/* SPDX-License-Identifier: Apache-2.0 */
/* Machine code in the driver: libraries of kernels and variables. */
#include "kernel.h"

#include "cuda.h"
#include "status.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cuplug_image *images; /* under the lock: what was loaded stays reachable */

static int fail_load(cuplug_error *error, int code, const char *name) {
  if (code == CUPLUG__CU_NO_BINARY_FOR_GPU)
    return cuplug__fail(error, CUPLUG_ERROR_CUDA,
                        "%s: it was compiled for the architecture of another GPU", name);
  if (code == CUPLUG__CU_UNSUPPORTED_PTX_VERSION)
    return cuplug__fail(error, CUPLUG_ERROR_CUDA,
                        "%s: NVRTC, which compiled it, is newer than the driver, which supports "
                        "CUDA %d.%d: update the driver, or use an older NVRTC",
                        name, cuplug__driver_version / 1000, cuplug__driver_version % 1000 / 10);
  cuplug__cuda_fail(error, code, "loading compiled code");
  cuplug__prefix(error, "%s: ", name);
  return error ? error->status : CUPLUG_ERROR_CUDA;
}

static cuplug_image *new_image(CUlibrary library, const char *name) {
  cuplug_image *new = calloc(1, sizeof *new);
  char *copy = strdup(name);
  if (!new || !copy) {
    free(new);
    free(copy);
    return NULL;
  }
  new->library = library;
  new->name = copy;
  return new;
}

int cuplug_load_image(const void *image, uint64_t bytes, const char *name, cuplug_image **loaded,
                      cuplug_error *error) {
  CUlibrary library;
  cuplug__clear(error);
  *loaded = NULL;
  int status = cuplug__cuda_start(error);
  if (status) return status;
  if (!cuplug__driver.cuLibraryLoadData)
    return cuplug__fail(
        error, CUPLUG_ERROR_CUDA,
        "%s: code compiled at run time wants an NVIDIA driver of CUDA 12.0 or newer", name);
  char *copy = malloc(bytes + 1); /* PTX ends with a zero */
  if (!copy) return cuplug__no_memory(error, "loading compiled code");
  memcpy(copy, image, bytes);
  copy[bytes] = 0;
  int mode = cuplug__capture_relax();
  int code = cuplug__driver.cuLibraryLoadData(&library, copy, NULL, NULL, 0, NULL, NULL, 0);
  cuplug__capture_exchange(mode);
  free(copy);
  if (code) return fail_load(error, code, name);
  *loaded = new_image(library, name);
  if (!*loaded) return cuplug__no_memory(error, "loading compiled code");
  pthread_mutex_lock(&lock);
  (*loaded)->next = images;
  images = *loaded;
  pthread_mutex_unlock(&lock);
  return CUPLUG_OK;
}

static cuplug_kernel *new_kernel(cuplug_image *image, CUkernel handle, const char *name) {
  cuplug_kernel *new = calloc(1, sizeof *new);
  char *copy = strdup(name);
  if (!new || !copy) {
    free(new);
    free(copy);
    return NULL;
  }
  new->image = image;
  new->handle = handle;
  new->name = copy;
  return new;
}

/* Under the lock. */
static cuplug_kernel *find_known(cuplug_image *image, CUkernel handle) {
  for (cuplug_kernel *at = image->kernels; at; at = at->next)
    if (at->handle == handle) return at;
  return NULL;
}

int cuplug_find_kernel(cuplug_image *image, const char *lowered, const char *name,
                       cuplug_kernel **kernel, cuplug_error *error) {
  CUkernel handle;
  cuplug__clear(error);
  *kernel = NULL;
  int mode = cuplug__capture_relax();
  int code = cuplug__driver.cuLibraryGetKernel(&handle, image->library, lowered);
  cuplug__capture_exchange(mode);
  if (code == CUPLUG__CU_NOT_FOUND)
    return cuplug__fail(error, CUPLUG_ERROR_NOT_FOUND,
                        "%s: there is no kernel %s: one in C++ goes by the name expression that it "
                        "was compiled with",
                        image->name, name);
  if (code) return fail_load(error, code, image->name);
  pthread_mutex_lock(&lock);
  *kernel = find_known(image, handle);
  cuplug_kernel *new = *kernel ? NULL : new_kernel(image, handle, name);
  if (new) {
    new->next = image->kernels;
    image->kernels = *kernel = new;
  }
  pthread_mutex_unlock(&lock);
  return *kernel ? CUPLUG_OK : cuplug__no_memory(error, "loading a kernel");
}

int cuplug_find_global(cuplug_image *image, const char *lowered, const char *name, int32_t device,
                       void **pointer, uint64_t *bytes, cuplug_error *error) {
  void *previous;
  CUdeviceptr address = 0;
  size_t size = 0;
  cuplug__clear(error);
  int status = cuplug__cuda_enter(device, &previous, error);
  if (status) return status;
  int mode = cuplug__capture_relax();
  int code = cuplug__driver.cuLibraryGetGlobal(&address, &size, image->library, lowered);
  cuplug__capture_exchange(mode);
  cuplug__cuda_leave(previous, device);
  if (code == CUPLUG__CU_NOT_FOUND)
    return cuplug__fail(error, CUPLUG_ERROR_NOT_FOUND, "%s: there is no variable %s", image->name,
                        name);
  if (code) return fail_load(error, code, image->name);
  *pointer = (void *)(uintptr_t)address;
  *bytes = size;
  return CUPLUG_OK;
}

int cuplug__kernel_load(cuplug_kernel *kernel, int32_t device, CUfunction *function,
                        cuplug_error *error) {
  *function = atomic_load_explicit(&kernel->functions[device], memory_order_acquire);
  if (*function) return CUPLUG_OK;
  int mode = cuplug__capture_relax();
  int code = cuplug__driver.cuKernelGetFunction(function, kernel->handle);
  cuplug__capture_exchange(mode);
  if (code) return fail_load(error, code, kernel->name);
  atomic_store_explicit(&kernel->functions[device], *function, memory_order_release);
  return CUPLUG_OK;
}

void cuplug__load_kernels(void *any) {
  const cuplug__driver_table *driver = &cuplug__driver;
  CUlibrary library;
  CUfunction function;
  unsigned int n = 0;
  if (!driver->cuKernelGetLibrary || !driver->cuLibraryGetKernelCount ||
      !driver->cuLibraryEnumerateKernels || !driver->cuFuncLoad)
    return;
  if (driver->cuKernelGetLibrary(&library, any) || driver->cuLibraryGetKernelCount(&n, library))
    return;
  CUkernel *kernels = calloc(n ? n : 1, sizeof *kernels);
  if (!kernels) return;
  if (driver->cuLibraryEnumerateKernels(kernels, n, library)) n = 0;
  for (unsigned int k = 0; k < n; k++)
    if (!driver->cuKernelGetFunction(&function, kernels[k])) driver->cuFuncLoad(function);
  free(kernels);
}
