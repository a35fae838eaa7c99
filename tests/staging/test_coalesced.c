/* sanitizers: address,undefined */
/* fake-cuda */
/* ldflags: -ldl */
/* SPDX-License-Identifier: Apache-2.0 */
/* Small calls on the fake driver: all arrays in one block, pinned ones by separate copies. */
#include "fake_operators.h"

#include <runtime/gpus.h>

/* The copy out runs out of memory: nothing was copied, and nothing is run again. */
static void received_never(void) {
  float x[] = {1, 2, 3, 4}, out[4] = {7, 7, 7, 7};
  int64_t n = 4;
  cuplug_argument args[] = {on_host(CUPLUG_FLOAT32, x, &n), cuplug_float(0.5),
                            on_host(CUPLUG_FLOAT32, out, &n)};
  CHECK(invoke_on(gpu0, find("advance"), args, 3, &error) == CUPLUG_ERROR_MEMORY);
  CHECK(!strcmp(error.message, "advance: copying to the host: CUDA ran out of memory"));
  for (int i = 0; i < 4; i++) CHECK(x[i] == (float)i + 1 && out[i] == 7);
  const long n_waits = fake_counts().n_synchronizations;
  CHECK(!invoke_on(gpu0, find("advance"), args, 3, &error));
  CHECK(fake_counts().n_synchronizations - n_waits <= 2); /* for the results, and for the channel */
  for (int i = 0; i < 4; i++) CHECK(x[i] == (float)i + 1.5f && out[i] == (float)i + 1);
  check_all_given_back();
}

static float *make_pinned(int64_t n) {
  void *memory;
  CHECK(!cuplug_allocate_shared(0, 0, (uint64_t)n * sizeof(float), &memory, &error));
  for (int64_t i = 0; i < n; i++) ((float *)memory)[i] = (float)i;
  return memory;
}

/* Sizes around the limits of the query for pinned memory and of small calls; the last in slices. */
static void pinned(void) {
  static const int64_t sizes[] = {1, 8191, 8192, 100000, 900000, 3000000};
  for (int k = 0; k < 6; k++) {
    int64_t n = sizes[k];
    float *x = make_pinned(n), *out = make_pinned(n + 1),
          *other = malloc((size_t)n * sizeof *other);
    CHECK(other);
    cuplug_argument args[] = {on_host(CUPLUG_FLOAT32, x, &n), on_host(CUPLUG_FLOAT32, out, &n)};
    CHECK(!invoke_on(gpu0, find("triple"), args, 2, &error));
    for (int64_t i = 0; i < n; i++) CHECK(out[i] == 3 * (float)i);
    CHECK(out[n] == (float)n);
    args[1] = on_host(CUPLUG_FLOAT32, other, &n);
    CHECK(!invoke_on(gpu1, find("triple"), args, 2, &error));
    CHECK(!memcmp(other, out, (size_t)n * sizeof *other));
    CHECK(!cuplug_free_shared(0, 0, x, &error) && !cuplug_free_shared(0, 0, out, &error));
    free(other);
  }
  check_all_given_back();
}

/* A channel keeps the memory of the largest small call, which later calls use. */
static void one_block(void) {
  static const int64_t sizes[] = {0, 10, 100000, 5, 0, 20000, 100000};
  for (int k = 0; k < 7; k++) {
    int64_t n = sizes[k];
    float *x = make_pinned(n + 1), *out = malloc((size_t)(n + 1) * sizeof *out);
    CHECK(out);
    cuplug_argument args[] = {on_host(CUPLUG_FLOAT32, x, &n), on_host(CUPLUG_FLOAT32, out, &n)};
    CHECK(!invoke_on(gpu0, find("triple"), args, 2, &error));
    for (int64_t i = 0; i < n; i++) CHECK(out[i] == 3 * (float)i);
    CHECK(!cuplug_free_shared(0, 0, x, &error));
    free(out);
    CHECK(fake_counts().n_allocations == 1);
  }
  check_all_given_back();
}

/* In-out arrays are unchanged, pinned or not. */
static void failing_in_place(void) {
  int64_t n = 20000;
  float *x = make_pinned(n);
  cuplug_argument args[] = {on_host(CUPLUG_FLOAT32, x, &n), cuplug_float(0.5)};
  CHECK(invoke_on(gpu0, find("increase"), args, 2, &error) == CUPLUG_ERROR_CUDA);
  for (int64_t i = 0; i < n; i++) CHECK(x[i] == (float)i);
  CHECK(!invoke_on(gpu0, find("increase"), args, 2, &error));
  for (int64_t i = 0; i < n; i++) CHECK(x[i] == (float)i + 0.5f);
  CHECK(!cuplug_free_shared(0, 0, x, &error));
  check_all_given_back();
}

static const scenario scenarios[] = {
    {"received_never",
     received_never,
     {"FAKE_CUDA_FAIL=cuMemcpyDtoHAsync:1:2", "FAKE_CUDA_LAZY=1"}},
    {"pinned", pinned, {"FAKE_CUDA_LAZY=1"}},
    {"one_block", one_block, {"FAKE_CUDA_LAZY=1"}},
    {"one_block", one_block, {"FAKE_CUDA_FAIL=cuMemAllocFromPoolAsync:2:2"}},
    {"failing_in_place",
     failing_in_place,
     {"FAKE_CUDA_FAIL=cuStreamSynchronize:1:999", "FAKE_CUDA_LAZY=1"}},
};

int main(int argc, char **argv) {
  make_operators();
  return run_scenarios(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
}
