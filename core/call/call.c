/* SPDX-License-Identifier: Apache-2.0 */
/* The second half of a call: its device, the entry, the result. */
#include "call/call.h"

#include "arguments/bind.h"
#include "arguments/scalars.h"
#include "arguments/shapes.h"
#include "base/describe.h"
#include "base/layout.h"
#include "base/status.h"
#include "cuda/calls.h"
#include "cuda/driver.h"
#include "cuda/gpus.h"
#include "cuda/stream.h"
#include "entry/blocks.h"
#include "entry/entry.h"
#include "entry/handle.h"
#include "entry/prepare.h"
#include "entry/run.h"
#include "registry/plugin.h"
#include "staging/all_gpus.h"
#include "staging/stage.h"

#include <string.h>

static int run_prepared(cuplug__run *run) {
  cuplug_frame *f = run->frame;
  cuplug__cuda_note_operator(f->op->name);
  if (f->home.type == CUPLUG_CPU) {
    cuplug__broadcast_inputs(f);
    return cuplug__run_staged(run, 0, 0);
  }
  run->stream = CUPLUG__STREAM(f->stream);
  int status = cuplug__calls_begin(run->overload, run->device.id, run->stream, f->origins,
                                   f->n_origins, &run->fault, &f->origin, run->error);
  if (status) return cuplug__prefix_operator_name(run, status);
  status = cuplug__call_entry(run);
  if (status || f->home.type || f->stream) return status;
  /* Without arrays and a stream, later work cannot be ordered after the call: wait. */
  status = cuplug__stream_synchronize(run->stream, run->error);
  return status ? status : cuplug__calls_check(run->error);
}

static int run_entered(cuplug__run *run) {
  uint64_t prepared = atomic_load_explicit(&run->overload->prepared, memory_order_acquire);
  int is_prepared = prepared >> (run->device.id & 63) & 1;
  if (is_prepared && run->frame->home.type == CUPLUG_CUDA) return run_prepared(run);
  /* The first run, which pins memory and loads code, and runs that wait. */
  CUPLUG__RELAXED mode = cuplug__capture_allow_unsafe();
  int status = cuplug__ready_run(run);
  return status ? status : run_prepared(run);
}

/* Lists that are apart are not offloaded. */
static int refuse_lists(const cuplug__run *run) {
  return cuplug__fail(run->error, CUPLUG_ERROR_VALUE,
                      "%s: got lists of arrays on the host, expected arrays on %s (the device of "
                      "the call); copy them to the GPU first",
                      run->frame->op->name, cuplug__describe_device(run->device).s);
}

static int run_on_all(cuplug__run *run) {
  cuplug__cuda_note_operator(run->frame->op->name);
  cuplug__broadcast_inputs(run->frame);
  int status = cuplug__run_on_all(run);
  run->frame->device = run->device;
  return status;
}

static __attribute__((noinline)) int run_cuda(cuplug__run *run) {
  cuplug_frame *f = run->frame;
  int status;
  if (!run->overload->cuda)
    return cuplug__fail(run->error, CUPLUG_ERROR_VALUE,
                        "%s: device: got %s, expected the host (no CUDA entry in %s)", f->op->name,
                        cuplug__describe_device(run->device).s, cuplug_operator_path(f->op));
  if (f->home.type == CUPLUG_CPU && f->apart) return refuse_lists(run);
  if ((status = cuplug__calls_check(run->error))) return status;
  if (run->device.id == CUPLUG_ALL_GPUS) return run_on_all(run);
  CUPLUG__ENTERED context = cuplug__cuda_enter(run->device.id, run->error);
  return context.status ? cuplug__prefix_operator_name(run, context.status) : run_entered(run);
}

static int run_host(cuplug__run *run) {
  if (run->overload->host)
    return run->frame->copy_mask ? cuplug__call_for_blocks(run) : cuplug__call_entry(run);
  const cuplug_operator *op = run->frame->op;
  return cuplug__fail(run->error, CUPLUG_ERROR_VALUE,
                      "%s: device: got the host, expected a GPU (no host entry in %s)", op->name,
                      cuplug_operator_path(op));
}

/* The rule for arrays on the host, and for calls without arrays. */
cuplug_device cuplug__default_place(const cuplug_frame *f) {
  const cuplug__callable *o = &f->op->overloads[f->row];
  const int has_host = *o->row->host_entry != 0;
  const int is_apart = has_host && f->apart && f->home.type == CUPLUG_CPU;
  const int on_host = o->prefers_host || is_apart || (has_host && cuplug__cuda_start(NULL));
  return (cuplug_device){on_host ? CUPLUG_CPU : CUPLUG_CUDA, 0};
}

uint64_t cuplug_required_copies(const cuplug_frame *f) {
  if (!f->copy_mask || f->home.type != CUPLUG_CPU) return f->copy_mask;
  const uint32_t strided = f->op->overloads[f->row].row->flags & CUPLUG_OVERLOAD_TAKES_STRIDES;
  if (cuplug__where(f).type == CUPLUG_CUDA)
    return strided ? f->copy_mask
                   : f->unaligned_stride_mask | (f->copy_mask & f->signature->host_arrays);
  return cuplug__can_run_in_blocks(f) ? 0 : f->copy_mask;
}

int cuplug_check_device(const cuplug_frame *f, cuplug_error *error) {
  if (f->home.type || f->device.type != CUPLUG_CUDA || f->device.id != CUPLUG_ALL_GPUS)
    return CUPLUG_OK;
  return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                      "%s: device: got cuda:*, expected one GPU (the call has no array to split)",
                      f->op->name);
}

/* Checks that copies, outputs and the device are complete and consistent. Apart from the
 * call, whose stack need not have room for its texts then. */
static __attribute__((noinline)) int check_frame(const cuplug_frame *f, cuplug_error *error) {
  const cuplug_parameter *parameters = f->signature->parameters;
  const uint64_t copy_mask = cuplug_required_copies(f);
  if (copy_mask & CUPLUG_COPY_ITEMS)
    return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                        "%s: got a list with strided or misaligned arrays, expected C-contiguous "
                        "copies of them",
                        f->op->name);
  for (uint32_t k = 0; copy_mask && k < f->n_inputs; k++)
    if (copy_mask >> k & 1)
      return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                          "%s: %s: got a strided, misaligned or broadcast array, expected a "
                          "C-contiguous copy of it",
                          f->op->name, parameters[f->parameter[k]].name);
  for (uint32_t k = f->n_inputs; k < f->n_tensors; k++)
    if (!f->tensors[k].data && f->tensors[k].ndim >= 0 && cuplug__n_bytes(&f->tensors[k]) > 0)
      return cuplug__fail(error, CUPLUG_ERROR_VALUE, "%s: output %u has no memory", f->op->name,
                          k - f->n_inputs);
  const int elsewhere = memcmp(&f->device, &f->home, sizeof f->home) != 0;
  if (f->home.type == CUPLUG_CUDA && elsewhere)
    return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                        "%s: device: got %s, expected %s (as the arrays)", f->op->name,
                        cuplug__describe_device(f->device).s, cuplug__describe_device(f->home).s);
  if (f->device.type && f->device.type != CUPLUG_CPU && f->device.type != CUPLUG_CUDA)
    return cuplug__fail(error, CUPLUG_ERROR_VALUE, "%s: device: got %s, expected the host or CUDA",
                        f->op->name, cuplug__describe_device(f->device).s);
  return CUPLUG_OK;
}

/* The usual case: nothing is to be copied, outputs have memory, and it runs where the arrays are.
 */
static inline int is_ready(const cuplug_frame *f) {
  if (f->copy_mask || (f->device.type && memcmp(&f->device, &f->home, sizeof f->home))) return 0;
  for (uint32_t k = f->n_inputs; k < f->n_tensors; k++)
    if (!f->tensors[k].data) return 0;
  return f->device.type || f->home.type != CUPLUG_CUDA;
}

/* Entries that take strides always have them, except those that accept NULL. */
static inline int wants_strides(const cuplug__run *run) {
  const cuplug__callable *o = run->overload;
  if (!(o->row->flags & CUPLUG_OVERLOAD_TAKES_STRIDES)) return 0;
  return !o->null_strides_when_contiguous || run->device.type != run->frame->home.type;
}

static int run_where(cuplug__run *run) {
  return run->device.type == CUPLUG_CUDA ? run_cuda(run) : run_host(run);
}

/* Few operators have these. */
enum { CHECKED = CUPLUG_OVERLOAD_HANDLES | CUPLUG_OVERLOAD_ELEMENT_RANGES };

static __attribute__((noinline)) int run_checked(cuplug__run *run, uint32_t flags) {
  const int has_handles = (flags & CUPLUG_OVERLOAD_HANDLES) != 0;
  cuplug__used used;
  const int has_ranges = (flags & CUPLUG_OVERLOAD_ELEMENT_RANGES) != 0;
  int status = has_ranges ? cuplug__check_elements(run->frame, run->error) : CUPLUG_OK;
  if (!status && has_handles) status = cuplug__handles_begin(run, &used);
  if (status) return status;
  status = run_where(run);
  return has_handles ? cuplug__handles_end(run, &used, status) : status;
}

/* The call has a record even if the caller has none: the entry may fill it. */
static __attribute__((noinline)) int run_with_record(cuplug_frame *f) {
  cuplug_error error;
  return cuplug_run(f, &error);
}

int cuplug_run(cuplug_frame *f, cuplug_error *error) {
  cuplug__run run;
  if (!error) return run_with_record(f);
  cuplug__clear(error);
  int status = is_ready(f) ? CUPLUG_OK : check_frame(f, error);
  if (status) return status;
  if (!atomic_load_explicit(&f->op->loaded, memory_order_acquire) &&
      (status = cuplug_load_code(f->op, error)))
    return status;
  run.frame = f;
  run.overload = &f->op->overloads[f->row];
  run.error = error;
  run.device = cuplug__where(f);
  run.stream = NULL;
  run.fault = NULL;
  run.tensors = f->tensors;
  atomic_flag_clear_explicit(&run.is_failing, memory_order_relaxed);
  run.second = NULL;
  run.n_workspaces = 0;
  f->device = run.device;
  if (f->keeps_layout) cuplug__flatten(f);
  const uint32_t flags = run.overload->row->flags;
  if (flags & (CUPLUG_OVERLOAD_TAKES_STRIDES | CHECKED)) {
    if (wants_strides(&run)) cuplug__write_strides(f);
    if (flags & CHECKED) return run_checked(&run, flags);
  }
  return run_where(&run);
}
