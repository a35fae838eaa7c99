/* SPDX-License-Identifier: Apache-2.0 */
/* Host arrays through the GPU. */
#include "call.h"
#include "cuda.h"
#include "layout.h"
#include "slices.h"
#include "status.h"
#include "transfer.h"

#include <string.h>

/* An array's bytes on the host. Strided arrays travel with the gaps between their elements. */
static void host_bytes(const cuplug_tensor *x, const char **low, uint64_t *bytes) {
  const char *high;
  cuplug__span(x, low, &high);
  *bytes = (uint64_t)(high - *low);
}

static int is_inout(const cuplug__run *run, uint32_t k) {
  return run->overload->signature.parameters[run->frame->parameter[k]].kind ==
         CUPLUG_PARAMETER_INOUT;
}

static int has_unknown(const cuplug_tensor *x) {
  for (int32_t d = 0; d < x->ndim; d++)
    if (x->shape[d] < 0) return 1;
  return 0;
}

/* Device memory for tensor k, with the contents of an input, or of an output whose gaps must come
 * back as they were; `block` owns it. */
static int copy_in(cuplug__run *run, cuplug__lane *lane, uint32_t k, void **block) {
  const cuplug_tensor *host = &run->frame->tensors[k];
  const char *low;
  uint64_t bytes;
  if (host->ndim < 0 || has_unknown(host)) return CUPLUG_OK;
  host_bytes(host, &low, &bytes);
  int status = cuplug__device_allocate(run->device.id, bytes, run->stream, block, run->error);
  if (status) return status;
  run->tensors[k].data = (char *)*block + ((const char *)host->data - low);
  if (k >= run->frame->n_inputs && cuplug__is_contiguous(host)) return CUPLUG_OK;
  return cuplug__to_device(lane, *block, low, bytes, run->error);
}

/* Memory on the host for an output whose size the run has found. */
static int give_memory(cuplug__run *run, uint32_t k, void **block) {
  cuplug_frame *f = run->frame;
  if (*block || !run->tensors[k].data) return CUPLUG_OK;
  *block = run->tensors[k].data;
  f->tensors[k].device = (cuplug_device){CUPLUG_CPU, 0};
  if (f->allocate) return f->allocate(f->user, f, k, run->error);
  return cuplug__fail(run->error, CUPLUG_ERROR_VALUE,
                      "this output's size is known only after the run; set frame.allocate");
}

static int copy_out(cuplug__run *run, cuplug__lane *lane, uint32_t k, void **block) {
  int is_output = k >= run->frame->n_inputs;
  const char *low;
  uint64_t bytes;
  if (!is_output && !is_inout(run, k)) return CUPLUG_OK;
  int status = is_output ? give_memory(run, k, block) : CUPLUG_OK;
  if (status || !*block) return status;
  host_bytes(&run->frame->tensors[k], &low, &bytes);
  return cuplug__to_host(lane, (void *)low, *block, bytes, run->error);
}

static int run_on_lane(cuplug__run *run, cuplug__lane *lane, void **blocks) {
  const uint32_t n = run->frame->n_tensors;
  int status;
  for (uint32_t k = 0; k < n; k++)
    if ((status = copy_in(run, lane, k, &blocks[k]))) return cuplug__named(run, status);
  if ((status = cuplug__call_entry(run))) return status;
  if ((status = cuplug__stream_synchronize(run->stream, run->error)))
    return cuplug__named(run, status);
  if ((status = cuplug__fault_take(run->fault, run->error))) return status;
  for (uint32_t k = 0; k < n; k++)
    if ((status = copy_out(run, lane, k, &blocks[k]))) return cuplug__named(run, status);
  return CUPLUG_OK;
}

int cuplug__run_staged(cuplug__run *run) {
  cuplug_frame *f = run->frame;
  cuplug_tensor tensors[CUPLUG_MAX_TENSORS];
  void *blocks[CUPLUG_MAX_TENSORS] = {NULL};
  const char *names[CUPLUG_MAX_TENSORS];
  cuplug__lane *lane;
  if (cuplug__can_slice(run)) return cuplug__run_slices(run);
  int status = cuplug__lane_take(run->device.id, &lane, run->error);
  if (status) return cuplug__named(run, status);
  run->stream = lane->stream;
  run->fault = lane->fault;
  run->tensors = tensors;
  memcpy(tensors, f->tensors, f->n_tensors * sizeof(*tensors));
  for (uint32_t k = 0; k < f->n_tensors; k++) {
    tensors[k].device = run->device;
    tensors[k].data = NULL;
    names[k] = run->overload->signature.parameters[f->parameter[k]].name;
  }
  cuplug__fault_rename(run->fault, f->op->name, names, f->n_tensors);
  status = run_on_lane(run, lane, blocks);
  for (uint32_t k = 0; k < f->n_tensors; k++) {
    void *block = blocks[k] ? blocks[k] : tensors[k].data;
    if (block) cuplug__device_free(block, run->stream, NULL);
  }
  cuplug__lane_give(lane);
  f->staged = 1;
  return status;
}
