/* SPDX-License-Identifier: Apache-2.0 */
/* A C program that finds two operators and calls them; no Python in the process. */
#include <cuplug/host.h>
#include <stdio.h>

int main(void) {
  float source[] = {0.5f, 1.5f, 2.5f, 3.5f}, out[3];
  int32_t index[] = {3, 0, -3};
  int64_t n_source = 4, n_index = 3;
  const cuplug_tensor tensors[] = {
      {.data = source, {CUPLUG_CPU, 0}, 1, {2, 32, 1}, &n_source, NULL, 0},
      {.data = index, {CUPLUG_CPU, 0}, 1, {0, 32, 1}, &n_index, NULL, 0},
      {.data = out, {CUPLUG_CPU, 0}, 1, {2, 32, 1}, &n_index, NULL, 0},
  };
  const cuplug_argument args[] = {cuplug_array(&tensors[0]), cuplug_array(&tensors[1]),
                                  cuplug_absent(), cuplug_array(&tensors[2])};
  cuplug_operator *hello, *gather;
  cuplug_error error;
  if (cuplug_find("hello", &hello, &error) || cuplug_invoke(hello, NULL, 0, NULL, &error) ||
      cuplug_find("gather", &gather, &error) || cuplug_invoke(gather, args, 4, NULL, &error)) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  printf("gather: %g %g %g\n", out[0], out[1], out[2]);
  return 0;
}
