/* SPDX-License-Identifier: Apache-2.0 */
/* What an overload needs on a GPU before its first run. */
#include "call.h"
#include "cuda.h"
#include "describe.h"
#include "memory.h"
#include "status.h"

static int check_code(const cuplug_operator *op, int32_t device, cuplug_error *error) {
  cuplug_operator_info info;
  int32_t capability = 0;
  cuplug_describe(op, &info);
  if (!*info.architectures || cuplug__cuda_can_run(device, info.architectures, &capability))
    return CUPLUG_OK;
  return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                      "%s: %s has code for compute capability %s, and cuda:%d has %d.%d; rebuild "
                      "the plugin for it",
                      op->name, info.path, cuplug__describe_architectures(info.architectures).s,
                      (int)device, (int)capability / 10, (int)capability % 10);
}

int cuplug__prepare(const cuplug_operator *op, cuplug__overload *overload, int32_t device,
                    cuplug_error *error) {
  const cuplug_signature *s = &overload->signature;
  const char *names[CUPLUG_MAX_TENSORS];
  uint32_t n = 0;
  cuplug_fault *fault, *none = NULL;
  int status = check_code(op, device, error);
  if (status || atomic_load_explicit(&overload->fault, memory_order_acquire)) return status;
  for (int32_t i = 0; i < s->n_parameters + s->n_outputs && n < CUPLUG_MAX_TENSORS; i++)
    if (i >= s->n_parameters || s->parameters[i].kind <= CUPLUG_PARAMETER_INOUT)
      names[n++] = s->parameters[i].name;
  status = cuplug__fault_record(op->name, names, n, &fault, error);
  if (status) {
    cuplug__prefix(error, "%s: ", op->name);
    return status;
  }
  /* Another thread may have been faster: its record serves both. */
  atomic_compare_exchange_strong(&overload->fault, &none, fault);
  return CUPLUG_OK;
}

static int prepare_entered(cuplug_operator *op, int32_t device, cuplug_error *error) {
  cuplug_memory_info info;
  int has_entry = 0, status = cuplug__memory_query(device, &info, error); /* makes the pool */
  for (uint32_t k = 0; k < op->n_overloads && !status; k++) {
    if (!op->overloads[k].cuda) continue;
    has_entry = 1;
    status = cuplug__prepare(op, &op->overloads[k], device, error);
  }
  if (status || has_entry) return status;
  return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                      "%s: it was to be prepared for cuda:%d but has no CUDA entry", op->name,
                      (int)device);
}

int cuplug_prepare(cuplug_operator *op, int32_t device, cuplug_error *error) {
  void *previous;
  cuplug__clear(error);
  int status = cuplug_load_code(op, error);
  if (status) return status;
  status = cuplug__cuda_enter(device, &previous, error);
  if (status) {
    cuplug__prefix(error, "%s: ", op->name);
    return status;
  }
  int mode = cuplug__capture_relax();
  status = prepare_entered(op, device, error);
  cuplug__capture_exchange(mode);
  cuplug__cuda_leave(previous, device);
  return status;
}
