/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs that the caller brings along. */
#include "arguments/shapes.h"
#include "base/describe.h"
#include "base/layout.h"
#include "base/status.h"
#include "registry/plugin.h"

#include <string.h>

/* Output k among the parameters. */
static const cuplug_parameter *parameter_of(const cuplug_frame *f, uint32_t k) {
  return &f->signature->parameters[f->signature->n_parameters + (int32_t)k];
}

static const char *name_of(const cuplug_frame *f, uint32_t k) {
  return *parameter_of(f, k)->name ? parameter_of(f, k)->name : "out";
}

static int refuse(const cuplug_frame *f, uint32_t k, int status, const char *seen,
                  const char *wanted, cuplug_error *error) {
  return cuplug__fail(error, status, "%s: %s: got %s, expected %s", f->signature->name,
                      name_of(f, k), seen, wanted);
}

/* dtype, shape and device of a given output. */
static int check_kind(const cuplug_frame *f, uint32_t k, const cuplug_argument *given,
                      cuplug_error *error) {
  const cuplug_tensor *wanted = &f->tensors[f->n_inputs + k], *x = &given->tensor;
  if (given->kind != CUPLUG_ARGUMENT_ARRAY)
    return refuse(f, k, CUPLUG_ERROR_TYPE, cuplug__describe_argument(given).s, "an array", error);
  if (cuplug__has_unknown(wanted))
    return refuse(f, k, CUPLUG_ERROR_VALUE, "an array",
                  "none: this output's size is known only after the run", error);
  if (given->flags & CUPLUG_BYTE_SWAPPED || cuplug_type(x) != cuplug_type(wanted))
    return refuse(f, k, CUPLUG_ERROR_TYPE, cuplug__describe_argument(given).s,
                  cuplug__describe_dtype(cuplug_type(wanted)).s, error);
  if (!cuplug__has_sizes(x) || x->ndim != wanted->ndim ||
      !cuplug__same_sizes(x->shape, wanted->shape, x->ndim))
    return refuse(f, k, CUPLUG_ERROR_VALUE, cuplug__describe_argument(given).s,
                  cuplug__describe_tuple(wanted->shape, wanted->ndim).s, error);
  int cuda = cuplug__is_cuda(x->device), host = cuplug__is_host(x->device);
  int same = f->home.type == CUPLUG_CUDA ? cuda && x->device.id == f->home.id
                                         : host || (cuda && !f->home.type);
  if (!same)
    return cuplug__fail(
        error, CUPLUG_ERROR_VALUE,
        "%s: out: got an array on %s, expected %s (as the inputs); move one to the other",
        f->signature->name, cuplug__describe_device(x->device).s,
        cuplug__describe_device(f->home).s);
  return CUPLUG_OK;
}

static int is_zero(const cuplug_frame *f, uint32_t k) {
  return f->signature->zero_outputs >> k & 1;
}

CUPLUG__COLD static int refuse_order(const cuplug_frame *f, uint32_t k, const cuplug_tensor *given,
                                     cuplug_error *error) {
  const cuplug_parameter *x = parameter_of(f, k);
  const cuplug_tensor *t = &f->tensors[f->n_inputs + k];
  int64_t in_order[CUPLUG_MAX_NDIM];
  cuplug__contiguous_strides(t->ndim, t->shape, in_order);
  const cuplug__text got =
      cuplug__describe_tuple(given->strides ? given->strides : in_order, t->ndim);
  const cuplug__text wanted = cuplug__describe_tuple(t->strides ? t->strides : in_order, t->ndim);
  return cuplug__fail(error, CUPLUG_ERROR_VALUE, "%s: %s: got strides %s, expected %s (like %s)",
                      f->signature->name, name_of(f, k), got.s, wanted.s,
                      f->signature->parameters[x->like - 1].name);
}

/* Writable, aligned, contiguous unless strides are taken. */
static int check_layout(const cuplug_frame *f, uint32_t k, const cuplug_argument *given,
                        cuplug_error *error) {
  const cuplug_tensor *t = &given->tensor;
  const cuplug_parameter *x = parameter_of(f, k);
  const uint32_t on_gpu = f->home.type == CUPLUG_CUDA ? CUPLUG_OVERLOAD_CUDA_TAKES_STRIDES : 0;
  const uint32_t strided =
      f->op->overloads[f->row].row->flags & (CUPLUG_OVERLOAD_TAKES_STRIDES | on_gpu);
  if (!cuplug__has_possible_strides(t))
    return refuse(f, k, CUPLUG_ERROR_VALUE, cuplug__describe_tuple(t->strides, t->ndim).s,
                  "strides that keep its elements within 2^62 bytes", error);
  const char *wrong = cuplug__refuse_written(given, cuplug__is_contiguous(t), strided);
  if (wrong)
    return cuplug__fail(error, CUPLUG_ERROR_VALUE, "%s: %s: got %s", f->signature->name,
                        name_of(f, k), wrong);
  if (cuplug__breaks_guarantees(x, t))
    return cuplug__fail(error, CUPLUG_ERROR_VALUE, "%s: %s: %s", f->signature->name, name_of(f, k),
                        cuplug__describe_broken(x, t).s);
  if (x->like && !cuplug__has_layout_of(t, &f->tensors[f->n_inputs + k]))
    return refuse_order(f, k, t, error);
  const cuplug__span span = cuplug__span_of(t);
  if (is_zero(f, k) && span.high - span.low != (uintptr_t)cuplug__n_bytes(t))
    return refuse(f, k, CUPLUG_ERROR_VALUE, "an array with gaps between its elements",
                  "one without gaps (it is cleared before the call)", error);
  if (!cuplug__first_element(t) && cuplug__n_bytes(t))
    return refuse(f, k, CUPLUG_ERROR_VALUE, "a null pointer", "memory", error);
  return CUPLUG_OK;
}

/* An output may be the same memory as an input if the overload allows it. */
static int check_overlap(const cuplug_frame *f, uint32_t k, const cuplug_tensor *x,
                         cuplug_error *error) {
  const uint32_t n_tensors = f->n_tensors, n_apart = f->apart ? f->n_apart : 0;
  for (uint32_t other = 0; other < n_tensors + n_apart; other++) {
    const int is_apart = other >= n_tensors;
    const cuplug_tensor *y = is_apart ? &f->apart[other - n_tensors] : &f->tensors[other];
    if (other == f->n_inputs + k || y->ndim < 0 || !y->data) continue;
    const int overlap = cuplug__overlap(x, y);
    if (!overlap) continue;
    const char *name =
        is_apart ? "an array of a list" : f->signature->parameters[f->parameter[other]].name;
    if (other < f->n_inputs && cuplug__same_memory(x, y)) {
      const int may_be_same = f->op->overloads[f->row].row->flags & CUPLUG_OVERLOAD_IN_PLACE;
      if (may_be_same && !is_zero(f, k)) continue;
      return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                          "%s: out: got the memory of %s, expected an array of its own%s",
                          f->signature->name, name,
                          is_zero(f, k) ? " (it is cleared before the call)"
                                        : "; if the entry reads each element before it writes it, "
                                          "declare CUPLUG_IN_PLACE");
    }
    return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                        "%s: out: its memory %s %s; pass an array of its own", f->signature->name,
                        cuplug__overlap_verb(overlap), *name ? name : "another output");
  }
  return CUPLUG_OK;
}

/* The usual case in few steps: contiguous, as required, and without overlap with other arrays. */
static int fits(const cuplug_frame *f, uint32_t k, const cuplug_argument *given) {
  const cuplug_tensor *x = &given->tensor, *wanted = &f->tensors[k];
  if (given->kind != CUPLUG_ARGUMENT_ARRAY || given->flags || f->n_bytes[k] < 0 || f->apart ||
      f->signature->has_guarantees || memcmp(&x->device, &wanted->device, CUPLUG__TYPE_BYTES) ||
      !x->data || x->byte_offset || (x->ndim && !x->shape) ||
      !cuplug__same_sizes(x->shape, wanted->shape, x->ndim) || !cuplug__is_contiguous(x))
    return 0;
  const uintptr_t low = (uintptr_t)x->data, high = low + (uintptr_t)f->n_bytes[k];
  for (uint32_t other = 0; other < f->n_tensors; other++) {
    const uintptr_t begin = (uintptr_t)f->tensors[other].data;
    if (f->tensors[other].strides) return 0;
    if (begin && begin < high && low < begin + (uintptr_t)f->n_bytes[other] && other != k) return 0;
  }
  return 1;
}

int cuplug_set_output(cuplug_frame *f, uint32_t k, const cuplug_argument *given,
                      cuplug_error *error) {
  int status;
  cuplug__clear(error);
  if (f->n_inputs + k >= f->n_tensors)
    return cuplug__fail(error, CUPLUG_ERROR_TYPE, "%s: out: got %u outputs, expected %u",
                        f->signature->name, k + 1, f->n_tensors - f->n_inputs);
  cuplug_tensor *t = &f->tensors[f->n_inputs + k];
  if (fits(f, f->n_inputs + k, given)) {
    t->data = given->tensor.data;
    f->supplied_mask |= 1ull << k;
    return CUPLUG_OK;
  }
  if ((status = check_kind(f, k, given, error))) return status;
  if ((status = check_layout(f, k, given, error))) return status;
  if ((status = check_overlap(f, k, &given->tensor, error))) return status;
  t->data = cuplug__first_element(&given->tensor);
  t->device = given->tensor.device;
  t->strides = cuplug__is_contiguous(&given->tensor) ? NULL : given->tensor.strides;
  f->supplied_mask |= 1ull << k;
  return CUPLUG_OK;
}
