/* SPDX-License-Identifier: Apache-2.0 */
/* The services of the host for a running entry: workspaces, outputs of unknown size, launches, a
 * second stream, threads, the GPU's properties. */
#include "entry/services.h"

#include "base/describe.h"
#include "base/layout.h"
#include "base/status.h"
#include "cuda/driver.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "entry/run.h"
#include "host/thread_pool.h"

#include <internal/functions.h>
#include <inttypes.h>
#include <sched.h>
#include <string.h>

/* *pointer: freed after the call, *kept: not freed. */
static int device_workspace(cuplug__run *run, uint64_t bytes, void **pointer, void **kept) {
  cuplug_frame *f = run->frame;
  int status = CUPLUG_OK;
  if (f->keep_scratch)
    status = f->keep_scratch(f->user, f, run->n_workspaces, bytes, kept, run->error);
  if (status || *kept) return status;
  return cuplug__device_allocate(run->device.id, bytes, run->stream, pointer, run->error);
}

/* The functions that create states also receive these services: their runs have no frame. */
static void *workspace(const cuplug_call *call, uint64_t bytes) {
  cuplug__run *run = call->run;
  void *pointer = NULL, *kept = NULL;
  if (!run->frame) {
    cuplug__fail(run->error, CUPLUG_ERROR_PLUGIN,
                 "workspace: got a request for %" PRIu64
                 " bytes while a state is created or a handle closed, expected one during a call; "
                 "allocate the memory",
                 bytes);
    return NULL;
  }
  if (run->n_workspaces == CUPLUG__MAX_WORKSPACES) {
    cuplug__fail(run->error, CUPLUG_ERROR_MEMORY, "workspace: at most %d blocks in one call",
                 CUPLUG__MAX_WORKSPACES);
    return NULL;
  }
  if (run->device.type == CUPLUG_CUDA) {
    if (device_workspace(run, bytes, &pointer, &kept)) return NULL;
  } else if (!(pointer = cuplug_allocate_host(bytes + !bytes))) {
    cuplug__fail(run->error, CUPLUG_ERROR_MEMORY,
                 "workspace: requested %" PRIu64 " bytes, more than the available host memory",
                 bytes);
    return NULL;
  }
  run->workspace_bytes[run->n_workspaces] = bytes;
  run->workspaces[run->n_workspaces++] = pointer;
  return kept ? kept : pointer;
}

void cuplug__free_workspaces(cuplug__run *run) {
  while (run->n_workspaces) {
    void *pointer = run->workspaces[--run->n_workspaces];
    if (run->device.type == CUPLUG_CUDA)
      cuplug__device_release(run->device.id, pointer, run->workspace_bytes[run->n_workspaces],
                             run->stream, NULL);
    else
      cuplug_free_host(pointer);
  }
}

/* Clears the entry's tensor k, on the run's stream on a GPU. It has no gaps. */
static int zero_output(const cuplug__run *run, uint32_t k) {
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
    status = zero_output(run, f->n_inputs + (uint32_t)__builtin_ctzll(left));
  return status;
}

/* Sets the shape that the entry found, if the signature does not determine it. */
static int set_shape(cuplug__run *run, uint32_t k, const int64_t *shape) {
  cuplug_tensor *t = &run->tensors[k];
  for (int32_t d = 0; d < t->ndim; d++)
    if (shape[d] < 0 || (t->shape[d] >= 0 && t->shape[d] != shape[d]))
      return cuplug__fail(run->error, CUPLUG_ERROR_PLUGIN,
                          "got an output of shape %s from the plugin, expected %s",
                          cuplug__describe_tuple(shape, t->ndim).s,
                          cuplug__describe_output_shape(t->shape, t->ndim).s);
  for (int32_t d = 0; d < t->ndim; d++) t->shape[d] = shape[d];
  if (cuplug__n_bytes(t) < 0)
    return cuplug__fail(run->error, CUPLUG_ERROR_VALUE, "the output's shape %s needs 2^63 bytes",
                        cuplug__describe_tuple(t->shape, t->ndim).s);
  if (t->strides) cuplug__contiguous_strides(t->ndim, shape, t->strides);
  return CUPLUG_OK;
}

int cuplug__allocate_output(const cuplug__run *run, uint32_t k, cuplug_device device) {
  cuplug_frame *f = run->frame;
  cuplug_tensor *x = &f->tensors[k];
  if (!f->allocate)
    return cuplug__fail(run->error, CUPLUG_ERROR_VALUE,
                        "this operator's output has a size known only after the run; set "
                        "frame.allocate");
  x->device = device;
  int status = f->allocate(f->user, f, k, run->error);
  if (status || x->data || !cuplug__n_bytes(x)) return status;
  return cuplug__fail(run->error, CUPLUG_ERROR_VALUE,
                      "output %u: frame.allocate returned CUPLUG_OK without memory",
                      k - f->n_inputs);
}

static int output(const cuplug_call *call, uint32_t k, const int64_t *shape) {
  cuplug__run *run = call->run;
  cuplug_frame *f = run->frame;
  if (!f)
    return cuplug__fail(run->error, CUPLUG_ERROR_PLUGIN,
                        "output: got a request for output %u while a state is created or a handle "
                        "closed, expected one during a call",
                        k);
  if (k < f->n_inputs || k >= f->n_tensors || run->tensors[k].data || run->tensors[k].ndim < 0)
    return cuplug__fail(run->error, CUPLUG_ERROR_PLUGIN,
                        "got a request for memory of tensor %u, expected an output without memory",
                        k);
  int status = set_shape(run, k, shape);
  if (status) return status;
  if (run->tensors !=
      f->tensors) /* staged: device memory now, the caller's when the size is known */
    status = cuplug__device_allocate(run->device.id, (uint64_t)cuplug__n_bytes(&run->tensors[k]),
                                     run->stream, &run->tensors[k].data, run->error);
  else
    status = cuplug__allocate_output(run, k, run->device);
  const int is_zero = f->signature->zero_outputs >> (k - f->n_inputs) & 1;
  return status || !is_zero ? status : zero_output(run, k);
}

static int launch(const cuplug_call *call, void *kernel, const cuplug_grid *grid,
                  void **arguments) {
  if (grid->flags & ~(CUPLUG_COOPERATIVE | CUPLUG_PROGRAMMATIC))
    return cuplug__fail(cuplug__error_of(call), CUPLUG_ERROR_PLUGIN,
                        "launch: got flags 0x%x, expected only bits of 0x%x", grid->flags,
                        CUPLUG_COOPERATIVE | CUPLUG_PROGRAMMATIC);
  int code = cuplug__driver_launch(kernel, grid, call->stream, arguments);
  return code ? cuplug__cuda_report(cuplug__error_of(call), code, "kernel launch") : CUPLUG_OK;
}

/* Bodies of parallel loops may fail at the same time: threads use the record one after another. */
static int fail(const cuplug_call *call, int status, int cuda_code, const char *text) {
  cuplug__run *run = call->run;
  while (atomic_flag_test_and_set_explicit(&run->is_failing, memory_order_acquire)) sched_yield();
  if (!status) status = CUPLUG_ERROR_PLUGIN; /* it failed, whatever status it returned */
  cuplug__fail(run->error, status, "%s", text ? text : "");
  run->error->cuda_code = cuda_code;
  atomic_flag_clear_explicit(&run->is_failing, memory_order_release);
  return status;
}

static int parallel(const cuplug_call *call, int64_t n, int64_t grain, cuplug_body *body,
                    void *context) {
  (void)call;
  return cuplug__team_run(n, grain, body, context);
}

static int threads(const cuplug_call *call) {
  (void)call;
  return cuplug__team_threads();
}

static int interrupted(const cuplug_call *call) {
  cuplug__run *run = call->run;
  const cuplug_frame *f = run->frame;
  if (!f || !f->progress || !f->progress(f->user, 0, 0, run->error)) return CUPLUG_OK;
  if (run->error->status == CUPLUG_OK || !*run->error->message)
    cuplug__fail(run->error, CUPLUG_ERROR_CANCELLED, "the caller cancelled the call");
  return CUPLUG_ERROR_CANCELLED;
}

static int device_attribute(const cuplug_call *call, int32_t attribute, int64_t *value) {
  cuplug_error *error = cuplug__error_of(call);
  int32_t found = 0, is_known = 0;
  *value = 0;
  if (call->device.type != CUPLUG_CUDA)
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                        "device_attribute: got a call on the host, expected one on a GPU");
  int status = cuplug_query_attribute(call->device.id, attribute, &found, &is_known, error);
  if (status) return status;
  if (!is_known)
    return cuplug__fail(error, CUPLUG_ERROR_UNSUPPORTED,
                        "device_attribute: got an attribute unknown to this driver: %d", attribute);
  *value = found;
  return CUPLUG_OK;
}

static void *second_stream(const cuplug_call *call) {
  cuplug__run *run = call->run;
  int status;
  if (call->stream)
    status = cuplug__second_fork(call->device.id, call->stream, &run->second, run->error);
  else
    status = cuplug__fail(run->error, CUPLUG_ERROR_PLUGIN,
                          "second_stream: got a call without a stream, expected one on a GPU");
  return status ? NULL : run->second->stream;
}

static int set_handle(const cuplug_call *call, void *handle) {
  const cuplug__run *run = call->run;
  const cuplug_frame *f = run->frame;
  const char *wanted = !f                    ? "none while a state is created or a handle closed"
                       : !f->signature->made ? "none (the operator makes no handle)"
                       : !handle             ? "one that is not NULL"
                       : (*f->made)->pointer ? "one in a call"
                                             : NULL;
  if (wanted)
    return cuplug__fail(run->error, CUPLUG_ERROR_PLUGIN, "handle: got %s, expected %s",
                        handle ? "a handle" : "NULL", wanted);
  (*f->made)->pointer = handle;
  return CUPLUG_OK;
}

const cuplug_services cuplug__services = {.struct_bytes = sizeof(cuplug_services),
                                          .fail = fail,
                                          .workspace = workspace,
                                          .output = output,
                                          .launch = launch,
                                          .parallel = parallel,
                                          .threads = threads,
                                          .interrupted = interrupted,
                                          .device_attribute = device_attribute,
                                          .second_stream = second_stream,
                                          .set_handle = set_handle};

cuplug_call cuplug__bare_call(cuplug__run *run) {
  return (cuplug_call){.struct_bytes = sizeof(cuplug_call),
                       .abi_version = CUPLUG_ABI_VERSION,
                       .device = run->device,
                       .services = &cuplug__services,
                       .run = run,
                       .max_threads = cuplug__max_threads()};
}
