/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of operators whose kernel, and whose function for the host, come as source. */
#include "base/status.h"
#include "entry/run.h"
#include "signature/value.h"
#include "source/variant.h"

#include <internal/source.h>
#include <inttypes.h>
#include <string.h>

#define MAX_PASSES (2 * CUPLUG_MAX_ARGUMENTS + 16)

static int evaluate(const cuplug_call *call, const cuplug_formula *formula, const char *what,
                    int64_t *result) {
  const cuplug__values values = {call->tensors, call->scalars};
  const char *wrong = cuplug__work_out_integer(formula, &values, result);
  if (!wrong) return CUPLUG_OK;
  return cuplug__fail(cuplug__error_of(call), CUPLUG_ERROR_VALUE, "%s: a formula: %s", what, wrong);
}

/* ---- What a kernel is given ------------------------------------------------------------------ */

typedef union value {
  void *pointer;
  double f64;
  float f32;
  uint16_t f16;
  int64_t i64;
} value;

/* A number in the bytes of an integer type; 0 where they cannot hold it. */
static int hold_integer(uint32_t type, int64_t x, value *to) {
  const uint32_t bits = type >> 16 & 255, is_unsigned = type >> 24 == 1;
  to->i64 = x; /* little-endian: the low bytes come first */
  if (bits == 64) return 1;
  const int64_t low = is_unsigned ? 0 : -(1ll << (bits - 1));
  const int64_t high = (1ll << (is_unsigned ? bits : bits - 1)) - 1;
  return x >= low && x <= high;
}

static void hold_scalar(uint32_t type, const cuplug_scalar *x, value *to) {
  if (type == CUPLUG_FLOAT64)
    to->f64 = x->f;
  else if (type == CUPLUG_FLOAT32)
    to->f32 = (float)x->f;
  else
    to->i64 = x->i;
}

static int hold(const cuplug_call *call, const cuplug_pass *pass, uint32_t k, value *to) {
  int64_t number;
  switch (pass->kind) {
  case CUPLUG_PASS_ARRAY:
    to->pointer = call->tensors[pass->operand].data;
    return CUPLUG_OK;
  case CUPLUG_PASS_FAULT:
    to->pointer = call->fault;
    return CUPLUG_OK;
  case CUPLUG_PASS_SCALAR:
    hold_scalar(pass->type, &call->scalars[pass->operand], to);
    return CUPLUG_OK;
  }
  int status = evaluate(call, &pass->formula, "arguments", &number);
  if (status || hold_integer(pass->type, number, to)) return status;
  return cuplug__fail(cuplug__error_of(call), CUPLUG_ERROR_VALUE,
                      "parameter %u of its kernel has %u bits, which cannot hold %" PRId64, k + 1,
                      pass->type >> 16 & 255, number);
}

/* ---- The launch ------------------------------------------------------------------------------ */

/* A side of the grid or of a block: what it is, or 1 where the plan has none. */
static int measure(const cuplug_call *call, const cuplug_formula *formula, const char *what,
                   uint32_t *size) {
  int64_t n = 1;
  int status = formula->n_steps ? evaluate(call, formula, what, &n) : CUPLUG_OK;
  if (!status && (n < 0 || n > INT32_MAX))
    return cuplug__fail(cuplug__error_of(call), CUPLUG_ERROR_VALUE,
                        "%s: seen %" PRId64 ", wanted 0 to %d", what, n, INT32_MAX);
  *size = (uint32_t)n;
  return status;
}

static int measure_threads(const cuplug_call *call, const cuplug_kernel_plan *plan,
                           cuplug_grid *grid) {
  int64_t n;
  int status = evaluate(call, &plan->grid[0], "threads", &n);
  if (status) return status;
  const int64_t block = grid->threads[0] ? grid->threads[0] : 1;
  const int64_t n_blocks = n > 0 ? (n - 1) / block + 1 : 0;
  if (n_blocks > INT32_MAX)
    return cuplug__fail(cuplug__error_of(call), CUPLUG_ERROR_VALUE,
                        "threads: seen %" PRId64 ", wanted at most %" PRId64, n, INT32_MAX * block);
  grid->blocks[0] = (uint32_t)n_blocks;
  grid->blocks[1] = grid->blocks[2] = 1;
  return CUPLUG_OK;
}

static int measure_grid(const cuplug_call *call, const cuplug_kernel_plan *plan,
                        cuplug_grid *grid) {
  int status = CUPLUG_OK;
  for (int d = 0; d < 3 && !status; d++)
    status = measure(call, &plan->block[d], "block", &grid->threads[d]);
  if (!status && plan->shared_bytes.n_steps)
    status = measure(call, &plan->shared_bytes, "shared", &grid->shared_bytes);
  if (!status && plan->per_thread) return measure_threads(call, plan, grid);
  for (int d = 0; d < 3 && !status; d++)
    status = measure(call, &plan->grid[d], "grid", &grid->blocks[d]);
  return status;
}

int cuplug_kernel_cuda(const cuplug_call *call) {
  cuplug_source *source = cuplug_entry_context(call);
  cuplug_variant variant;
  const cuplug_code *code;
  cuplug_grid grid = {.blocks = {1, 1, 1}, .threads = {1, 1, 1}};
  value values[MAX_PASSES];
  void *arguments[MAX_PASSES];
  cuplug__variant_start(&variant, call);
  int status = cuplug__variant_find(source, &variant, &code, cuplug__error_of(call));
  if (status) return status;
  const cuplug_kernel_plan *plan = code->finish;
  if ((status = measure_grid(call, plan, &grid))) return status;
  if (!grid.blocks[0] || !grid.blocks[1] || !grid.blocks[2]) return CUPLUG_OK;
  for (uint32_t k = 0; k < plan->n_passes && k < MAX_PASSES; k++) {
    if ((status = hold(call, &plan->passes[k], k, &values[k]))) return status;
    arguments[k] = &values[k];
  }
  return CUPLUG__SERVICE(call, launch)(call, code->function, &grid, arguments);
}

int cuplug_function_host(const cuplug_call *call) {
  cuplug_source *source = cuplug_entry_context(call);
  cuplug_variant variant;
  const cuplug_code *code;
  cuplug_entry *entry;
  cuplug__variant_start(&variant, call);
  int status = cuplug__variant_find(source, &variant, &code, cuplug__error_of(call));
  if (status) return status;
  memcpy(&entry, &code->function, sizeof(entry));
  return entry(call);
}
