/* sanitizers: address,undefined | thread */
/* fake-cuda */
/* ldflags: -ldl */
/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that are offloaded to the fake GPU in slices: all elements, faults with their positions,
 * errors at any driver call, arrays larger than the GPU's memory. */
#include "cuda/calls.h"
#include "fake_operators.h"

#include <pthread.h>

/* x in float64, y and the result in float32: slices of each are of different sizes. */
typedef struct arrays {
  int64_t n;
  double *x;
  float *y, *out;
} arrays;

UNSEEN static arrays make_arrays(int64_t n) {
  arrays a = {n, malloc((size_t)n * sizeof(double)), malloc((size_t)n * sizeof(float)),
              malloc((size_t)(n + 1) * sizeof(float))};
  CHECK(a.x && a.y && a.out);
  for (int64_t i = 0; i < n; i++) a.x[i] = (double)(i % 1000003), a.y[i] = 1 << i % 3;
  a.out[n] = -1;
  return a;
}

static void free_arrays(arrays *a) {
  free(a->x);
  free(a->y);
  free(a->out);
}

static int divide(const arrays *a, int with_y, cuplug_device device, cuplug_error *mine) {
  int64_t n = a->n;
  cuplug_argument args[] = {on_host(CUPLUG_FLOAT64, a->x, &n), on_host(CUPLUG_FLOAT32, a->y, &n),
                            on_host(CUPLUG_FLOAT32, a->out, &n)};
  if (!with_y) args[1] = cuplug_absent();
  return invoke_on(device, find("divide"), args, 3, mine);
}

UNSEEN static void make_quotients(float *wanted, const arrays *a, int with_y) {
  for (int64_t i = 0; i < a->n; i++) wanted[i] = (float)a->x[i] / (with_y ? a->y[i] : 1);
  wanted[a->n] = -1;
}

static void check_quotients(const arrays *a, int with_y) {
  const size_t bytes = (size_t)(a->n + 1) * sizeof *a->out;
  float *wanted = malloc(bytes);
  CHECK(wanted);
  make_quotients(wanted, a, with_y);
  CHECK(!memcmp(a->out, wanted, bytes));
  free(wanted);
}

static void divide_well(int64_t n, int with_y, cuplug_device device, cuplug_error *mine) {
  arrays a = make_arrays(n);
  CHECK(!divide(&a, with_y, device, mine));
  check_quotients(&a, with_y);
  free_arrays(&a);
}

/* 16 bytes per element: slices from 1 Mi elements on, of less than 512 Ki elements each. */
static void sizes(void) {
  static const int64_t wanted[] = {1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 4321000};
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i += step_of_many())
    divide_well(wanted[i], 1, i % 2 ? gpu1 : gpu0, &error);
  divide_well(2 << 20, 0, gpu0, &error);
  check_all_given_back();
}

/* 144 MiB through 100 MiB. */
static void larger_than_memory(void) {
  divide_well(9 << 20, 1, gpu0, &error);
  check_all_given_back();
}

static void many_dimensions(void) {
  int64_t shape[] = {2, 1024, 1, 1024}, n = 2 << 20;
  arrays a = make_arrays(n);
  cuplug_argument args[] = {on_host(CUPLUG_FLOAT64, a.x, shape),
                            on_host(CUPLUG_FLOAT32, a.y, shape),
                            on_host(CUPLUG_FLOAT32, a.out, shape)};
  for (int i = 0; i < 3; i++) args[i].tensor.ndim = 4;
  CHECK(!invoke_on(gpu0, find("divide"), args, 3, &error));
  check_quotients(&a, 1);
  free_arrays(&a);
  check_all_given_back();
}

/* Of faults in several slices, the first is raised, with its position in the whole array. */
static void faults(void) {
  static const int64_t positions[] = {0, 5, (512 << 10) - 1, 512 << 10, 1333333, 1999999};
  arrays a = make_arrays(2000000);
  char wanted[80];
  for (int k = 5; k >= 0; k -= step_of_many()) {
    a.y[positions[k]] = 0;
    CHECK(divide(&a, 1, gpu0, &error) == CUPLUG_ERROR_INDEX);
    snprintf(wanted, sizeof wanted, "divide: y: got index 0 at position %lld, expected",
             (long long)positions[k]);
    CHECK_MESSAGE(&error, wanted);
  }
  for (int k = 0; k < 6; k++) a.y[positions[k]] = 2;
  CHECK(!divide(&a, 1, gpu0, &error));
  check_quotients(&a, 1);
  CHECK(!cuplug__calls_check(&error));
  free_arrays(&a);
  check_all_given_back();
}

/* 16 bytes per element: 32 MiB are enough for two GPUs. */
static void on_all_gpus(void) {
  const cuplug_device all = {CUPLUG_CUDA, CUPLUG_ALL_GPUS};
  const int64_t n = (2 << 20) + 5;
  arrays a = make_arrays(n);
  CHECK(!divide(&a, 1, all, &error));
  check_quotients(&a, 1);
  CHECK(!divide(&a, 0, all, &error));
  a.y[n - 1] = a.y[n / 2 + 9] = 0;
  CHECK(divide(&a, 1, all, &error) == CUPLUG_ERROR_INDEX);
  char wanted[80];
  snprintf(wanted, sizeof wanted, "divide: y: got index 0 at position %lld, expected",
           (long long)n / 2 + 9);
  CHECK_MESSAGE(&error, wanted);
  free_arrays(&a);
  check_all_given_back();
}

/* One driver call fails, as set in the environment; then the next call is correct. */
static void one_failure(void) {
  char failing[80];
  snprintf(failing, sizeof failing, "%s", getenv("FAKE_CUDA_FAIL"));
  arrays a = make_arrays((1 << 20) + 5);
  int status = divide(&a, 1, gpu0, &error);
  if (status) {
    CHECK_MESSAGE(&error, "divide: ");
    CHECK_MESSAGE(&error, "CUDA error 999");
    CHECK(!divide(&a, 1, gpu0, &error));
  }
  check_quotients(&a, 1);
  free_arrays(&a);
  unsetenv("FAKE_CUDA_FAIL");
  if (!strstr(failing, "cuMemFreeAsync")) check_all_given_back();
}

static void each_failure(void) {
  static const char *const functions[] = {
      "cuMemAllocFromPoolAsync", "cuMemFreeAsync",     "cuMemHostAlloc",     "cuStreamCreate",
      "cuEventCreate",           "cuEventRecord",      "cuEventSynchronize", "cuMemcpyHtoDAsync",
      "cuMemcpyDtoHAsync",       "cuStreamSynchronize"};
  static const int calls[] = {1, 4};
  char failing[80];
  int n_wrong = 0;
  for (size_t i = 0; i < 2 * sizeof functions / sizeof *functions; i += step_of_many()) {
    snprintf(failing, sizeof failing, "FAKE_CUDA_FAIL=%s:%d:999", functions[i / 2], calls[i % 2]);
    scenario one = {"one_failure", one_failure, {failing, "FAKE_CUDA_LAZY=1"}};
    if (run_again(&one)) n_wrong++, fprintf(stderr, "with %s\n", failing);
  }
  CHECK(n_wrong == 0);
}

static int end_early(void *user, uint64_t done_bytes, uint64_t total_bytes, cuplug_error *mine) {
  CHECK(done_bytes <= total_bytes && total_bytes > 0);
  ++*(int *)user;
  mine->status = CUPLUG_ERROR_VALUE;
  snprintf(mine->message, sizeof mine->message, "enough");
  return CUPLUG_ERROR_VALUE;
}

/* Every other number, from the last one on, at odd addresses; one array for all rows is broadcast.
 * A report may end the call. */
static void strided(void) {
  int64_t n = (1 << 20) + 77, one = 1, backwards = -2;
  char *raw = malloc((size_t)n * 16 + 1);
  double *out = malloc((size_t)n * sizeof *out), eight = 8;
  CHECK(raw && out);
  for (int64_t i = 0; i < 2 * n; i++) memcpy(raw + 1 + 8 * i, &(double){(double)i}, 8);
  cuplug_argument args[] = {on_host(CUPLUG_FLOAT64, raw + 1 + 8 * (2 * n - 1), &n),
                            on_host(CUPLUG_FLOAT64, out, &n)};
  args[0].tensor.strides = &backwards, args[0].flags = CUPLUG_MISALIGNED;
  CHECK(!invoke_on(gpu0, find("triple"), args, 2, &error));
  for (int64_t i = 0; i < n; i++) CHECK(out[i] == 3.0 * (double)(2 * (n - i) - 1));
  args[0] = on_host(CUPLUG_FLOAT64, &eight, &one);
  args[0].flags = CUPLUG_UNALIGNED_STRIDES | CUPLUG_MISALIGNED;
  args[1].tensor.shape = &one;
  CHECK(invoke_on(gpu0, find("triple"), args, 2, &error) == CUPLUG_ERROR_VALUE);
  free(raw);
  free(out);
  check_all_given_back();
}

static void reported(void) {
  int n_reports = 0;
  uint64_t bytes = ((uint64_t)1 << 28) / (step_of_many() == 1 ? 1 : 8);
  char *from = calloc(bytes, 1);
  void *to;
  CHECK(from && !cuplug_allocate_device(0, bytes, NULL, &to, &error));
  for (int i = 0; i < 50 && !n_reports; i++) {
    int status =
        cuplug_copy_with_progress(0, 0, to, from, bytes, NULL, end_early, &n_reports, &error);
    CHECK(status == (n_reports ? CUPLUG_ERROR_VALUE : CUPLUG_OK));
  }
  if (n_reports) CHECK_MESSAGE(&error, "enough");
  CHECK(!cuplug_copy_to_device(0, to, from, bytes, NULL, &error));
  CHECK(!cuplug_free_device(0, to, NULL, &error));
  free(from);
  check_all_given_back();
}

/* Without loop dimensions, in-out arrays are copied back completely or not at all. */
static void in_place(void) {
  int64_t n = 5 << 20;
  float *x = malloc((size_t)n * sizeof *x);
  CHECK(x);
  for (int64_t i = 0; i < n; i++) x[i] = 1;
  cuplug_argument args[] = {on_host(CUPLUG_FLOAT32, x, &n), cuplug_float(0.5)};
  CHECK(invoke_on(gpu0, find("increase"), args, 2, &error) == CUPLUG_ERROR_CUDA);
  for (int64_t i = 0; i < n; i++) CHECK(x[i] == 1);
  CHECK(!invoke_on(gpu0, find("increase"), args, 2, &error));
  for (int64_t i = 0; i < n; i++) CHECK(x[i] == 1.5f);
  free(x);
  check_all_given_back();
}

static void *divide_in_thread(void *argument) {
  cuplug_error mine;
  int k = (int)(intptr_t)argument;
  divide_well((1 << 20) + 1000 * k, k % 2, k % 2 ? gpu1 : gpu0, &mine);
  arrays a = make_arrays(1 << 20);
  char wanted[40];
  a.y[(1 << 20) - k - 1] = 0;
  CHECK(divide(&a, 1, gpu0, &mine) == CUPLUG_ERROR_INDEX);
  snprintf(wanted, sizeof wanted, "at position %d, expected", (1 << 20) - k - 1);
  CHECK_MESSAGE(&mine, wanted);
  free_arrays(&a);
  return NULL;
}

static void threads(void) {
  pthread_t all[4];
  for (intptr_t i = 0; i < 4; i++)
    CHECK(!pthread_create(&all[i], NULL, divide_in_thread, (void *)i));
  for (int i = 0; i < 4; i++) CHECK(!pthread_join(all[i], NULL));
  check_all_given_back();
}

/* A forked child cannot use CUDA, and does not wait for locks of the parent's workers. */
static void forked(void) {
  arrays a = make_arrays(1 << 20);
  CHECK(!divide(&a, 1, gpu0, &error));
  pid_t child = fork();
  if (child == 0) _exit(divide(&a, 1, gpu0, &error) == CUPLUG_ERROR_CUDA ? 0 : 1);
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(!divide(&a, 1, gpu0, &error));
  free_arrays(&a);
}

static const scenario scenarios[] = {
    {"sizes", sizes, {"FAKE_CUDA_LAZY=1"}},
    {"sizes", sizes, {"FAKE_CUDA_LAZY=1", "OMP_NUM_THREADS=1"}},
    {"larger_than_memory",
     larger_than_memory,
     {"FAKE_CUDA_MEMORY_BYTES=104857600", "FAKE_CUDA_LAZY=1"}},
    {"many_dimensions", many_dimensions, {"FAKE_CUDA_LAZY=1"}},
    {"strided", strided, {"FAKE_CUDA_LAZY=1"}},
    {"reported", reported, {NULL}},
    {"faults", faults, {"FAKE_CUDA_LAZY=1"}},
    {"on_all_gpus", on_all_gpus, {"FAKE_CUDA_LAZY=1"}},
    {"in_place", in_place, {"FAKE_CUDA_FAIL=cuLaunchKernelEx:1:999", "FAKE_CUDA_LAZY=1"}},
    {"each_failure", each_failure, {NULL}},
    {"threads", threads, {NULL}},
    {"threads", threads, {"FAKE_CUDA_LAZY=1"}},
    {"forked", forked, {NULL}},
};

int main(int argc, char **argv) {
  static const scenario one = {"one_failure", one_failure, {NULL}};
  make_operators();
  if (argc == 2 && !strcmp(argv[1], one.name)) return one.run(), 0;
  return run_scenarios(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
}
