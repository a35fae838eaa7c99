/* SPDX-License-Identifier: Apache-2.0 */
#include "entry/zero.h"

#include "base/layout.h"
#include "cuda/driver.h"
#include "cuda/error.h"

#include <string.h>

int cuplug__zero_output(const cuplug__run *run, uint32_t k) {
  const cuplug_tensor *x = &run->tensors[k];
  if (x->ndim < 0 || !x->data) return CUPLUG_OK;
  const cuplug__span span = cuplug__span_of(x);
  const size_t bytes = span.high - span.low;
  if (!bytes) return CUPLUG_OK;
  if (run->device.type == CUPLUG_CUDA)
    return cuplug__cuda_check(
        run->error, cuplug__driver.cuMemsetD8Async((CUdeviceptr)span.low, 0, bytes, run->stream),
        "clearing an output");
  memset((void *)span.low, 0, bytes);
  return CUPLUG_OK;
}

int cuplug__zero_outputs(const cuplug__run *run) {
  const cuplug_frame *f = run->frame;
  int status = CUPLUG_OK;
  for (uint64_t left = f->signature->zero_outputs; left && !status; left &= left - 1)
    status = cuplug__zero_output(run, f->n_inputs + (uint32_t)__builtin_ctzll(left));
  return status;
}
