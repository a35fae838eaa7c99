/* sanitizers: address,undefined */
/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs with the layout of an input, for C programs: `allocate` receives their strides. */
#include "check.h"

#include <cuplug/host.h>
#include <runtime/define.h>
#include <stdlib.h>
#include <string.h>

static cuplug_error error;

/* y[i, j] = 10 i + j */
static int fill_host(const cuplug_call *call) {
  const cuplug_tensor *y = call->outputs;
  for (int64_t i = 0; i < y->shape[0]; i++)
    for (int64_t j = 0; j < y->shape[1]; j++)
      ((float *)y->data)[i * y->strides[0] + j * y->strides[1]] = (float)(10 * i + j);
  return CUPLUG_OK;
}

static cuplug_operator *define(const char *signature, uint32_t flags) {
  const cuplug_definition_overload row = {
      .signature = signature, .host = fill_host, .flags = flags};
  const cuplug_definition d = {
      .plugin = "test", .version = "1", .origin = "<test>", .rows = &row, .n_rows = 1};
  cuplug_operator *op = NULL;
  cuplug_define(&d, &op, &error);
  return op;
}

typedef struct memory {
  float data[12];
  int64_t strides[2]; /* 0: the output has none */
} memory;

static int allocate(void *user, uint32_t output, cuplug_tensor *x, cuplug_error *record) {
  memory *m = user;
  (void)output, (void)record;
  memset(m->strides, 0, sizeof m->strides);
  if (x->strides) memcpy(m->strides, x->strides, sizeof m->strides);
  x->data = m->data;
  return CUPLUG_OK;
}

static void check_allocated(cuplug_operator *op) {
  memory m = {0};
  float data[24] = {0};
  int64_t shape[] = {3, 2}, strides[] = {1, 3};
  cuplug_tensor x = cuplug_make_tensor(data, CUPLUG_FLOAT32, 2, shape);
  cuplug_options options = cuplug_default_options();
  options.allocate = allocate, options.user = &m;
  cuplug_argument arg = cuplug_array(&x);
  CHECK(!cuplug_invoke(op, &arg, 1, &options, &error));
  CHECK(!m.strides[0] && m.data[1] == 1 && m.data[4] == 10);
  x.strides = strides;
  arg = cuplug_array(&x);
  for (int gap = 0; gap < 2; gap++, strides[0] = 2, strides[1] = 8) {
    CHECK(!cuplug_invoke(op, &arg, 1, &options, &error));
    CHECK(m.strides[0] == 1 && m.strides[1] == 3 && m.data[1] == 10 && m.data[3] == 1);
  }
}

static void check_given(cuplug_operator *op) {
  float data[6], out[12];
  int64_t shape[] = {3, 2}, wanted[] = {3, 4}, strides[] = {-1, 3}, order[] = {1, 3};
  cuplug_tensor x = cuplug_make_tensor(data + 2, CUPLUG_FLOAT32, 2, shape);
  cuplug_tensor y = cuplug_make_tensor(out, CUPLUG_FLOAT32, 2, wanted);
  x.strides = strides, y.strides = order;
  cuplug_argument args[] = {cuplug_array(&x), cuplug_array(&y)};
  CHECK(!cuplug_invoke(op, args, 2, NULL, &error) && out[2] == 20 && out[9] == 3);
  y.strides = NULL;
  args[1] = cuplug_array(&y);
  CHECK(cuplug_invoke(op, args, 2, NULL, &error) == CUPLUG_ERROR_VALUE);
  CHECK_TEXT(error.message, "wide: out: got strides (4, 1), expected (1, 3) (like x)");
}

int main(void) {
  const char *const text = "wide(x: float32[m, n]) -> float32[m, 2 * n] like x";
  static cuplug_operator *op; /* it lives until the process ends */
  op = define(text, CUPLUG_OVERLOAD_TAKES_STRIDES);
  if (!op) return fprintf(stderr, "%s\n", error.message), 1;
  check_allocated(op);
  check_given(op);
  CHECK(!define(text, 0));
  CHECK_TEXT(
      error.message,
      "define: overload 0: wide: got an output like an input, expected CUPLUG_TAKES_STRIDES in "
      "its description (the entry computes with the strides of both)");
  return n_failed != 0;
}
