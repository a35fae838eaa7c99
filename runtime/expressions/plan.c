/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of operators whose kernel and host function are given as source. */
#include "base/core.h"
#include "entry/run.h"
#include "expressions/variant.h"

#include <inttypes.h>
#include <math.h>
#include <runtime/expressions.h>
#include <string.h>

/* ---- The value of a parameter ---------------------------------------------------------------- */

typedef union value {
  void *pointer;
  double f64;
  double c128[2];
  float f32;
  float c64[2];
  int64_t i64;
} value;

/* Returns whether a value is a float, a complex number, or an unsigned number of 64 bits. */
static int pass_scalar(const cuplug_call *call, const cuplug_kernel_argument *pass, value *to) {
  const cuplug_scalar *x = &call->scalars[pass->operand];
  if (pass->type == CUPLUG_FLOAT32) {
    to->f32 = (float)x->f;
    if (!isfinite(to->f32) && isfinite(x->f))
      return core->fail(cuplug__error_of(call), CUPLUG_ERROR_VALUE,
                        "arguments: %s: got %g, expected a number that its parameter, a float, "
                        "can hold",
                        pass->number.text, x->f);
  } else if (pass->type == CUPLUG_COMPLEX64) {
    to->c64[0] = (float)x->c[0], to->c64[1] = (float)x->c[1];
  } else {
    memcpy(to, x, sizeof x->c);
  }
  return CUPLUG_OK;
}

/* A pointer to structures requires whole ones. */
static int pass_array(const cuplug_call *call, const cuplug_kernel_argument *pass, value *to) {
  const cuplug_tensor *t = &call->tensors[pass->operand];
  to->pointer = t->data;
  if (!pass->unit_bytes || t->ndim < 0) return CUPLUG_OK;
  const int64_t bytes = cuplug_n_elements(t) * cuplug_element_bytes(t);
  if (bytes % pass->unit_bytes)
    return core->fail(cuplug__error_of(call), CUPLUG_ERROR_VALUE,
                      "arguments: %s: got an array of %" PRId64 " bytes, expected a multiple of "
                      "the %u of what its parameter points to",
                      pass->number.text, bytes, pass->unit_bytes);
  if (bytes && (uintptr_t)t->data % pass->unit_alignment)
    return core->fail(cuplug__error_of(call), CUPLUG_ERROR_VALUE,
                      "arguments: %s: got a misaligned array, expected an address that is a "
                      "multiple of %u",
                      pass->number.text, pass->unit_alignment);
  return CUPLUG_OK;
}

static int hold(const cuplug_call *call, const cuplug_kernel_argument *pass, value *to) {
  switch (pass->kind) {
  case CUPLUG_KERNEL_ARGUMENT_ARRAY:
    return pass_array(call, pass, to);
  case CUPLUG_KERNEL_ARGUMENT_FAULT:
    to->pointer = call->fault;
    return CUPLUG_OK;
  case CUPLUG_KERNEL_ARGUMENT_CALL:
    to->pointer = NULL;
    return CUPLUG_OK;
  case CUPLUG_KERNEL_ARGUMENT_SCALAR:
    return pass_scalar(call, pass, to);
  default:
    return cuplug_entry_number(call, &pass->number, "arguments", pass->type, &to->i64);
  }
}

/* ---- The launch ------------------------------------------------------------------------------ */

/* One size of a grid or block, or 1 if the plan has none. */
static int measure(const cuplug_call *call, const cuplug_term *term, const char *what,
                   uint32_t *size) {
  int64_t n = 1;
  int status =
      term->formula.n_steps ? cuplug_entry_number(call, term, what, CUPLUG_INT64, &n) : CUPLUG_OK;
  if (!status && (n < 0 || n > INT32_MAX))
    return core->fail(cuplug__error_of(call), CUPLUG_ERROR_VALUE,
                      "%s: %s: got %" PRId64 ", expected 0 to %d", what, term->text, n, INT32_MAX);
  *size = (uint32_t)n;
  return status;
}

static int measure_threads(const cuplug_call *call, const cuplug_launch_plan *plan,
                           cuplug_grid *grid) {
  int64_t n;
  int status = cuplug_entry_number(call, &plan->grid[0], "threads", CUPLUG_INT64, &n);
  if (status) return status;
  const int64_t block = grid->threads[0] ? grid->threads[0] : 1;
  const int64_t n_blocks = n > 0 ? (n - 1) / block + 1 : 0;
  if (n_blocks > INT32_MAX)
    return core->fail(cuplug__error_of(call), CUPLUG_ERROR_VALUE,
                      "threads: %s: got %" PRId64 ", expected at most %" PRId64, plan->grid[0].text,
                      n, INT32_MAX * block);
  grid->blocks[0] = (uint32_t)n_blocks;
  grid->blocks[1] = grid->blocks[2] = 1;
  return CUPLUG_OK;
}

static int measure_grid(const cuplug_call *call, const cuplug_launch_plan *plan,
                        cuplug_grid *grid) {
  int status = CUPLUG_OK;
  for (int d = 0; d < 3 && !status; d++)
    status = measure(call, &plan->block[d], "block", &grid->threads[d]);
  if (!status && plan->shared_bytes.formula.n_steps)
    status = measure(call, &plan->shared_bytes, "shared", &grid->shared_bytes);
  if (!status && plan->per_thread) return measure_threads(call, plan, grid);
  for (int d = 0; d < 3 && !status; d++)
    status = measure(call, &plan->grid[d], "grid", &grid->blocks[d]);
  return status;
}

int cuplug_kernel_cuda(const cuplug_call *call) {
  cuplug_source *source = call->context;
  const cuplug_code *code;
  cuplug_grid grid = {.blocks = {1, 1, 1}, .threads = {1, 1, 1}};
  value values[CUPLUG_MAX_PASSES];
  void *arguments[CUPLUG_MAX_PASSES];
  int status = cuplug__variant_find_plain(source, call, &code);
  if (status) return status;
  const cuplug_launch_plan *plan = code->finish;
  if ((status = measure_grid(call, plan, &grid))) return status;
  if (!grid.blocks[0] || !grid.blocks[1] || !grid.blocks[2]) return CUPLUG_OK;
  for (uint32_t k = 0; k < plan->n_passes && k < CUPLUG_MAX_PASSES; k++) {
    if ((status = hold(call, &plan->passes[k], &values[k]))) return status;
    arguments[k] = &values[k];
  }
  return call->services->launch(call, code->function, &grid, arguments);
}

int cuplug_function_host(const cuplug_call *call) {
  cuplug_source *source = call->context;
  const cuplug_code *code;
  cuplug_host_function *function;
  value held;
  int64_t numbers[CUPLUG_MAX_PASSES];
  int status = cuplug__variant_find_plain(source, call, &code);
  if (status) return status;
  const cuplug_launch_plan *plan = code->finish;
  for (uint32_t k = 0; k < plan->n_passes && k < CUPLUG_MAX_PASSES; k++) {
    if ((status = hold(call, &plan->passes[k], &held))) return status;
    numbers[k] = held.i64;
  }
  memcpy(&function, &code->function, sizeof(function));
  return function(call, numbers);
}
