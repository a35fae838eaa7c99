/* sanitizers: address,undefined */
/* SPDX-License-Identifier: Apache-2.0 */
/* cuplug_invoke with dtypes as arguments, and with arrays that are always on the host. */
#include "check.h"

#include <runtime/define.h>
#include <stdlib.h>

static cuplug_error error;

static cuplug_operator *defined[3]; /* for as long as the process */

static cuplug_operator *define(const char *signature, cuplug_entry *host) {
  static int n = 0;
  const cuplug_definition_overload row = {.signature = signature, .host = host};
  const cuplug_definition d = {
      .plugin = "test", .version = "1", .origin = "<test>", .rows = &row, .n_rows = 1};
  cuplug_operator *op = NULL;
  if (cuplug_define(&d, &op, &error)) fprintf(stderr, "%s\n", error.message), exit(1);
  return defined[n++] = op;
}

static int cast_host(const cuplug_call *call) {
  const cuplug_dtype asked = call->scalars[0].dtype, got = call->outputs[0].dtype;
  CHECK(asked.code == got.code && asked.bits == got.bits && asked.lanes == got.lanes);
  *(int64_t *)call->outputs[1].data = cuplug_type(&call->outputs[0]);
  return CUPLUG_OK;
}

static int allocate(void *user, uint32_t k, cuplug_tensor *x, cuplug_error *e) {
  static double memory[2];
  (void)user, (void)e;
  x->data = &memory[k];
  return CUPLUG_OK;
}

static int call(cuplug_operator *op, uint32_t of_x, cuplug_argument dtype, int64_t *seen) {
  int64_t one = 1;
  double number = 2;
  cuplug_tensor x = cuplug_make_tensor(&number, of_x, 1, &one);
  cuplug_tensor type = cuplug_make_tensor(seen, CUPLUG_INT64, 0, NULL);
  const cuplug_options options = {.struct_bytes = sizeof options, .allocate = allocate};
  const cuplug_argument args[] = {cuplug_array(&x), dtype, cuplug_absent(), cuplug_array(&type)};
  return cuplug_invoke(op, args, 4, &options, &error);
}

static void check_dtypes(void) {
  cuplug_operator *op = define("cast(x: T[n], to: dtype = float32) -> (to[n], int64[]) where "
                               "T: floating, to: floating",
                               cast_host);
  const cuplug_signature *s = cuplug_operator_signature(op, 0);
  int64_t seen = 0;
  for (int k = 0; k < 2; k++) { /* the second time with the cached match */
    CHECK(!call(op, CUPLUG_FLOAT32, cuplug_dtype_argument(CUPLUG_FLOAT64), &seen) &&
          seen == CUPLUG_FLOAT64);
    CHECK(!call(op, CUPLUG_FLOAT32, cuplug_string("bfloat16"), &seen) && seen == CUPLUG_BFLOAT16);
    CHECK(!call(op, CUPLUG_FLOAT32, cuplug_absent(), &seen) && seen == CUPLUG_FLOAT32);
  }
  CHECK(call(op, CUPLUG_FLOAT32, cuplug_dtype_argument(CUPLUG_INT8), &seen) == CUPLUG_ERROR_TYPE);
  CHECK_TEXT(error.message, "cast: to: got the dtype int8, expected floating");
  CHECK(call(op, CUPLUG_FLOAT32, cuplug_string("float46"), &seen) == CUPLUG_ERROR_TYPE);
  CHECK_TEXT(error.message,
             "cast: to: got the string \"float46\", expected floating; did you mean float16?");
  CHECK(cuplug_parameter_kind(s, 1) == CUPLUG_PARAMETER_DTYPE);
  CHECK(cuplug_parameter_dtypes(s, 1) == cuplug_parameter_dtypes(s, 2));
  CHECK_TEXT(cuplug_parameter_default(s, 1), "float32");
}

/* The dtype of x, if the call passes none. */
static void check_default_of_an_array(void) {
  cuplug_operator *op = define("recast(x: T[n], to: dtype = T) -> (to[n], int64[]) where "
                               "T: floating | int32, to: float32 | float64",
                               cast_host);
  int64_t seen = 0;
  for (int k = 0; k < 2; k++) {
    CHECK(!call(op, CUPLUG_FLOAT64, cuplug_absent(), &seen) && seen == CUPLUG_FLOAT64);
    CHECK(!call(op, CUPLUG_FLOAT32, cuplug_absent(), &seen) && seen == CUPLUG_FLOAT32);
    CHECK(!call(op, CUPLUG_FLOAT32, cuplug_string("T"), &seen) && seen == CUPLUG_FLOAT32);
    CHECK(!call(op, CUPLUG_INT32, cuplug_string("float64"), &seen) && seen == CUPLUG_FLOAT64);
    CHECK(call(op, CUPLUG_INT32, cuplug_absent(), &seen) == CUPLUG_ERROR_TYPE);
    CHECK_TEXT(error.message, "recast: to: got the dtype int32, expected float32 | float64");
  }
  CHECK_TEXT(cuplug_parameter_default(cuplug_operator_signature(op, 0), 1), "T");
}

static int first_host(const cuplug_call *call) {
  *(int64_t *)call->outputs[0].data = *(const int64_t *)call->tensors[0].data;
  return CUPLUG_OK;
}

/* The device of an array, not the presence of a GPU, decides whether it matches. */
static void check_host_arrays(void) {
  cuplug_operator *op = define("first(host x: int64[n], y: int64[n]) -> int64[]", first_host);
  const cuplug_signature *s = cuplug_operator_signature(op, 0);
  int64_t two = 2, numbers[2] = {7, 8}, result = 0;
  cuplug_tensor x = cuplug_make_tensor(numbers, CUPLUG_INT64, 1, &two);
  cuplug_tensor on_gpu = cuplug_make_cuda_tensor(numbers, CUPLUG_INT64, 1, &two, 0);
  cuplug_tensor out = cuplug_make_tensor(&result, CUPLUG_INT64, 0, NULL);
  cuplug_argument args[] = {cuplug_array(&x), cuplug_array(&x), cuplug_array(&out)};
  CHECK(!cuplug_invoke(op, args, 3, NULL, &error) && result == 7);
  CHECK(cuplug_parameter_is_host(s, 0) == 1 && cuplug_parameter_is_host(s, 1) == 0);
  CHECK(cuplug_parameter_is_host(s, 2) == 0 && cuplug_parameter_is_host(s, 3) == 0);
  args[0] = cuplug_array(&on_gpu);
  CHECK(cuplug_invoke(op, args, 3, NULL, &error) == CUPLUG_ERROR_VALUE);
  CHECK_TEXT(error.message, "first: x: got an array on cuda:0, expected one on the host, whose "
                            "memory the entry reads; copy it there before the call");
}

int main(void) {
  check_dtypes();
  check_default_of_an_array();
  check_host_arrays();
  return n_failed != 0;
}
