/* SPDX-License-Identifier: Apache-2.0 */
/* What an overload needs on a GPU before its first run. */
#include "entry/prepare.h"

#include "base/describe.h"
#include "base/status.h"
#include "cuda/driver.h"
#include "cuda/gpus.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "entry/run.h"
#include "entry/state.h"
#include "registry/load.h"
#include "registry/operator.h"

#include <stdlib.h>

static int check_code(const cuplug_operator *op, int32_t device, cuplug_error *error) {
  const char *architectures = cuplug_operator_architectures(op);
  int32_t capability = 0;
  if (!*architectures || cuplug__cuda_can_run(device, architectures, &capability)) return CUPLUG_OK;
  return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                      "%s: %s has code for compute capability %s, and cuda:%d has %d.%d; rebuild "
                      "the plugin for it",
                      op->name, cuplug_operator_path(op),
                      cuplug__describe_architectures(architectures).s, (int)device,
                      (int)capability / 10, (int)capability % 10);
}

/* Makes the state that the first call would make. */
static int make_state(const cuplug_operator *op, cuplug__overload *overload, int32_t device,
                      cuplug_error *error) {
  cuplug_call call = {.abi_version = CUPLUG_ABI_VERSION, .device = {CUPLUG_CUDA, device}};
  cuplug__held *held;
  if (!overload->states) return CUPLUG_OK;
  int status = cuplug__state_take(overload->states, &call, error, &held);
  if (status) {
    cuplug__prefix(error, "%s: ", op->name);
    return status;
  }
  cuplug__state_give(overload->states, call.device, held);
  return CUPLUG_OK;
}

int cuplug__ready_run(cuplug__run *run) {
  const uint64_t bit = 1ull << (run->device.id & 63);
  if (atomic_load_explicit(&run->overload->prepared, memory_order_acquire) & bit) return CUPLUG_OK;
  int status = check_code(run->frame->op, run->device.id, run->error);
  if (!status) atomic_fetch_or_explicit(&run->overload->prepared, bit, memory_order_release);
  return status;
}

/* Has the driver load the code of all kernels that were compiled together with one, a CUkernel, as
 * far as it can: what fails is told by their launches. */
static void load_kernels(void *any) {
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

static int prepare_entered(cuplug_operator *op, int32_t device, cuplug_error *error) {
  cuplug_memory_info info;
  void *kernel;
  int has_entry = 0, status = cuplug__memory_query(device, &info, error); /* makes the pool */
  for (uint32_t k = 0; k < op->n_overloads && !status; k++) {
    if (!op->overloads[k].cuda) continue;
    has_entry = 1;
    status = check_code(op, device, error);
    if (!status) status = make_state(op, &op->overloads[k], device, error);
  }
  if (!status && has_entry && (kernel = cuplug__any_kernel(op))) load_kernels(kernel);
  if (status || has_entry) return status;
  return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                      "%s: it was to be prepared for cuda:%d but has no CUDA entry", op->name,
                      (int)device);
}

int cuplug_prepare(cuplug_operator *op, int32_t device, cuplug_error *error) {
  cuplug__clear(error);
  int status = cuplug_load_code(op, error);
  if (status) return status;
  CUPLUG__ENTERED context = cuplug__cuda_enter(device, error);
  if (context.status) {
    cuplug__prefix(error, "%s: ", op->name);
    return context.status;
  }
  CUPLUG__RELAXED mode = cuplug__capture_relax();
  return prepare_entered(op, device, error);
}
