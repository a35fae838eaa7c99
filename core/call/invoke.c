/* SPDX-License-Identifier: Apache-2.0 */
/* One call for C programs: both halves, with outputs that are given or allocated. */
#include "base/describe.h"
#include "base/layout.h"
#include "base/status.h"
#include "call/call.h"
#include "registry/plugin.h"

/* In the first version. */
#define OPTIONS_BYTES (offsetof(cuplug_options, user) + sizeof(void *))

static int take_options(const cuplug_operator *op, const cuplug_options *given,
                        cuplug_options *options, cuplug_error *error) {
  int status =
      cuplug__struct_take(options, sizeof *options, OPTIONS_BYTES, given, "cuplug_options", error);
  if (!status && options->reserved)
    status =
        cuplug__fail(error, CUPLUG_ERROR_VALUE, "reserved: got %u, expected 0", options->reserved);
  if (status) cuplug__prefix(error, "%s: options: ", op->name);
  return status;
}

/* The number of parameters among n arguments: outputs follow them. */
static uint32_t count_parameters(const cuplug_operator *op, uint32_t n) {
  const cuplug_signature *s = op->overloads[0].signature;
  for (uint32_t k = 1; k < op->n_overloads; k++) {
    const cuplug_signature *other = op->overloads[k].signature;
    if ((uint32_t)other->n_parameters + cuplug_signature_n_outputs(other) == n) s = other;
  }
  return n < (uint32_t)s->n_parameters ? n : (uint32_t)s->n_parameters;
}

static int refuse_memory(int status, uint32_t output, cuplug_error *error) {
  if (!status)
    return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                        "output %u: allocate returned CUPLUG_OK without memory", output);
  if (error->status) return status;
  const char *name = cuplug_status_name(status);
  return cuplug__fail(error, status, "output %u: allocate returned %s", output,
                      name ? name : "no status");
}

/* Apart from the call, whose stack need not have room for an error record then. */
__attribute__((noinline)) static int allocate(void *user, cuplug_frame *frame, uint32_t k,
                                              cuplug_error *error) {
  const cuplug_options *options = user;
  cuplug_tensor x = frame->tensors[k];
  cuplug_error local;
  if (!error) error = &local;
  cuplug__clear(error);
  if (cuplug__is_contiguous(&x)) x.strides = NULL;
  int status = options->allocate(options->user, k - frame->n_inputs, &x, error);
  if (status || (!x.data && cuplug__n_bytes(&x)))
    return refuse_memory(status, k - frame->n_inputs, error);
  frame->tensors[k].data = x.data;
  return CUPLUG_OK;
}

static int report(void *user, uint64_t done_bytes, uint64_t total_bytes, cuplug_error *error) {
  const cuplug_options *options = user;
  return options->progress(options->user, done_bytes, total_bytes, error);
}

/* Without array parameters, the call runs on the device of its outputs. */
static int place_by_output(cuplug_frame *f, cuplug_device given, cuplug_error *error) {
  const int is_cuda = cuplug__is_cuda(given);
  const cuplug_device place = {is_cuda ? CUPLUG_CUDA : CUPLUG_CPU, is_cuda ? given.id : 0};
  const int is_same = f->device.type == place.type && f->device.id == place.id;
  if (f->device.type && !is_same)
    return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                        "%s: out: got an array on %s, expected %s (as the call)", f->op->name,
                        cuplug__describe_device(given).s, cuplug__describe_device(f->device).s);
  f->device = place;
  return CUPLUG_OK;
}

static int is_optional(const cuplug_frame *f, uint32_t k) {
  return f->signature->optional_outputs >> k & 1;
}

static int is_given(const cuplug_frame *f, const cuplug_argument *given, uint32_t n, uint32_t k) {
  if (k >= n || given[k].kind == CUPLUG_ARGUMENT_ABSENT) return 0;
  return given[k].kind != CUPLUG_ARGUMENT_BOOL || !is_optional(f, k);
}

/* Optional outputs that are neither given nor requested. */
static void leave_out(cuplug_frame *f, const cuplug_argument *given, uint32_t n) {
  for (uint32_t k = 0; k < f->n_tensors - f->n_inputs; k++) {
    const int is_wanted = k < n && given[k].kind == CUPLUG_ARGUMENT_BOOL && given[k].scalar.i;
    if (is_optional(f, k) && !is_wanted && !is_given(f, given, n, k)) cuplug_leave_out(f, k);
  }
}

/* The place of a handle, the only output then. */
static __attribute__((noinline)) int take_place(cuplug_frame *f, const cuplug_argument *given,
                                                uint32_t n, cuplug_error *error) {
  const int is_one = n == 1 && given->kind == CUPLUG_ARGUMENT_HANDLE;
  if (is_one && given->flags & CUPLUG_NEW_HANDLE) f->made = given->scalar.handle;
  if (f->made || !n) return CUPLUG_OK;
  return cuplug__fail(
      error, CUPLUG_ERROR_TYPE,
      "%s: out: got %s, expected the place of handle[%s]; pass cuplug_new_handle(&handle)",
      f->op->name, n > 1 ? "several outputs" : cuplug__describe_argument(given).s,
      f->signature->made->tag);
}

/* The outputs that were given; *n_missing: the number of others. */
static int take_outputs(cuplug_frame *f, const cuplug_argument *given, uint32_t n,
                        uint32_t *n_missing, cuplug_error *error) {
  *n_missing = f->n_tensors - f->n_inputs;
  if (f->signature->made) return take_place(f, given, n, error);
  if (f->signature->optional_outputs) leave_out(f, given, n);
  for (uint32_t k = 0; k < n; k++) {
    if (!is_given(f, given, n, k) && f->n_inputs + k < f->n_tensors) continue;
    int status = cuplug_set_output(f, k, &given[k], error);
    if (!status && !f->home.type) status = place_by_output(f, given[k].tensor.device, error);
    if (status) return status;
    --*n_missing;
  }
  return CUPLUG_OK;
}

/* Outputs that were not given; the entry requests those of unknown size. */
static int allocate_outputs(cuplug_frame *f, const cuplug_argument *given, uint32_t n,
                            cuplug_error *error) {
  int status = CUPLUG_OK;
  for (uint32_t k = 0; k < f->n_tensors - f->n_inputs && !status; k++) {
    cuplug_tensor *x = &f->tensors[f->n_inputs + k];
    if (is_given(f, given, n, k) || x->ndim < 0) continue;
    if (!f->allocate)
      return cuplug__fail(
          error, CUPLUG_ERROR_VALUE, "%s: output %u: got no array, expected %s", f->op->name, k,
          cuplug__has_unknown(x) ? "options->allocate (its size is known only after the run)"
                                 : "one, or options->allocate");
    if (!f->home.type) x->device = cuplug__where(f);
    if (cuplug__has_unknown(x)) continue;
    status = f->allocate(f->user, f, f->n_inputs + k, error);
    if (status) cuplug__prefix(error, "%s: ", f->op->name);
  }
  return status;
}

static void set_options(cuplug_frame *f, cuplug_options *options) {
  if (options->device.type) f->device = options->device;
  f->stream = options->stream;
  f->allocate = options->allocate ? allocate : NULL;
  f->progress = options->progress ? report : NULL;
  f->user = options;
}

static int run_bound(cuplug_frame *f, const cuplug_argument *outputs, uint32_t n,
                     cuplug_error *error) {
  uint32_t n_missing;
  int status = cuplug_check_device(f, error);
  if (status) return status;
  status = take_outputs(f, outputs, n, &n_missing, error);
  if (!status && n_missing) status = allocate_outputs(f, outputs, n, error);
  return status ? status : cuplug_run(f, error);
}

typedef struct invocation {
  cuplug_bound_call bound; /* the first member */
  cuplug_options *options;
  cuplug_error *error;
} invocation;

static int bind_and_run(const cuplug_bound_call *bound, const cuplug_argument *args,
                        uint32_t n_parameters, uint32_t n_outputs, const cuplug_error *failed) {
  const invocation *call = (const invocation *)bound;
  cuplug_frame frame;
  if (failed) return *call->error = *failed, failed->status;
  int status = cuplug_bind(bound->op, args, n_parameters, &frame, call->error);
  if (status) return status;
  if (call->options) set_options(&frame, call->options);
  status = run_bound(&frame, n_outputs ? args + n_parameters : NULL, n_outputs, call->error);
  if (frame.blocks) cuplug_free_blocks(frame.blocks);
  return status;
}

int cuplug_invoke(cuplug_operator *op, const cuplug_argument *args, uint32_t n_args,
                  const cuplug_options *given, cuplug_error *error) {
  cuplug_options options;
  const uint32_t n_parameters = count_parameters(op, n_args), n = n_args - n_parameters;
  const invocation call = {{op, CUPLUG_ANY_OVERLOAD, bind_and_run}, given ? &options : NULL, error};
  int status = given ? take_options(op, given, &options, error) : CUPLUG_OK;
  if (status) return status;
  if (given || !error) return bind_and_run(&call.bound, args, n_parameters, n, NULL);
  status = cuplug_call_again(&call.bound, args, n_parameters, n);
  if (!status) cuplug__clear(error);
  return status;
}
