/* SPDX-License-Identifier: Apache-2.0 */
/* Calls from XLA programs: operands and results become arguments and outputs of a call. */
#include "base/core.h"
#include "jax/xla_plan.h"

#include <runtime/xla.h>
#include <string.h>

/* The data of the functions for one device type. XLA for GPUs numbers its types separately. */
typedef struct platform {
  int32_t device_type;
  uint32_t traits;
  int64_t *state_type;
} platform;

static int64_t state_types[2];
static const platform cpu = {CUPLUG_CPU, 0, &state_types[0]};
static const platform cuda = {CUPLUG_CUDA, CUPLUG__XLA_CAN_BE_REPLAYED, &state_types[1]};
static const platform cuda_waiting = {CUPLUG_CUDA, 0, &state_types[1]};

/* ---- Errors ---------------------------------------------------------------------------------- */

static int32_t code_of(int status) {
  switch (status) {
  case CUPLUG_ERROR_VALUE:
  case CUPLUG_ERROR_TYPE:
    return CUPLUG__XLA_INVALID_ARGUMENT;
  case CUPLUG_ERROR_INDEX:
    return CUPLUG__XLA_OUT_OF_RANGE;
  case CUPLUG_ERROR_MEMORY:
    return CUPLUG__XLA_RESOURCE_EXHAUSTED;
  case CUPLUG_ERROR_NOT_FOUND:
    return CUPLUG__XLA_NOT_FOUND;
  }
  return CUPLUG__XLA_INTERNAL;
}

static cuplug__xla_error *report(const cuplug__xla_call *call, const cuplug_error *error) {
  cuplug__xla_error_args args = {sizeof args, NULL, error->message, code_of(error->status)};
  return call->api->create_error(&args);
}

/* ---- Metadata and state ---------------------------------------------------------------------- */

static int is_metadata_request(const cuplug__xla_call *call) {
  return call->extensions && call->extensions->type == CUPLUG__XLA_ASKS_METADATA;
}

/* Called when the function is registered, before any other call. */
static cuplug__xla_error *give_metadata(const cuplug__xla_call *call, const platform *p) {
  static const cuplug__xla_type_info info = {sizeof info, NULL, cuplug__xla_free_plan};
  cuplug__xla_metadata *metadata = call->extensions->metadata;
  metadata->version.major = CUPLUG__XLA_MAJOR;
  metadata->version.minor = CUPLUG__XLA_MINOR;
  metadata->traits = p->traits;
  if (!*p->state_type) {
    static const char name[] = "cuplug_call";
    cuplug__xla_type_args args = {sizeof args, NULL, {name, sizeof name - 1}, p->state_type, &info};
    cuplug__xla_error *error = call->api->register_type(&args);
    if (error) return error;
  }
  if (metadata->struct_bytes >= sizeof *metadata) metadata->state_type = *p->state_type;
  return NULL;
}

static cuplug__xla_error *instantiate(const cuplug__xla_call *call, const platform *p) {
  cuplug_error error;
  cuplug__xla_plan *plan;
  if (is_metadata_request(call)) return give_metadata(call, p);
  if (cuplug__xla_make_plan(&call->attributes, &plan, &error)) return report(call, &error);
  cuplug__xla_state_args args = {sizeof args, NULL, call->context, 0, p->state_type, plan};
  return call->api->set_state(&args);
}

/* ---- One call -------------------------------------------------------------------------------- */

/* The data of one call, in the stack frame of `execute`. */
typedef struct run {
  const cuplug__xla_call *call;
  cuplug__xla_plan *plan;
  cuplug_device device;
  void *stream;
  cuplug_argument args[CUPLUG_MAX_ARGUMENTS];
  cuplug_argument items[CUPLUG_MAX_ARGUMENTS]; /* items of lists of arrays */
} run;

static int fill_tensor(const run *r, const cuplug__xla_buffer *buffer, cuplug_tensor *x,
                       cuplug_error *error) {
  const uint32_t id = cuplug__xla_dtype(buffer->dtype);
  if (!id)
    return core->fail(error, CUPLUG_ERROR_TYPE,
                      "%s: got an array of XLA's type %d, expected a dtype of cuplug",
                      cuplug_operator_name(r->plan->op), buffer->dtype);
  *x = cuplug_make_tensor(buffer->data, (cuplug_type_id)id, (int32_t)buffer->ndim, buffer->shape);
  x->device = r->device;
  return CUPLUG_OK;
}

/* A scalar operand. On a GPU, the call waits for it. */
static int read_scalar(const run *r, const cuplug__xla_buffer *buffer, cuplug_argument *argument,
                       cuplug_error *error) {
  char value[16];
  const uint32_t n_bytes = (cuplug__xla_dtype(buffer->dtype) >> 16 & 255) / 8;
  if (buffer->ndim || n_bytes > sizeof value)
    return core->fail(error, CUPLUG_ERROR_TYPE, "%s: got an array, expected a scalar",
                      cuplug_operator_name(r->plan->op));
  if (r->device.type == CUPLUG_CPU) {
    memcpy(value, buffer->data, n_bytes);
  } else {
    int status = cuplug_copy_to_host(r->device.id, value, buffer->data, n_bytes, r->stream, error);
    if (status) return status;
  }
  return cuplug__xla_read_number(buffer->dtype, value, argument, error);
}

static int take_operands(run *r, cuplug_error *error) {
  const cuplug__xla_plan *p = r->plan;
  const cuplug__xla_buffers *operands = &r->call->operands;
  if (operands->n != p->n_operands)
    return core->fail(error, CUPLUG_ERROR_VALUE, "%s: got %lld operands, expected %u",
                      cuplug_operator_name(p->op), (long long)operands->n, p->n_operands);
  memcpy(r->args, p->args, p->n_args * sizeof *r->args);
  for (uint64_t lists = p->lists; lists; lists &= lists - 1) {
    const int k = __builtin_ctzll(lists);
    r->args[k].list.items = &r->items[p->first_items[k]];
  }
  for (uint32_t k = 0; k < p->n_operands; k++) {
    const cuplug__xla_place place = p->places[k];
    cuplug_argument *x = place.is_item ? &r->items[place.number] : &r->args[place.number];
    int status;
    x->kind = CUPLUG_ARGUMENT_ARRAY;
    x->flags = 0;
    if (place.is_scalar)
      status = read_scalar(r, operands->buffers[k], x, error);
    else
      status = fill_tensor(r, operands->buffers[k], &x->tensor, error);
    if (status) return status;
  }
  return CUPLUG_OK;
}

/* An in-out array's result has the memory of its operand. */
static int check_inout(const run *r, const cuplug_frame *f, uint32_t k, uint32_t result,
                       cuplug_error *error) {
  const cuplug__xla_buffers *results = &r->call->results;
  if (result < results->n && results->buffers[result]->data == f->tensors[k].data) return CUPLUG_OK;
  return core->fail(error, CUPLUG_ERROR_VALUE, "%s: %s: its result has memory of its own",
                    cuplug_operator_name(f->op), f->signature->parameters[f->parameter[k]].name);
}

/* The in-out arrays come first, then the outputs. */
static int take_results(const run *r, cuplug_frame *f, cuplug_error *error) {
  const cuplug__xla_buffers *results = &r->call->results;
  const uint32_t n_outputs = f->n_tensors - f->n_inputs;
  uint32_t n_taken = 0;
  int status = CUPLUG_OK;
  for (uint32_t k = 0; k < f->n_inputs && !status; k++)
    if (f->signature->parameters[f->parameter[k]].kind == CUPLUG_PARAMETER_INOUT &&
        f->tensors[k].ndim >= 0)
      status = check_inout(r, f, k, n_taken++, error);
  if (status) return status;
  if (results->n != n_taken + n_outputs)
    return core->fail(error, CUPLUG_ERROR_VALUE, "%s: got %lld results, expected %u",
                      cuplug_operator_name(f->op), (long long)results->n, n_taken + n_outputs);
  for (uint32_t k = 0; k < n_outputs && !status; k++) {
    cuplug_argument output = cuplug_absent();
    output.kind = CUPLUG_ARGUMENT_ARRAY;
    status = fill_tensor(r, results->buffers[n_taken + k], &output.tensor, error);
    if (!status) status = cuplug_core->set_output(f, k, &output, error);
  }
  return status;
}

/* Separate from its caller, whose stack frame is also large. */
__attribute__((noinline)) static int run_bound(const run *r, cuplug_error *error) {
  cuplug_frame frame;
  const cuplug__xla_plan *p = r->plan;
  int32_t n_matched;
  int status = p->row ? cuplug_core->bind_overload(p->op, p->row - 1, r->args, p->n_args, 1, &frame,
                                                   &n_matched, error)
                      : cuplug_core->bind(p->op, r->args, p->n_args, &frame, error);
  if (status) return status;
  status = take_results(r, &frame, error);
  frame.device = r->device;
  frame.stream = r->stream;
  frame.keep_scratch = cuplug__xla_keep_scratch;
  frame.user = &r->plan->scratch;
  if (!status) status = cuplug_core->run(&frame, error);
  cuplug_core->free_blocks(frame.blocks);
  return status;
}

static cuplug__xla_error *find_place(run *r) {
  const cuplug__xla_call *call = r->call;
  cuplug__xla_stream_args stream = {sizeof stream, NULL, call->context, NULL};
  cuplug__xla_device_args device = {sizeof device, NULL, call->context, 0};
  if (r->device.type == CUPLUG_CPU) return NULL;
  cuplug__xla_error *error = call->api->get_stream(&stream);
  if (!error) error = call->api->get_device(&device);
  r->stream = stream.stream;
  r->device.id = device.device;
  return error;
}

static cuplug__xla_error *execute(const cuplug__xla_call *call, const platform *p) {
  cuplug_error error;
  run r;
  if (is_metadata_request(call)) return give_metadata(call, p);
  cuplug__xla_state_args state = {sizeof state, NULL, call->context, 0, p->state_type, NULL};
  cuplug__xla_error *refused = call->api->get_state(&state);
  if (refused) return refused;
  r.call = call;
  r.plan = state.state;
  r.device = (cuplug_device){p->device_type, 0};
  r.stream = NULL;
  if ((refused = find_place(&r))) return refused;
  int status = take_operands(&r, &error);
  if (!status) status = run_bound(&r, &error);
  return status ? report(call, &error) : NULL;
}

cuplug__xla_error *cuplug_xla_instantiate_cpu(cuplug__xla_call *call) {
  return instantiate(call, &cpu);
}

cuplug__xla_error *cuplug_xla_instantiate_cuda(cuplug__xla_call *call) {
  return instantiate(call, &cuda);
}

cuplug__xla_error *cuplug_xla_execute_cpu(cuplug__xla_call *call) { return execute(call, &cpu); }

cuplug__xla_error *cuplug_xla_execute_cuda(cuplug__xla_call *call) { return execute(call, &cuda); }

cuplug__xla_error *cuplug_xla_execute_cuda_waiting(cuplug__xla_call *call) {
  return execute(call, &cuda_waiting);
}
