/* sanitizers: address,undefined */
/* SPDX-License-Identifier: Apache-2.0 */
/* Operators created in memory, used like plugins' operators; a message for each wrong definition.
 */
#include "check.h"

#include <runtime/define.h>
#include <string.h>

static cuplug_error error;

/* out = factor x, where the context is the factor. */
static int times_host(const cuplug_call *call) {
  const float *factor = call->context, *x = call->tensors[0].data;
  float *out = call->tensors[1].data;
  for (int64_t i = 0; i < cuplug_n_elements(&call->tensors[0]); i++) out[i] = *factor * x[i];
  return CUPLUG_OK;
}

static int count_host(const cuplug_call *call) {
  *(int64_t *)call->tensors[1].data = cuplug_n_elements(&call->tensors[0]);
  return call->context ? CUPLUG_ERROR_PLUGIN : CUPLUG_OK;
}

static cuplug_operator *times; /* lives until the process ends */

static void check_use(void) {
  static float factor = 3;
  const cuplug_definition_overload rows[] = {
      {.signature = "times(x: float32[n]) -> float32[n]", .host = times_host, .context = &factor},
      {.signature = "times(x: int8[n]) -> int64[]", .host = count_host, .flags = 1}};
  const cuplug_definition d = {.plugin = "test",
                               .version = "1",
                               .origin = "<test>",
                               .doc = "Doc.",
                               .rows = rows,
                               .n_rows = 2};
  CHECK(!cuplug_define(&d, &times, &error));
  float x[] = {1, 2}, out[2] = {0};
  int64_t n = 2, count = 0;
  cuplug_tensor t = {.data = x, .device = {CUPLUG_CPU, 0}, .ndim = 1, .dtype = {2, 32, 1}};
  t.shape = &n;
  cuplug_tensor to = t;
  to.data = out;
  cuplug_argument args[] = {cuplug_array(&t), cuplug_array(&to)};
  CHECK(!cuplug_invoke(times, args, 2, NULL, &error));
  CHECK(out[0] == 3 && out[1] == 6);
  args[0].tensor.dtype = (cuplug_dtype){0, 8, 1};
  args[1].tensor = (cuplug_tensor){.data = &count, .device = {1, 0}, .dtype = {0, 64, 1}};
  CHECK(!cuplug_invoke(times, args, 2, NULL, &error) && count == 2);
  cuplug_options on_gpu = cuplug_default_options();
  on_gpu.device.type = CUPLUG_CUDA;
  CHECK(cuplug_invoke(times, args, 2, &on_gpu, &error) == CUPLUG_ERROR_VALUE);
  CHECK_TEXT(error.message,
             "times: device: got cuda:0, expected the host (no CUDA entry in <test>)");
}

static void check_description(void) {
  cuplug_operator *none;
  CHECK_TEXT(cuplug_operator_name(times), "times");
  CHECK_TEXT(cuplug_operator_plugin(times), "test");
  CHECK_TEXT(cuplug_operator_version(times), "1");
  CHECK_TEXT(cuplug_operator_path(times), "<test>");
  CHECK_TEXT(cuplug_operator_architectures(times), "");
  CHECK(cuplug_operator_n_overloads(times) == 2 && cuplug_operator_is_loaded(times));
  CHECK(!cuplug_load_code(times, &error));
  CHECK_TEXT(cuplug_overload_doc(cuplug_operator_overload(times, 0)), "Doc.");
  CHECK(cuplug_overload_flags(cuplug_operator_overload(times, 1)) == CUPLUG_OVERLOAD_TAKES_STRIDES);
  CHECK(cuplug_find("times", &none, &error) == CUPLUG_ERROR_NOT_FOUND);
}

static void refused(cuplug_definition d, const char *first, const char *second,
                    const char *message) {
  cuplug_definition_overload rows[] = {{.signature = first, .host = times_host},
                                       {.signature = second, .host = times_host}};
  cuplug_operator *op = times;
  d.rows = rows;
  d.n_rows = first ? 1 + !!second : 0;
  CHECK(cuplug_define(&d, &op, &error) == CUPLUG_ERROR_VALUE && !op);
  CHECK(error.status == CUPLUG_ERROR_VALUE);
  CHECK_TEXT(error.message, message);
  CHECK(cuplug_define(&d, &op, NULL) == CUPLUG_ERROR_VALUE && !op);
}

static void check_refusals(void) {
  static char lengthy[CUPLUG_MAX_SIGNATURE + 2];
  const cuplug_definition d = {.plugin = "test"};
  cuplug_definition wrong = d;
  memset(lengthy, 'x', sizeof(lengthy) - 1);
  refused(d, NULL, NULL, "define: n_rows: 0, no operator");
  refused(d, "f(", NULL,
          "define: overload 0: signature: byte 2: got \"\", expected a parameter's name");
  refused(d, lengthy, NULL,
          "define: overload 0: signature: got more than 65535 bytes, expected at most 65535");
  refused(d, "f(x: int8[]) -> int8[]", "g(x: int8[]) -> int8[]",
          "define: got rows of f and of g, expected one operator");
  wrong.plugin = "a-b";
  refused(wrong, "f(x: int8[])", NULL, "define: plugin: got \"a-b\", expected an identifier");
  wrong = d, wrong.doc = "two\nlines";
  refused(wrong, "f(x: int8[])", NULL,
          "define: overload 0: doc: got byte 0x0a at 3, expected one line of UTF-8");
  cuplug_definition_overload bare = {.signature = "f(x: int8[])"};
  cuplug_operator *op;
  wrong = d, wrong.rows = &bare, wrong.n_rows = 1;
  CHECK(cuplug_define(&wrong, &op, &error) == CUPLUG_ERROR_VALUE);
  CHECK_TEXT(error.message, "define: overload 0: got no entry, expected a CUDA or a host entry");
}

int main(void) {
  check_use();
  check_description();
  check_refusals();
  return n_failed != 0;
}
