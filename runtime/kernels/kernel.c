/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: their properties on a GPU, and their launch. */
#include "base/core.h"
#include "kernels/driver.h"
#include "kernels/image.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct cuplug_kernel {
  cuplug_kernel *next; /* next of the image's */
  cuplug_image *image;
  CUkernel handle;
  _Atomic(CUfunction) functions[CUPLUG__MAX_GPUS]; /* NULL: not loaded there yet */
  uint32_t shared_bytes[CUPLUG__MAX_GPUS];         /* opted in to, dynamic */
  char name[];
};

/* Protects the images' lists of kernels, and the kernels' shared_bytes. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static cuplug_kernel *new_kernel(cuplug_image *image, CUkernel handle, const char *name) {
  cuplug_kernel *new = calloc(1, sizeof *new + strlen(name) + 1);
  if (!new) return NULL;
  new->image = image;
  new->handle = handle;
  strcpy(new->name, name);
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
  RELAXED mode = core->capture_allow_unsafe();
  int code = cuplug__kernel_driver()->cuLibraryGetKernel(&handle, image->library, lowered);
  if (code == CUPLUG__CU_NOT_FOUND)
    return core->fail(error, CUPLUG_ERROR_NOT_FOUND,
                      "%s: there is no kernel %s: one in C++ goes by the name expression that it "
                      "was compiled with",
                      image->name, name);
  if (code) return cuplug__fail_load(error, code, image);
  pthread_mutex_lock(&lock);
  *kernel = find_known(image, handle);
  cuplug_kernel *new = *kernel ? NULL : new_kernel(image, handle, name);
  if (new) {
    new->next = image->kernels;
    image->kernels = *kernel = new;
  }
  pthread_mutex_unlock(&lock);
  return *kernel ? CUPLUG_OK : core->no_memory(error, "loading a kernel");
}

/* The function on the current device, where the first call loads its code. */
static int load(cuplug_kernel *kernel, int32_t device, CUfunction *function, cuplug_error *error) {
  *function = atomic_load_explicit(&kernel->functions[device], memory_order_acquire);
  if (*function) return CUPLUG_OK;
  RELAXED mode = core->capture_allow_unsafe();
  int code = core->driver->cuKernelGetFunction(function, kernel->handle);
  if (code) return cuplug__fail_load(error, code, kernel->image);
  atomic_store_explicit(&kernel->functions[device], *function, memory_order_release);
  return CUPLUG_OK;
}

static int query(const cuplug_kernel *kernel, int32_t device, cuplug_kernel_info *info,
                 cuplug_error *error) {
  const CUdevice handle = core->gpus[device].handle;
  const struct {
    int which;
    int32_t *value;
  } of_kernel[] = {{CUPLUG__KERNEL_MAX_THREADS, &info->max_threads},
                   {CUPLUG__KERNEL_N_REGISTERS, &info->n_registers},
                   {CUPLUG__KERNEL_SHARED_BYTES, &info->shared_bytes},
                   {CUPLUG__KERNEL_LOCAL_BYTES, &info->local_bytes},
                   {CUPLUG__KERNEL_CONSTANT_BYTES, &info->constant_bytes}};
  int code = 0;
  for (size_t k = 0; !code && k < sizeof of_kernel / sizeof *of_kernel; k++)
    code = cuplug__kernel_driver()->cuKernelGetAttribute(of_kernel[k].value, of_kernel[k].which,
                                                         kernel->handle, handle);
  if (code) return core->cuda_fail(error, code, "asking for a kernel's attributes");
  code = core->driver->cuDeviceGetAttribute(&info->max_dynamic_shared_bytes,
                                            CUPLUG__MAX_SHARED_OPTIN, handle);
  for (int k = 0; !code && k < 6; k++)
    code = core->driver->cuDeviceGetAttribute(&info->sizes[k], CUPLUG__MAX_BLOCK_DIM_X + k, handle);
  info->max_dynamic_shared_bytes -= info->shared_bytes;
  info->n_processors = core->gpus[device].n_processors;
  info->compute_capability = core->gpus[device].capability;
  return core->cuda_check(error, code, "querying a GPU's limits");
}

/* Loads a kernel's code on the current device. */
static cuplug__context enter(cuplug_kernel *kernel, int32_t device, CUfunction *function,
                             cuplug_error *error) {
  cuplug__clear(error);
  cuplug__context context = core->cuda_enter(device, error);
  if (context.status)
    core->prefix(error, "%s: ", kernel->name);
  else
    context.status = load(kernel, device, function, error);
  return context;
}

static int read_layout(const cuplug_kernel *kernel, uint64_t *sizes, int32_t *n,
                       cuplug_error *error) {
  size_t offset, bytes;
  const int32_t known = *n, most = known < 0 ? CUPLUG_MAX_KERNEL_PARAMETERS : known;
  for (int32_t k = 0; k < most; k++) {
    int code =
        cuplug__kernel_driver()->cuKernelGetParamInfo(kernel->handle, (size_t)k, &offset, &bytes);
    if (code == CUPLUG__CU_INVALID_VALUE) return *n = k, CUPLUG_OK;
    if (code) return core->cuda_fail(error, code, "asking for a kernel's parameters");
    sizes[k] = bytes;
  }
  if (known >= 0) return CUPLUG_OK;
  return core->fail(error, CUPLUG_ERROR_VALUE, "%s: got more parameters, expected at most %d",
                    kernel->name, CUPLUG_MAX_KERNEL_PARAMETERS);
}

int cuplug_kernel_parameters(cuplug_kernel *kernel, int32_t device,
                             uint64_t sizes[CUPLUG_MAX_KERNEL_PARAMETERS], int32_t *n,
                             cuplug_error *error) {
  CUfunction function;
  cuplug__clear(error);
  if (!cuplug__kernel_driver()->cuKernelGetParamInfo) return *n = -1, CUPLUG_OK;
  ENTERED context = enter(kernel, device, &function, error);
  return context.status ? context.status : read_layout(kernel, sizes, n, error);
}

int cuplug_query_kernel(cuplug_kernel *kernel, int32_t device, cuplug_kernel_info *info,
                        cuplug_error *error) {
  CUfunction function;
  ENTERED context = enter(kernel, device, &function, error);
  return context.status ? context.status : query(kernel, device, info, error);
}

int cuplug_kernel_function(cuplug_kernel *kernel, int32_t device, void **function,
                           cuplug_error *error) {
  CUfunction found;
  ENTERED context = enter(kernel, device, &found, error);
  if (!context.status) *function = found;
  return context.status;
}

int cuplug_max_active_blocks(cuplug_kernel *kernel, int32_t device, int32_t n_threads,
                             uint64_t shared_bytes, int32_t *n_blocks, cuplug_error *error) {
  CUfunction function;
  *n_blocks = 0;
  ENTERED context = enter(kernel, device, &function, error);
  if (context.status) return context.status;
  int code = cuplug__kernel_driver()->cuOccupancyMaxActiveBlocksPerMultiprocessor(
      n_blocks, function, n_threads, shared_bytes);
  return core->cuda_check(error, code, "asking for a kernel's occupancy");
}

int cuplug_suggest_block(cuplug_kernel *kernel, int32_t device, uint64_t shared_bytes,
                         int32_t *n_threads, int32_t *n_blocks, cuplug_error *error) {
  CUfunction function;
  *n_threads = *n_blocks = 0;
  ENTERED context = enter(kernel, device, &function, error);
  if (context.status) return context.status;
  int code = cuplug__kernel_driver()->cuOccupancyMaxPotentialBlockSize(
      n_blocks, n_threads, function, NULL, shared_bytes, 0);
  return core->cuda_check(error, code, "asking for a kernel's occupancy");
}

/* The driver has one limit for each kernel and GPU, which only grows. */
int cuplug_opt_in_shared(cuplug_kernel *kernel, int32_t device, uint32_t bytes,
                         cuplug_error *error) {
  int code = 0;
  ENTER_OR_RETURN(device, error);
  pthread_mutex_lock(&lock);
  if (bytes > kernel->shared_bytes[device])
    code = cuplug__kernel_driver()->cuKernelSetAttribute(
        CUPLUG__KERNEL_MAX_DYNAMIC_SHARED, (int)bytes, kernel->handle, core->gpus[device].handle);
  if (!code && bytes > kernel->shared_bytes[device]) kernel->shared_bytes[device] = bytes;
  pthread_mutex_unlock(&lock);
  return core->cuda_check(error, code, "opting in to more shared memory");
}

int cuplug_launch_kernel(cuplug_kernel *kernel, int32_t device, const cuplug_grid *grid,
                         void *stream, void *const *parameters, cuplug_error *error) {
  const uint32_t *blocks = grid->blocks;
  CUfunction function;
  int status = core->calls_check(error);
  if (status) return status;
  ENTERED context = enter(kernel, device, &function, error);
  if (context.status || !blocks[0] || !blocks[1] || !blocks[2]) return context.status;
  core->cuda_note_operator(kernel->name);
  int code = core->driver_launch(function, grid, CUPLUG__STREAM(stream), (void **)parameters);
  if (!code) return CUPLUG_OK;
  status = core->cuda_fail(error, code, "launch");
  core->prefix(error, "%s: ", kernel->name);
  return status;
}
