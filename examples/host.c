/* SPDX-License-Identifier: Apache-2.0 */
/* A C program, without Python in its process. It describes an operator and calls it, and then calls
 * another, whose output has a size that is known after the run. */
#include <cuplug/host.h>
#include <stdio.h>
#include <stdlib.h>

static void describe(const cuplug_operator *op) {
  const cuplug_signature *s = cuplug_operator_signature(op, 0);
  printf("%s %s: ", cuplug_operator_plugin(op), cuplug_operator_version(op));
  printf("%s\n", cuplug_overload_doc(cuplug_operator_overload(op, 0)));
  for (uint32_t i = 0; i < cuplug_signature_n_parameters(s); i++) {
    const char *by_default = cuplug_parameter_default(s, i);
    printf("  %s%s%s\n", cuplug_parameter_name(s, i), by_default ? " = " : "",
           by_default ? by_default : "");
  }
}

static int call_gather(cuplug_operator *gather, cuplug_error *error) {
  float source[] = {0.5f, 1.5f, 2.5f, 3.5f}, out[3];
  int32_t index[] = {3, 0, -3};
  int64_t n_source = 4, n = 3;
  const cuplug_tensor tensors[] = {cuplug_make_tensor(source, CUPLUG_FLOAT32, 1, &n_source),
                                   cuplug_make_tensor(index, CUPLUG_INT32, 1, &n),
                                   cuplug_make_tensor(out, CUPLUG_FLOAT32, 1, &n)};
  const cuplug_argument args[] = {cuplug_array(&tensors[0]), cuplug_array(&tensors[1]),
                                  cuplug_absent(), cuplug_array(&tensors[2])};
  int status = cuplug_invoke(gather, args, 4, NULL, error);
  if (!status) printf("gather: %g %g %g\n", out[0], out[1], out[2]);
  return status;
}

typedef struct floats {
  float *data;
  int64_t n;
} floats;

/* Allocates the memory of an output. `user` is options.user. */
static int allocate(void *user, uint32_t output, cuplug_tensor *x, cuplug_error *error) {
  floats *result = user;
  (void)output, (void)error;
  result->n = x->shape[0];
  x->data = result->data = malloc((size_t)cuplug_n_elements(x) * sizeof(float) + 1);
  return x->data ? CUPLUG_OK : CUPLUG_ERROR_MEMORY;
}

static int call_positive(cuplug_operator *positive, cuplug_error *error) {
  float x[] = {3, -1, 2};
  int64_t n = 3;
  floats result = {NULL, 0};
  const cuplug_tensor tensor = cuplug_make_tensor(x, CUPLUG_FLOAT32, 1, &n);
  const cuplug_argument args[] = {cuplug_array(&tensor)};
  cuplug_options options = cuplug_default_options();
  options.allocate = allocate, options.user = &result;
  int status = cuplug_invoke(positive, args, 1, &options, error);
  if (!status) printf("positive: %g %g\n", result.data[0], result.data[1]);
  free(result.data);
  return status;
}

int main(void) {
  cuplug_operator *gather, *positive;
  cuplug_error error;
  if (cuplug_find("gather", &gather, &error) ||
      cuplug_load("libpositive.so", &positive, 1, NULL, &error))
    return fprintf(stderr, "%s\n", error.message), 1;
  describe(gather);
  if (call_gather(gather, &error) || call_positive(positive, &error))
    return fprintf(stderr, "%s\n", error.message), 1;
  return 0;
}
