/* sanitizers: address,undefined | thread */
/* fake-cuda */
/* ldflags: -ldl -Wl,--wrap=malloc,--wrap=calloc */
/* SPDX-License-Identifier: Apache-2.0 */
/* Complete calls on the fake driver: offloaded host arrays, device arrays, faults, errors, each
 * driver call failing in turn. The plugin is compiled in; its kernels run when they are waited for.
 */
#include "cuda/calls.h"
#include "cuda/driver.h"
#include "cuda/gpus.h"
#include "cuda/stream.h"
#include "fake_operators.h"

#include <pthread.h>

static _Atomic uint64_t failing_bytes = UINT64_MAX; /* allocations of more fail */

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes) { return bytes > failing_bytes ? NULL : __real_malloc(bytes); }

void *__real_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes) {
  return n * bytes > failing_bytes ? NULL : __real_calloc(n, bytes);
}

static void triple_staged(int64_t n, cuplug_device device, cuplug_error *mine) {
  double *x = malloc(((size_t)n + 1) * sizeof *x), *out = malloc(((size_t)n + 1) * sizeof *out);
  CHECK(x && out);
  for (int64_t i = 0; i <= n; i++) x[i] = (double)i, out[i] = -1;
  cuplug_argument args[] = {on_host(CUPLUG_FLOAT64, x, &n), on_host(CUPLUG_FLOAT64, out, &n)};
  CHECK(!invoke_on(device, find("triple"), args, 2, mine));
  for (int64_t i = 0; i < n; i++) CHECK(out[i] == 3.0 * (double)i);
  CHECK(out[n] == -1);
  free(x);
  free(out);
}

static void staged(void) {
  static const int64_t sizes[] = {0, 1, 1000, 2500000};
  for (int i = 0; i < 4; i++) triple_staged(sizes[i], i % 2 ? gpu1 : gpu0, &error);
  check_all_given_back();
}

/* Memory between the elements of a strided output does not change. */
static void staged_strides(void) {
  float x[] = {1, 2, 3, 4, 5, 6}, out[] = {-1, -2, -3, -4, -5, -6, -7, -8};
  const float wanted[] = {15, -2, -3, 9, -5, -6, 3, -8};
  int64_t n = 3, backwards = -2, by_three = 3;
  cuplug_argument args[] = {on_host(CUPLUG_FLOAT32, x + 4, &n), on_host(CUPLUG_FLOAT32, out, &n)};
  args[0].tensor.strides = &backwards, args[1].tensor.strides = &by_three;
  CHECK(!invoke_on(gpu0, find("triple_strided"), args, 2, &error));
  CHECK(!memcmp(out, wanted, sizeof out));
  check_all_given_back();
}

/* Writes like another thread of the caller, while the call runs. */
static float between[2][12];

static int advance_meanwhile(const cuplug_call *call) {
  for (int i = 0; i < 12; i++)
    if (i % 3) between[0][i] = between[1][i] = 1000 + (float)i;
  return advance_cuda(call);
}

/* Values stored between the elements during the call are kept. */
static void staged_between(void) {
  float *x = between[0], *out = between[1];
  int64_t n = 4, by_three = 3, backwards = -3;
  cuplug_argument args[] = {on_host(CUPLUG_FLOAT32, x, &n), cuplug_float(0.5),
                            on_host(CUPLUG_FLOAT32, out + 9, &n)};
  for (int i = 0; i < 4; i++) x[3 * i] = (float)i;
  args[0].tensor.strides = &by_three, args[2].tensor.strides = &backwards;
  find("advance")->overloads[0].cuda = advance_meanwhile;
  CHECK(!invoke_on(gpu0, find("advance"), args, 3, &error));
  for (int i = 0; i < 12; i++) {
    CHECK(x[i] == (i % 3 ? 1000 + (float)i : (float)(i / 3) + 0.5f));
    CHECK(out[i] == (i % 3 ? 1000 + (float)i : (float)(3 - i / 3)));
  }
  check_all_given_back();
}

/* The output of a large call runs out of memory after seven chunks of the in-out array were copied
 * back: it must not be changed twice. */
static void received_once(void) {
  enum { N = 400000 };
  static float x[2 * N], out[N];
  int64_t n = N, by_two = 2;
  cuplug_argument args[] = {on_host(CUPLUG_FLOAT32, x, &n), cuplug_float(0.5),
                            on_host(CUPLUG_FLOAT32, out, &n)};
  args[0].tensor.strides = &by_two;
  for (int i = 0; i < N; i++) x[2 * i] = (float)i;
  CHECK(invoke_on(gpu0, find("advance"), args, 3, &error) == CUPLUG_ERROR_MEMORY);
  CHECK(!strcmp(error.message, "advance: copying to the host: CUDA ran out of memory"));
  for (int i = 0; i < N; i++) CHECK(x[2 * i] == (float)i + 0.5f);
  CHECK(!invoke_on(gpu0, find("advance"), args, 3, &error));
  for (int i = 0; i < N; i++) CHECK(x[2 * i] == (float)i + 1 && out[i] == (float)i + 0.5f);
  check_all_given_back();
}

static void staged_in_place(void) {
  float x[] = {1, 2, 3};
  int64_t n = 3;
  cuplug_argument args[] = {on_host(CUPLUG_FLOAT32, x, &n), cuplug_float(0.5)};
  CHECK(!invoke_on(gpu0, find("increase"), args, 2, &error));
  CHECK(x[0] == 1.5f && x[1] == 2.5f && x[2] == 3.5f);
  check_all_given_back();
}

static int allocate_output(void *user, cuplug_frame *frame, uint32_t tensor, cuplug_error *mine) {
  (void)mine;
  CHECK(frame->tensors[tensor].shape[0] == 3);
  frame->tensors[tensor].data = user;
  return CUPLUG_OK;
}

static int allocate_nothing(void *user, cuplug_frame *frame, uint32_t tensor, cuplug_error *mine) {
  (void)user, (void)frame, (void)tensor, (void)mine;
  return CUPLUG_OK;
}

static void staged_unknown_size(void) {
  float x[] = {1, -2, 3, 0, 5}, out[3];
  int64_t n = 5;
  cuplug_frame frame;
  cuplug_argument args[] = {on_host(CUPLUG_FLOAT32, x, &n)};
  CHECK(!cuplug_bind(find("positive"), args, 1, &frame, &error));
  frame.device = gpu0, frame.allocate = allocate_output, frame.user = out;
  CHECK(!cuplug_run(&frame, &error));
  CHECK(frame.offloaded && out[0] == 1 && out[1] == 3 && out[2] == 5);
  CHECK(!cuplug_bind(find("positive"), args, 1, &frame, &error));
  frame.device = gpu0, frame.allocate = allocate_nothing;
  CHECK(cuplug_run(&frame, &error) == CUPLUG_ERROR_VALUE);
  CHECK_MESSAGE(&error, "positive: output 0: frame.allocate returned CUPLUG_OK without memory");
  CHECK(!cuplug_bind(find("positive"), args, 1, &frame, &error));
  frame.device = gpu0;
  CHECK(cuplug_run(&frame, &error) == CUPLUG_ERROR_VALUE);
  CHECK_MESSAGE(&error, "positive: this operator's output has a size known only after the run");
  check_all_given_back();
}

/* Picks with one index from ten values; `index` is in the same memory as the result. */
static int pick_staged(int64_t index, cuplug_error *mine) {
  static float source[10] = {0, 10, 20, 30, 40, 50, 60, 70, 80, 90};
  float out[2] = {-1, -1};
  int64_t indices[2] = {1, index}, n_source = 10, n = 2;
  cuplug_argument args[] = {on_host(CUPLUG_FLOAT32, source, &n_source),
                            on_host(CUPLUG_INT64, indices, &n), on_host(CUPLUG_FLOAT32, out, &n)};
  int status = invoke_on(gpu0, find("pick"), args, 3, mine);
  CHECK(status || (out[0] == 10 && out[1] == source[index]));
  return status;
}

static void staged_fault(void) {
  for (int i = 0; i < 3; i++) {
    CHECK(pick_staged(10 + i, &error) == CUPLUG_ERROR_INDEX);
    CHECK_MESSAGE(&error, "pick: index: index ");
    CHECK_MESSAGE(&error, " at position 1 is out of bounds for size 10");
    CHECK(!pick_staged(i, &error));
  }
  CHECK(!cuplug__calls_check(&error));
  check_all_given_back();
}

/* Device arrays: nothing is waited for, and a later call raises a fault. */
static void asynchronous(void) {
  float source[4] = {1, 2, 3, 4};
  int64_t indices[2] = {3, -7}, n_source = 4, n = 2;
  void *x, *index, *out;
  CHECK(!cuplug_allocate_device(0, sizeof source, NULL, &x, &error));
  CHECK(!cuplug_allocate_device(0, sizeof indices, NULL, &index, &error));
  CHECK(!cuplug_allocate_device(0, 2 * sizeof(float), NULL, &out, &error));
  CHECK(!cuplug_copy_to_device(0, x, source, sizeof source, NULL, &error));
  CHECK(!cuplug_copy_to_device(0, index, indices, sizeof indices, NULL, &error));
  cuplug_argument args[] = {array(CUPLUG_FLOAT32, x, &n_source, gpu0),
                            array(CUPLUG_INT64, index, &n, gpu0),
                            array(CUPLUG_FLOAT32, out, &n, gpu0)};
  long n_waits = fake_counts().n_synchronizations;
  CHECK(!cuplug_invoke(find("pick"), args, 3, NULL, &error));
  CHECK(!cuplug_invoke(find("pick"), args, 3, NULL, &error));
  CHECK(fake_counts().n_synchronizations == n_waits);
  CHECK(cuplug_copy_to_host(0, source, out, sizeof(float), NULL, &error) == CUPLUG_ERROR_INDEX);
  CHECK_MESSAGE(&error, "pick: index: index -7 at position 1 is out of bounds for size 4");
  CHECK(cuplug_invoke(find("pick"), args, 3, NULL, &error) == CUPLUG_ERROR_INDEX);
  CHECK(!cuplug_invoke(find("pick"), args, 3, NULL, &error));
  const cuplug__context context = cuplug__cuda_enter(0, &error);
  CHECK(!context.status);
  CHECK(!cuplug__stream_synchronize(CUPLUG__STREAM(NULL), &error));
  cuplug__cuda_leave(&context);
  float host = 1, tripled = 0;
  int64_t one = 1;
  cuplug_argument other[] = {on_host(CUPLUG_FLOAT32, &host, &one),
                             on_host(CUPLUG_FLOAT32, &tripled, &one)};
  CHECK(invoke_on(gpu0, find("triple"), other, 2, &error) == CUPLUG_ERROR_INDEX);
  CHECK_MESSAGE(&error, "pick: index: index -7");
  CHECK(!invoke_on(gpu0, find("triple"), other, 2, &error) && tripled == 3);
  CHECK(!cuplug_copy_to_host(0, source, out, sizeof(float), NULL, &error) && source[0] == 4);
  void *all[] = {x, index, out};
  for (int i = 0; i < 3; i++) CHECK(!cuplug_free_device(0, all[i], NULL, &error));
  check_all_given_back();
}

static void out_of_memory(void) {
  int64_t n = 1000, index[1000] = {0};
  float source[1000] = {0}, out[1000];
  cuplug_argument args[] = {on_host(CUPLUG_FLOAT32, source, &n), on_host(CUPLUG_INT64, index, &n),
                            on_host(CUPLUG_FLOAT32, out, &n)};
  for (int i = 0; i < 10; i++) {
    CHECK(invoke_on(gpu0, find("pick"), args, 3, &error) == CUPLUG_ERROR_MEMORY);
    CHECK_MESSAGE(&error, "pick: out of device memory: requested 8000 bytes (0.00 GiB) on cuda:0");
    CHECK_MESSAGE(&error, "its signature has no loop dimensions");
  }
  check_all_given_back();
  triple_staged(1000, gpu0, &error); /* in parts */
  check_all_given_back();
}

/* The description of a call's arrays takes a few KiB; running it in slices takes 10 KiB or more. */
static void no_heap(void) {
  enum { N = 2000000 };
  int64_t n = N;
  double *x = calloc(N, sizeof *x), *out = malloc(N * sizeof *out);
  CHECK(x && out);
  cuplug_argument args[] = {on_host(CUPLUG_FLOAT64, x, &n), on_host(CUPLUG_FLOAT64, out, &n)};
  x[N - 1] = 5;
  failing_bytes = 10000;
  CHECK(!invoke_on(gpu0, find("triple"), args, 2, &error) && out[N - 1] == 15);
  CHECK(fake_counts().n_streams == 1); /* whole */
  failing_bytes = 1000;
  CHECK(invoke_on(gpu0, find("triple"), args, 2, &error) == CUPLUG_ERROR_MEMORY);
  CHECK(!strcmp(error.message, "triple: out of memory while describing a call's arrays"));
  failing_bytes = UINT64_MAX;
  free(x);
  free(out);
  check_all_given_back();
}

static int run_on_gpu(const char *name) {
  float x = 1, out = 0;
  int64_t n = 1;
  cuplug_argument args[] = {on_host(CUPLUG_FLOAT32, &x, &n), on_host(CUPLUG_FLOAT32, &out, &n)};
  return invoke_on(gpu0, find(name), args, 2, &error);
}

static void failing_entries(void) {
  for (int i = 0; i < 10; i++) {
    CHECK(run_on_gpu("refuse") == CUPLUG_ERROR_VALUE);
    CHECK_MESSAGE(&error, "refuse: x: got this, expected that");
  }
  CHECK(run_on_gpu("too_new") == CUPLUG_ERROR_CUDA);
  CHECK_MESSAGE(&error, "too_new: kernel launch: CUDA error 35; the plugin was built with a newer "
                        "CUDA than the driver supports (13.0)");
  CHECK(fake_counts().n_streams == 1);
  check_all_given_back();
}

static void crash(void) {
  triple_staged(10, gpu0, &error);
  CHECK(run_on_gpu("crash") == CUPLUG_ERROR_CUDA && error.cuda_code == 700);
  CHECK_MESSAGE(&error, "crash: ");
  CHECK_MESSAGE(&error, "first seen after operator crash, before it triple: restart it");
  for (int i = 0; i < 2; i++) {
    CHECK(run_on_gpu("triple") == CUPLUG_ERROR_CUDA && error.cuda_code == 700);
    CHECK_MESSAGE(&error, "triple: CUDA failed before: CUDA error 700");
    CHECK_MESSAGE(&error, "first seen after operator crash, before it triple: restart it");
  }
}

static void wrong_architecture(void) {
  plugin.table.architectures = "1000,1200";
  CHECK(run_on_gpu("triple") == CUPLUG_ERROR_PLUGIN);
  CHECK_MESSAGE(&error, "triple: libfake_gpu.so has code for compute capability");
  CHECK_MESSAGE(&error, "cuda:0 has 9.0");
  plugin.table.architectures = "750,1000";
  CHECK(!run_on_gpu("triple"));
}

static void *stage_in_thread(void *argument) {
  cuplug_error mine;
  intptr_t k = (intptr_t)argument;
  for (int i = 0; i < 8; i++) {
    triple_staged(100 + k, k % 2 ? gpu1 : gpu0, &mine);
    CHECK(pick_staged(10 + k, &mine) == CUPLUG_ERROR_INDEX);
    char wanted[40];
    snprintf(wanted, sizeof wanted, "pick: index: index %d at", 10 + (int)k);
    CHECK_MESSAGE(&mine, wanted);
    CHECK(!pick_staged(k, &mine));
  }
  return NULL;
}

/* Each call has its own faults. */
static void threads(void) {
  pthread_t all[6];
  for (intptr_t i = 0; i < 6; i++)
    CHECK(!pthread_create(&all[i], NULL, stage_in_thread, (void *)i));
  for (int i = 0; i < 6; i++) CHECK(!pthread_join(all[i], NULL));
  check_all_given_back();
}

static void *stage_whole_and_sliced(void *unused) {
  triple_staged(1000, gpu0, &error);
  triple_staged(2500000, gpu0, &error);
  return unused;
}

/* A frame that is too large ends the process; sanitizers make all of them larger. */
static void small_stack(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  const size_t stack_bytes = 8 << 20;
#else
  const size_t stack_bytes = 64 << 10;
#endif
  pthread_attr_t attributes;
  pthread_t thread;
  CHECK(!pthread_attr_init(&attributes));
  CHECK(!pthread_attr_setstacksize(&attributes, stack_bytes));
  CHECK(!pthread_create(&thread, &attributes, stage_whole_and_sliced, NULL));
  CHECK(!pthread_join(thread, NULL));
  check_all_given_back();
}

/* One driver call fails, as set in the environment: an error that names the operator, nothing lost,
 * and the next call correct. A failed start is permanent; memory that cannot be freed is lost. */
static void one_failure(void) {
  char failing[80];
  snprintf(failing, sizeof failing, "%s", getenv("FAKE_CUDA_FAIL"));
  int status = pick_staged(3, &error);
  if (status) {
    CHECK_STATUS(&error, CUPLUG_ERROR_CUDA);
    CHECK_MESSAGE(&error, "pick: ");
    CHECK_MESSAGE(&error, "CUDA error 999");
  }
  CHECK(!status || !cuplug__driver_ready() || !pick_staged(4, &error));
  if (!cuplug__driver_ready() || strstr(failing, "cuMemFreeAsync")) return;
  unsetenv("FAKE_CUDA_FAIL");
  check_all_given_back();
}

static void each_failure(void) {
  static const char *const functions[] = {
#define CUPLUG__X(function, symbol, parameters) #function,
      CUPLUG__DRIVER_LIST(CUPLUG__X)
#undef CUPLUG__X
  };
  char failing[80];
  int n_wrong = 0;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    for (int n = 1; n <= 4; n++) {
      snprintf(failing, sizeof failing, "FAKE_CUDA_FAIL=%s:%d:999", functions[i], n);
      scenario one = {"one_failure", one_failure, {failing, "FAKE_CUDA_LAZY=1"}};
      if (run_again(&one)) n_wrong++, fprintf(stderr, "with %s\n", failing);
    }
  }
  CHECK(n_wrong == 0);
}

static const scenario scenarios[] = {
    {"staged", staged, {NULL}},
    {"staged", staged, {"FAKE_CUDA_LAZY=1"}},
    {"staged_strides", staged_strides, {"FAKE_CUDA_LAZY=1"}},
    {"staged_between", staged_between, {"FAKE_CUDA_LAZY=1"}},
    {"received_once", received_once, {"FAKE_CUDA_FAIL=cuMemcpyDtoHAsync:8:2", "FAKE_CUDA_LAZY=1"}},
    {"staged_in_place", staged_in_place, {"FAKE_CUDA_LAZY=1"}},
    {"staged_unknown_size", staged_unknown_size, {"FAKE_CUDA_LAZY=1"}},
    {"staged_fault", staged_fault, {"FAKE_CUDA_LAZY=1"}},
    {"asynchronous", asynchronous, {"FAKE_CUDA_LAZY=1"}},
    {"out_of_memory", out_of_memory, {"FAKE_CUDA_MEMORY_BYTES=10000"}},
    {"no_heap", no_heap, {"FAKE_CUDA_LAZY=1"}},
    {"failing_entries", failing_entries, {NULL}},
    {"crash", crash, {"FAKE_CUDA_LAZY=1"}},
    {"wrong_architecture", wrong_architecture, {NULL}},
    {"small_stack", small_stack, {"FAKE_CUDA_LAZY=1"}},
    {"threads", threads, {NULL}},
    {"threads", threads, {"FAKE_CUDA_LAZY=1"}},
    {"each_failure", each_failure, {NULL}},
};

int main(int argc, char **argv) {
  static const scenario one = {"one_failure", one_failure, {NULL}};
  make_operators();
  if (argc == 2 && !strcmp(argv[1], one.name)) return one.run(), 0;
  return run_scenarios(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
}
