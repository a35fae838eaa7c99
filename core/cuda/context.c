/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/context.h"

#include "cuda/driver.h"
#include "cuda/error.h"
#include "cuda/gpus.h"

#include <internal/gpus.h>

/* Two threads may both retain: the context is the same, and never released. */
static int primary_context(cuplug__gpu *gpu, CUcontext *context, cuplug_error *error) {
  *context = atomic_load_explicit(&gpu->context, memory_order_acquire);
  if (*context) return CUPLUG_OK;
  int code = cuplug__driver.cuDevicePrimaryCtxRetain(context, gpu->handle);
  if (code) return cuplug__cuda_fail(error, code, "making a CUDA context");
  atomic_store_explicit(&gpu->context, *context, memory_order_release);
  return CUPLUG_OK;
}

static int make_current(int32_t device, cuplug__context *context, cuplug_error *error) {
  CUcontext wanted, current = NULL;
  int status = cuplug__cuda_start(error);
  if (status) return status;
  int poison = cuplug__cuda_sticky();
  if (poison) return cuplug__cuda_fail(error, poison, "CUDA failed before");
  status = cuplug__cuda_check_device(device, error);
  if (status) return status;
  status = primary_context(&cuplug__gpus[device], &wanted, error);
  if (status) return status;
  int code = cuplug__driver.cuCtxGetCurrent(&current);
  if (!code && current != wanted) code = cuplug__driver.cuCtxSetCurrent(wanted);
  if (code) return cuplug__cuda_fail(error, code, "making a CUDA context current");
  context->current = wanted;
  context->previous = current;
  return CUPLUG_OK;
}

cuplug__context cuplug__cuda_enter(int32_t device, cuplug_error *error) {
  cuplug__context context = {NULL, NULL, CUPLUG_OK};
  context.status = make_current(device, &context, error);
  return context;
}

void cuplug__cuda_leave(const cuplug__context *context) {
  if (context->previous != context->current) cuplug__driver.cuCtxSetCurrent(context->previous);
}

uint64_t cuplug_used_gpus(void) {
  uint64_t used = 0;
  for (int32_t id = 0; id < cuplug__n_gpus; id++)
    if (atomic_load_explicit(&cuplug__gpus[id].context, memory_order_relaxed))
      used |= (uint64_t)1 << id;
  return used;
}
