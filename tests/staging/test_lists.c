/* sanitizers: address,undefined */
/* fake-cuda */
/* SPDX-License-Identifier: Apache-2.0 */
/* Lists whose arrays are changed in place, on the fake driver: short lists of host arrays are
 * offloaded, and lists of arrays on a GPU have any length. */
#include "fake_operators.h"

enum { N = 5, MANY = 200 };

static float values[MANY][3];
static int64_t sizes[MANY];
static cuplug_argument items[MANY];

static cuplug_argument host_list(uint32_t n) {
  for (uint32_t k = 0; k < n; k++) {
    sizes[k] = 3;
    for (int i = 0; i < 3; i++) values[k][i] = (float)(10 * k) + (float)i;
    items[k] = on_host(CUPLUG_FLOAT32, values[k], &sizes[k]);
  }
  return cuplug_list_argument(items, n);
}

static void staged(void) {
  const cuplug_argument list = host_list(N);
  CHECK(!invoke_on(gpu0, find("triple_all"), &list, 1, &error));
  for (int k = 0; k < N; k++)
    for (int i = 0; i < 3; i++) CHECK(values[k][i] == 3 * ((float)(10 * k) + (float)i));
  check_all_given_back();
}

static void refused(void) {
  static const char message[] = ": got lists of arrays on the host, expected arrays on cuda:0 (the "
                                "device of the call); copy them to the GPU first";
  char expected[200];
  const char *const names[] = {"triple_all", "triple_each"};
  for (int k = 0; k < 2; k++) {
    const cuplug_argument list = host_list(k ? N : MANY);
    snprintf(expected, sizeof expected, "%s%s", names[k], message);
    CHECK(invoke_on(gpu0, find(names[k]), &list, 1, &error) == CUPLUG_ERROR_VALUE);
    CHECK_MESSAGE(&error, expected);
    CHECK(values[1][1] == 11);
  }
  check_all_given_back();
}

static void on_gpu(void) {
  void *memory;
  CHECK(!cuplug_allocate_device(0, sizeof values, NULL, &memory, &error));
  cuplug_argument list = host_list(MANY);
  CHECK(!cuplug_copy_to_device(0, memory, values, sizeof values, NULL, &error));
  for (int k = 0; k < MANY; k++) {
    sizes[k] = k % 4;
    items[k] = array(CUPLUG_FLOAT32, (char *)memory + k * sizeof values[0], &sizes[k], gpu0);
  }
  CHECK(!cuplug_invoke(find("triple_each"), &list, 1, NULL, &error));
  CHECK(!cuplug_copy_to_host(0, values, memory, sizeof values, NULL, &error));
  for (int k = 0; k < MANY; k++)
    for (int i = 0; i < 3; i++)
      CHECK(values[k][i] == (i < k % 4 ? 3 : 1) * ((float)(10 * k) + (float)i));
  items[7].tensor.device = gpu1;
  CHECK(cuplug_invoke(find("triple_each"), &list, 1, NULL, &error) == CUPLUG_ERROR_VALUE);
  CHECK_MESSAGE(&error, "triple_each: xs: item 7: got an array on cuda:1, expected cuda:0 (as xs)");
  CHECK(!cuplug_free_device(0, memory, NULL, &error));
  check_all_given_back();
}

static const scenario scenarios[] = {{"staged", staged, {NULL}},
                                     {"staged", staged, {"FAKE_CUDA_LAZY=1"}},
                                     {"refused", refused, {NULL}},
                                     {"on_gpu", on_gpu, {"FAKE_CUDA_LAZY=1"}}};

int main(int argc, char **argv) {
  make_operators();
  return run_scenarios(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
}
