/* sanitizers: address,undefined | thread */
/* fake-cuda */
/* ldflags: -ldl */
/* SPDX-License-Identifier: Apache-2.0 */
/* Starting the driver, contexts, streams, errors. */
#include "base/status.h"
#include "cuda/calls.h"
#include "cuda/driver.h"
#include "cuda/gpus.h"
#include "cuda/stream.h"
#include "scenarios.h"

#include <pthread.h>

static cuplug_error error;

static void check_start_fails(const char *sentence) {
  for (int i = 0; i < 2; i++) {
    memset(&error, 0, sizeof error);
    CHECK(cuplug__cuda_start(&error) == CUPLUG_ERROR_CUDA);
    CHECK_STATUS(&error, CUPLUG_ERROR_CUDA);
    CHECK_MESSAGE(&error, sentence);
  }
  int32_t n = 7;
  CHECK(cuplug_n_devices(&n, NULL, NULL) == CUPLUG_ERROR_CUDA);
  CHECK(n == 0);
  CHECK(!cuplug__driver_ready());
  CHECK(cuplug__calls_check(&error) == CUPLUG_OK);
}

static void no_driver(void) {
  if (dlopen("libcuda.so.1", RTLD_NOW)) return; /* a machine with a real one */
  check_start_fails("no NVIDIA driver: libcuda.so.1 was not found");
}

static void driver_too_old(void) {
  check_start_fails("the NVIDIA driver is too old: got CUDA 11.4, expected 12.0 or newer");
}

static void no_gpu(void) { check_start_fails("the NVIDIA driver found no GPU"); }
static void stub(void) { check_start_fails("the toolkit's stub"); }
static void mismatch(void) { check_start_fails("different versions"); }
static void not_ready(void) { check_start_fails("fabric manager"); }
static void forked_before(void) { check_start_fails("forked after CUDA started"); }

static void unknown_failure(void) {
  check_start_fails("starting the NVIDIA driver: CUDA error 999, CUDA_ERROR_FAKE_999");
  CHECK(error.cuda_code == 999);
}

static int n_logged(const char *function) {
  char line[128];
  int n = 0;
  FILE *file = fopen(getenv("FAKE_CUDA_LOG"), "r");
  CHECK(file);
  while (fgets(line, sizeof line, file))
    n += !strncmp(line, function, strlen(function)) && line[strlen(function)] == '\n';
  fclose(file);
  return n;
}

static void log_to_temporary_file(void) {
  static char name[] = "/tmp/fake-cuda-log-XXXXXX";
  int file = mkstemp(name);
  CHECK(file >= 0);
  close(file);
  setenv("FAKE_CUDA_LOG", name, 1);
}

static void *start_in_thread(void *status) {
  *(int *)status = cuplug__cuda_start(NULL);
  return NULL;
}

/* Several threads at once; then one atomic load. */
static void start_is_once(void) {
  pthread_t threads[4];
  int status[4];
  log_to_temporary_file();
  for (int i = 0; i < 4; i++)
    CHECK(!pthread_create(&threads[i], NULL, start_in_thread, &status[i]));
  for (int i = 0; i < 4; i++) {
    CHECK(!pthread_join(threads[i], NULL));
    CHECK(status[i] == CUPLUG_OK);
  }
  CHECK(n_logged("cuInit") == 1);
  CHECK(cuplug__n_gpus == 2);
  unlink(getenv("FAKE_CUDA_LOG"));
}

static void failure_is_remembered(void) {
  log_to_temporary_file();
  check_start_fails("found no GPU");
  CHECK(n_logged("cuInit") == 1);
  unlink(getenv("FAKE_CUDA_LOG"));
}

static int exit_status_of_child(void (*run)(void)) {
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    run();
    _exit(42);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void use_in_child(void) {
  uint8_t byte = 0;
  CHECK(cuplug__cuda_start(&error) == CUPLUG_ERROR_CUDA);
  CHECK_MESSAGE(&error, "CUDA cannot be used in a process forked after CUDA started");
  CHECK_MESSAGE(&error, "\"spawn\" or \"forkserver\"");
  CHECK(cuplug__cuda_enter(0, &error).status == CUPLUG_ERROR_CUDA);
  CHECK(cuplug_copy_to_host(0, &byte, &byte, 1, NULL, &error) == CUPLUG_ERROR_CUDA);
  CHECK(cuplug__calls_check(&error) == CUPLUG_OK);
}

static void fork_after_start(void) {
  CHECK(!cuplug__cuda_start(&error));
  CHECK(exit_status_of_child(use_in_child) == 42);
  CHECK(!cuplug__cuda_start(&error));
}

static void start_in_child(void) { CHECK(!cuplug__cuda_start(&error)); }

static void fork_before_start(void) {
  CHECK(exit_status_of_child(start_in_child) == 42);
  CHECK(!cuplug__cuda_start(&error));
}

static CUcontext current_context(void) {
  CUcontext context;
  CHECK(!cuplug__driver.cuCtxGetCurrent(&context));
  return context;
}

static void contexts(void) {
  CUcontext one;
  {
    CUPLUG__ENTERED outer = cuplug__cuda_enter(1, &error);
    one = current_context();
    CHECK(!outer.status && one == cuplug__gpus[1].context);
    {
      CUPLUG__ENTERED inner = cuplug__cuda_enter(0, &error);
      CHECK(inner.previous == one && current_context() == cuplug__gpus[0].context);
      CUPLUG__ENTERED none = cuplug__cuda_enter(2, &error);
      CHECK(none.status && current_context() == cuplug__gpus[0].context);
    }
    CHECK(current_context() == one);
    cuplug__context same = cuplug__cuda_enter(1, &error);
    cuplug__cuda_leave(&same);
    CHECK(current_context() == one);
  }
  CHECK(current_context() == NULL);
}

static void wrong_device(void) {
  cuplug_device_info info = {.struct_bytes = sizeof info};
  CHECK(cuplug__cuda_enter(2, &error).status == CUPLUG_ERROR_VALUE);
  CHECK_MESSAGE(&error, "device: got cuda:2, expected cuda:0 to cuda:1");
  CHECK(cuplug_query_device(-1, &info, &error) == CUPLUG_ERROR_VALUE);
  CHECK_MESSAGE(&error, "device: got cuda:-1, expected cuda:0 to cuda:1");
  CHECK(!current_context());
}

static void wrong_device_of_one(void) {
  void *pointer;
  CHECK(cuplug_allocate_device(1, 8, NULL, &pointer, &error) == CUPLUG_ERROR_VALUE);
  CHECK_MESSAGE(&error, "device: got cuda:1, expected cuda:0, the only GPU");
}

static void devices(void) {
  int32_t n = 0, version = 0;
  cuplug_device_info info = {.struct_bytes = sizeof info};
  CHECK(!cuplug_n_devices(&n, &version, &error));
  CHECK(n == 2 && version == 13000);
  CHECK(!cuplug_query_device(1, &info, &error));
  CHECK(!strcmp(info.name, "Fake GPU 1"));
  CHECK(info.compute_capability == 90 && info.memory_bytes == (uint64_t)1 << 30);
}

static void can_run(void) {
  static const struct {
    const char *architectures;
    int wanted;
  } cases[] = {{"900", 1},
               {"750,800", 1},
               {"1000", 0},
               {"1000,1200", 0},
               {"1000,900", 1},
               {"910", 0},
               {"", 1},
               {",,", 1},
               {"900a", 1},
               {"800a", 0},
               {"800a,750", 1},
               {"900f", 1},
               {"1000a, 890f", 0},
               {"1000f", 0},
               {"99999999999999999999", 0},
               {"text", 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int32_t capability = 0;
    CHECK(cuplug__cuda_can_run(0, cases[i].architectures, &capability) == cases[i].wanted);
    CHECK(capability == 90);
  }
  int32_t capability = 1;
  CHECK(!cuplug__cuda_can_run(2, "900", &capability));
  CHECK(capability == 0);
}

static void error_sentences(void) {
  CHECK(!cuplug__cuda_start(&error));
  CHECK(cuplug__cuda_fail(&error, 2, "doing") == CUPLUG_ERROR_MEMORY);
  CHECK_MESSAGE(&error, "doing: CUDA ran out of memory");
  CHECK(error.cuda_code == 0);
  CHECK(cuplug__cuda_fail(&error, 35, "doing") == CUPLUG_ERROR_CUDA);
  CHECK(error.cuda_code == 35);
  CHECK_MESSAGE(&error, "doing: CUDA error 35, CUDA_ERROR_FAKE_35: a fake error; the plugin was "
                        "built with a newer CUDA than the driver supports (13.0): update the "
                        "driver");
  cuplug__cuda_fail(&error, 209, "doing");
  CHECK_MESSAGE(&error, "; the plugin has no code for this GPU");
  CHECK(cuplug__cuda_fail(NULL, 1, "doing") == CUPLUG_ERROR_CUDA);
  CHECK(cuplug__cuda_check(&error, 0, "doing") == CUPLUG_OK);
  cuplug__cuda_fail(&error, 1, "doing");
  CHECK(!strstr(error.message, "restart"));
}

static int fault_kernel(const void *arguments) { return *(const int *)arguments; }

static void sticky_error(void) {
  static const char *const sentences[] = {
      "waiting for a stream: CUDA error 700, CUDA_ERROR_FAKE_700: an illegal memory access was "
      "encountered; CUDA can no longer be used in this process, first seen after operator "
      "scatter: restart it",
      "CUDA failed before: CUDA error 700", "first seen after operator scatter: restart it"};
  const int code = 700;
  CHECK(!cuplug__cuda_enter(0, &error).status);
  cuplug__cuda_note_operator("scatter");
  CHECK(!fake_launch(NULL, fault_kernel, &code, sizeof code));
  CHECK(cuplug_synchronize(0, NULL, 0, &error) == CUPLUG_ERROR_CUDA);
  CHECK(error.cuda_code == 700);
  CHECK_MESSAGE(&error, sentences[0]);
  cuplug__cuda_note_operator("another");
  for (int i = 0; i < 2; i++) {
    CHECK(cuplug__cuda_enter(1, &error).status == CUPLUG_ERROR_CUDA);
    CHECK(error.cuda_code == 700);
    CHECK_MESSAGE(&error, sentences[1]);
    CHECK_MESSAGE(&error, sentences[2]);
  }
}

/* A plugin's launch error, with the plugin's own message. */
static void sticky_error_of_plugin(void) {
  CHECK(!cuplug__cuda_start(&error));
  cuplug__fail(&error, CUPLUG_ERROR_CUDA, "kernel launch: CUDA error 1");
  cuplug__cuda_note_sticky(1, "harmless");
  cuplug__cuda_explain(&error, 1);
  CHECK(!strcmp(error.message, "kernel launch: CUDA error 1"));
  CHECK(!cuplug__cuda_enter(0, &error).status);
  cuplug__fail(&error, CUPLUG_ERROR_CUDA, "kernel launch: CUDA error 719");
  cuplug__cuda_note_sticky(719, "culprit");
  cuplug__cuda_note_sticky(716, "later");
  cuplug__cuda_explain(&error, 719);
  CHECK_MESSAGE(&error, "kernel launch: CUDA error 719; CUDA can no longer be used in this "
                        "process, first seen after operator culprit: restart it");
  CHECK(cuplug__cuda_enter(0, &error).status == CUPLUG_ERROR_CUDA);
  CHECK_MESSAGE(&error, "CUDA error 719");
}

static int add_kernel(const void *arguments) { return ++**(int *const *)arguments, 0; }

static CUstream make_stream(void) {
  CUstream stream;
  CHECK(!cuplug__driver.cuStreamCreate(&stream, CUPLUG__STREAM_NON_BLOCKING));
  return stream;
}

/* The fake driver is lazy here: a kernel runs when something waits for it. */
static void stream_order(void) {
  int n = 0, *pointer = &n;
  const cuplug__context context = cuplug__cuda_enter(0, &error);
  CHECK(!context.status);
  CUstream a = make_stream(), b = make_stream();
  CHECK(!fake_launch(a, add_kernel, &pointer, sizeof pointer));
  CHECK(!cuplug_synchronize(0, b, 0, &error));
  CHECK(n == 0);
  CHECK(!cuplug_order_streams(0, b, a, &error));
  CHECK(!cuplug_order_streams(0, b, b, &error));
  CHECK(n == 0);
  CHECK(!cuplug_synchronize(0, b, 0, &error));
  CHECK(n == 1);
  CHECK(!fake_launch(NULL, add_kernel, &pointer, sizeof pointer));
  CHECK(!cuplug_order_streams(0, a, NULL, &error));
  CHECK(!cuplug_synchronize(0, a, 0, &error));
  CHECK(n == 2);
  CHECK(!fake_launch(b, add_kernel, &pointer, sizeof pointer));
  CHECK(!cuplug_synchronize(0, NULL, 1, &error));
  CHECK(n == 3);
  CHECK(!cuplug__driver.cuStreamDestroy(a) && !cuplug__driver.cuStreamDestroy(b));
  cuplug__cuda_leave(&context);
  CHECK(fake_counts().n_events == 1 && fake_counts().n_misuses == 0);
}

static void *order_often(void *unused) {
  cuplug_error mine;
  for (int i = 0; i < 200; i++)
    CHECK(!cuplug_order_streams(i & 1, (void *)2, NULL, &mine) && !mine.status);
  return unused;
}

/* A few are cached, for any number of threads. */
static void events_are_used_again(void) {
  pthread_t threads[8];
  CHECK(order_often(NULL) == NULL && fake_counts().n_events == 2);
  for (int i = 0; i < 8; i++) CHECK(!pthread_create(&threads[i], NULL, order_often, NULL));
  for (int i = 0; i < 8; i++) CHECK(!pthread_join(threads[i], NULL));
  CHECK(fake_counts().n_events <= 8 && fake_counts().n_misuses == 0);
}

static void stream_order_fails(void) {
  CHECK(!cuplug__cuda_enter(0, &error).status);
  CUstream stream = make_stream();
  for (int i = 0; i < 3; i++) {
    CHECK(cuplug__stream_wait(0, stream, CUPLUG__STREAM(NULL), &error) == CUPLUG_ERROR_CUDA);
    CHECK_MESSAGE(&error, "ordering two streams: CUDA error 1");
  }
  CHECK(!cuplug__stream_wait(0, stream, CUPLUG__STREAM(NULL), &error));
  CHECK(fake_counts().n_events == 1);
}

static const scenario scenarios[] = {
    {"no_driver", no_driver, {"LD_LIBRARY_PATH=/nonexistent"}},
    {"driver_too_old", driver_too_old, {"FAKE_CUDA_DRIVER_VERSION=11040"}},
    {"no_gpu", no_gpu, {"FAKE_CUDA_INIT_ERROR=100"}},
    {"no_device", no_gpu, {"FAKE_CUDA_DEVICES=0"}},
    {"stub", stub, {"FAKE_CUDA_INIT_ERROR=34"}},
    {"mismatch", mismatch, {"FAKE_CUDA_INIT_ERROR=803"}},
    {"not_ready", not_ready, {"FAKE_CUDA_INIT_ERROR=802"}},
    {"forked_before", forked_before, {"FAKE_CUDA_INIT_ERROR=3"}},
    {"unknown_failure", unknown_failure, {"FAKE_CUDA_INIT_ERROR=999"}},
    {"start_is_once", start_is_once, {NULL}},
    {"failure_is_remembered", failure_is_remembered, {"FAKE_CUDA_INIT_ERROR=100"}},
    {"fork_after_start", fork_after_start, {NULL}},
    {"fork_before_start", fork_before_start, {NULL}},
    {"contexts", contexts, {NULL}},
    {"wrong_device", wrong_device, {NULL}},
    {"wrong_device_of_one", wrong_device_of_one, {"FAKE_CUDA_DEVICES=1"}},
    {"devices", devices, {NULL}},
    {"can_run", can_run, {NULL}},
    {"error_sentences", error_sentences, {NULL}},
    {"sticky_error", sticky_error, {"FAKE_CUDA_LAZY=1"}},
    {"sticky_error_of_plugin", sticky_error_of_plugin, {NULL}},
    {"stream_order", stream_order, {"FAKE_CUDA_LAZY=1"}},
    {"events_are_used_again", events_are_used_again, {NULL}},
    {"stream_order_fails",
     stream_order_fails,
     {"FAKE_CUDA_FAIL=cuEventCreate:1:1,cuEventRecord:1:1,cuStreamWaitEvent:1:1"}},
};

int main(int argc, char **argv) {
  return run_scenarios(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
}
