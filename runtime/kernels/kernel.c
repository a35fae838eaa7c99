/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: their properties on a GPU, and their launch. */
#include "kernels/kernel.h"

#include "base/core.h"
#include "kernels/driver.h"
#include "kernels/image.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define USUAL_SHARED_BYTES 49152 /* the maximum for a block without opting in */

/* Protects the images' lists of kernels, and the kernels' shared_bytes. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

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

int cuplug__kernel_load(cuplug_kernel *kernel, int32_t device, CUfunction *function,
                        cuplug_error *error) {
  *function = atomic_load_explicit(&kernel->functions[device], memory_order_acquire);
  if (*function) return CUPLUG_OK;
  RELAXED mode = core->capture_allow_unsafe();
  int code = core->driver->cuKernelGetFunction(function, kernel->handle);
  if (code) return cuplug__fail_load(error, code, kernel->image);
  atomic_store_explicit(&kernel->functions[device], *function, memory_order_release);
  return CUPLUG_OK;
}

static int attribute(const cuplug_kernel *kernel, int32_t device, int which, int32_t *value,
                     cuplug_error *error) {
  int code = cuplug__kernel_driver()->cuKernelGetAttribute(value, which, kernel->handle,
                                                           core->gpus[device].handle);
  return core->cuda_check(error, code, "asking for a kernel's attributes");
}

static int limit(int32_t device, int which, int32_t *value, cuplug_error *error) {
  int code = core->driver->cuDeviceGetAttribute(value, which, core->gpus[device].handle);
  return core->cuda_check(error, code, "querying a GPU's limits");
}

static int query(const cuplug_kernel *kernel, int32_t device, cuplug_kernel_info *info,
                 cuplug_error *error) {
  const struct {
    int which;
    int32_t *value;
  } attributes[] = {{CUPLUG__KERNEL_MAX_THREADS, &info->max_threads},
                    {CUPLUG__KERNEL_N_REGISTERS, &info->n_registers},
                    {CUPLUG__KERNEL_SHARED_BYTES, &info->shared_bytes},
                    {CUPLUG__KERNEL_LOCAL_BYTES, &info->local_bytes},
                    {CUPLUG__KERNEL_CONSTANT_BYTES, &info->constant_bytes}};
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
    int status = attribute(kernel, device, attributes[i].which, attributes[i].value, error);
    if (status) return status;
  }
  int status = limit(device, CUPLUG__MAX_SHARED_OPTIN, &info->max_dynamic_shared_bytes, error);
  info->max_dynamic_shared_bytes -= info->shared_bytes;
  return status;
}

/* Loads a kernel's code on the current device. */
static cuplug__context enter(cuplug_kernel *kernel, int32_t device, CUfunction *function,
                             cuplug_error *error) {
  cuplug__clear(error);
  cuplug__context context = core->cuda_enter(device, error);
  if (context.status)
    core->prefix(error, "%s: ", kernel->name);
  else
    context.status = cuplug__kernel_load(kernel, device, function, error);
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

/* Checks x, y and z against the GPU's maximum. */
static int check_sizes(const cuplug_kernel *kernel, int32_t device, const char *what,
                       const uint32_t sizes[3], int first_limit, cuplug_error *error) {
  for (int k = 0; k < 3; k++) {
    int32_t greatest;
    int status = limit(device, first_limit + k, &greatest, error);
    if (status) return status;
    if (sizes[k] <= (uint32_t)greatest) continue;
    return core->fail(error, CUPLUG_ERROR_VALUE,
                      "%s: %s: got %u in dimension %c, expected at most %d", kernel->name, what,
                      sizes[k], "xyz"[k], (int)greatest);
  }
  return CUPLUG_OK;
}

static int check_grid(const cuplug_kernel *kernel, int32_t device, const cuplug_grid *grid,
                      const cuplug_kernel_info *info, cuplug_error *error) {
  const uint32_t *block = grid->threads;
  const uint64_t n_threads = (uint64_t)block[0] * block[1] * block[2];
  int status = check_sizes(kernel, device, "grid", grid->blocks, CUPLUG__MAX_GRID_DIM_X, error);
  if (!status) status = check_sizes(kernel, device, "block", block, CUPLUG__MAX_BLOCK_DIM_X, error);
  if (status) return status;
  if (!n_threads || n_threads > (uint64_t)info->max_threads)
    return core->fail(error, CUPLUG_ERROR_VALUE,
                      "%s: block: got %llu threads, expected 1 to %d with the %d registers that "
                      "each takes",
                      kernel->name, (unsigned long long)n_threads, (int)info->max_threads,
                      (int)info->n_registers);
  if ((int64_t)grid->shared_bytes > info->max_dynamic_shared_bytes)
    return core->fail(error, CUPLUG_ERROR_VALUE,
                      "%s: shared: got %u bytes, expected at most %d on cuda:%d beside the %d "
                      "that the kernel declares",
                      kernel->name, grid->shared_bytes, (int)info->max_dynamic_shared_bytes,
                      (int)device, (int)info->shared_bytes);
  return CUPLUG_OK;
}

/* Clusters and programmatic launches require compute capability 9.0. */
static int check_cluster(const cuplug_kernel *kernel, int32_t device, const cuplug_grid *grid,
                         cuplug_error *error) {
  const int32_t capability = core->gpus[device].capability;
  const char *asked = grid->cluster[0] ? "cluster" : "programmatic";
  if (!grid->cluster[0] && !(grid->flags & CUPLUG_PROGRAMMATIC)) return CUPLUG_OK;
  if (capability < 90)
    return core->fail(error, CUPLUG_ERROR_VALUE,
                      "%s: %s: got a GPU of compute capability %d.%d, expected 9.0 or newer",
                      kernel->name, asked, capability / 10, capability % 10);
  for (int k = 0; k < 3; k++)
    if (grid->cluster[0] && (!grid->cluster[k] || grid->blocks[k] % grid->cluster[k]))
      return core->fail(error, CUPLUG_ERROR_VALUE,
                        "%s: grid: got %u blocks in dimension %c, expected a multiple of the "
                        "cluster's %u",
                        kernel->name, grid->blocks[k], "xyz"[k], grid -> cluster[k]);
  return CUPLUG_OK;
}

/* All blocks of a cooperative launch must run at once. */
static int check_cooperative(const cuplug_kernel *kernel, CUfunction function, int32_t device,
                             const cuplug_grid *grid, cuplug_error *error) {
  const uint32_t *block = grid->threads;
  const uint64_t n_blocks = (uint64_t)grid->blocks[0] * grid->blocks[1] * grid->blocks[2];
  int32_t is_supported = 0, n_processors = 0, n_each = 0;
  if (!(grid->flags & CUPLUG_COOPERATIVE)) return CUPLUG_OK;
  int status = limit(device, CUPLUG__COOPERATIVE_LAUNCH, &is_supported, error);
  if (!status) status = limit(device, CUPLUG__N_MULTIPROCESSORS, &n_processors, error);
  if (status) return status;
  int code = cuplug__kernel_driver()->cuOccupancyMaxActiveBlocksPerMultiprocessor(
      &n_each, function, (int)(block[0] * block[1] * block[2]), grid->shared_bytes);
  if (code) return core->cuda_fail(error, code, "asking for a kernel's occupancy");
  const uint64_t most = is_supported ? (uint64_t)n_each * (uint64_t)n_processors : 0;
  if (n_blocks <= most) return CUPLUG_OK;
  return core->fail(error, CUPLUG_ERROR_VALUE,
                    "%s: grid: got %llu blocks, expected at most %llu: those of a cooperative "
                    "launch run at once",
                    kernel->name, (unsigned long long)n_blocks, (unsigned long long)most);
}

/* The driver has one limit for each kernel and GPU, which only grows. */
static int opt_in(cuplug_kernel *kernel, int32_t device, uint32_t bytes, cuplug_error *error) {
  int code = 0;
  pthread_mutex_lock(&lock);
  if (bytes > kernel->shared_bytes[device])
    code = cuplug__kernel_driver()->cuKernelSetAttribute(
        CUPLUG__KERNEL_MAX_DYNAMIC_SHARED, (int)bytes, kernel->handle, core->gpus[device].handle);
  if (!code && bytes > kernel->shared_bytes[device]) kernel->shared_bytes[device] = bytes;
  pthread_mutex_unlock(&lock);
  return core->cuda_check(error, code, "opting in to more shared memory");
}

int cuplug_check_launch(cuplug_kernel *kernel, int32_t device, const cuplug_grid *grid,
                        cuplug_error *error) {
  CUfunction function;
  cuplug_kernel_info info;
  ENTERED context = enter(kernel, device, &function, error);
  if (context.status) return context.status;
  int status = query(kernel, device, &info, error);
  if (!status) status = check_grid(kernel, device, grid, &info, error);
  if (!status) status = check_cluster(kernel, device, grid, error);
  if (!status && grid->shared_bytes + (uint64_t)info.shared_bytes > USUAL_SHARED_BYTES)
    status = opt_in(kernel, device, grid->shared_bytes, error);
  return status ? status : check_cooperative(kernel, function, device, grid, error);
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
