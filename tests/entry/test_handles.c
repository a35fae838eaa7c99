/* SPDX-License-Identifier: Apache-2.0 */
/* sanitizers: address,undefined | thread */
/* fixture: handles.c */
/* fake-cuda */
/* ldflags: -pthread -rdynamic */
/* Handles: closed once, with any number of threads that use and close them; on the device where
 * they were created; not by a forked child. */
#include "check.h"

#include <cuplug/host.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_THREADS 8
#define N_ROUNDS 30

static cuplug_error error;
static pthread_barrier_t barrier;
static cuplug_handle *shared;

static cuplug_operator *find(const char *name) {
  cuplug_operator *op = NULL;
  CHECK(!cuplug_find(name, &op, NULL)); /* on any thread */
  return op;
}

static int make(const char *how, cuplug_device device, cuplug_handle **handle, cuplug_error *mine) {
  cuplug_options options = cuplug_default_options();
  const cuplug_argument args[] = {cuplug_int(0), cuplug_string(how), cuplug_new_handle(handle)};
  options.device = device;
  return cuplug_invoke(find("handles.counter"), args, 3, &options, mine);
}

static const cuplug_device host = {CUPLUG_CPU, 0}, gpu = {CUPLUG_CUDA, 0}, other = {CUPLUG_CUDA, 1};

static int step(cuplug_handle *handle, _Atomic int32_t *gate, int64_t *value, cuplug_error *mine) {
  const cuplug_tensor out = cuplug_make_tensor(value, CUPLUG_INT64, 0, NULL);
  const cuplug_argument args[] = {cuplug_handle_argument(handle), cuplug_uint((uintptr_t)gate),
                                  cuplug_absent(), cuplug_array(&out)};
  return cuplug_invoke(find("step"), args, 4, NULL, mine);
}

static void counters(int64_t counts[2]) {
  int64_t shape[] = {2};
  const cuplug_tensor out = cuplug_make_tensor(counts, CUPLUG_INT64, 1, shape);
  const cuplug_argument args[] = {cuplug_array(&out)};
  CHECK(!cuplug_invoke(find("counters"), args, 1, NULL, &error));
}

/* ---- One thread ------------------------------------------------------------------------------ */

static void one_thread(void) {
  cuplug_handle *handle;
  int64_t value, counts[2];
  CHECK(!make("well", host, &handle, &error));
  CHECK(!strcmp(cuplug_handle_tag(handle), "counter") && !cuplug_handle_is_closed(handle));
  CHECK(cuplug_handle_operator(handle) == find("handles.counter"));
  CHECK(cuplug_handle_device(handle).type == CUPLUG_CPU);
  CHECK(!step(handle, NULL, &value, &error) && value == 1);
  CHECK(!step(handle, NULL, &value, &error) && value == 2);
  CHECK(!cuplug_close_handle(handle, &error) && cuplug_handle_is_closed(handle));
  CHECK(!cuplug_close_handle(handle, NULL));
  CHECK(step(handle, NULL, &value, &error) == CUPLUG_ERROR_VALUE);
  CHECK_TEXT(error.message, "step: c: got a closed handle[counter], expected an open one; make one "
                            "with counter");
  CHECK(!cuplug_free_handle(handle, &error) && !cuplug_free_handle(NULL, &error));
  CHECK(step(NULL, NULL, &value, &error) == CUPLUG_ERROR_TYPE);
  CHECK_TEXT(error.message, "step: c: got a handle, expected handle[counter]");
  counters(counts);
  CHECK(counts[0] == 1 && counts[1] == 1);
}

static void failures(void) {
  static const char *const hows[] = {"fails", "late", "forgets", "twice", "null"};
  cuplug_handle *handle;
  int64_t before[2], counts[2];
  for (int k = 0; k < 5; k++) {
    handle = (cuplug_handle *)&handle;
    CHECK(make(hows[k], host, &handle, &error) && !handle);
  }
  counters(before);
  CHECK(before[0] == before[1]);
  CHECK(!make("bad", host, &handle, &error));
  CHECK(cuplug_close_handle(handle, &error) == CUPLUG_ERROR_VALUE);
  CHECK_TEXT(error.message, "counter: it was no good");
  CHECK(!cuplug_free_handle(handle, &error));
  CHECK(!make("greedy", gpu, &handle, &error));
  CHECK(cuplug_free_handle(handle, NULL) == CUPLUG_ERROR_MEMORY);
  counters(counts);
  CHECK(counts[0] == before[0] + 2 && counts[1] == counts[0]);
  const cuplug_argument no_place[] = {cuplug_int(0), cuplug_absent(), cuplug_none()};
  CHECK(cuplug_invoke(find("handles.counter"), no_place, 2, NULL, &error) == CUPLUG_ERROR_VALUE);
  CHECK_TEXT(error.message, "counter: output 0: got no place, expected one for handle[counter]; "
                            "pass cuplug_new_handle(&handle)");
  CHECK(cuplug_invoke(find("handles.counter"), no_place, 3, NULL, &error) == CUPLUG_ERROR_TYPE);
  CHECK_TEXT(error.message, "counter: out: got None, expected the place of handle[counter]; pass "
                            "cuplug_new_handle(&handle)");
}

static void described(void) {
  const cuplug_signature *s = cuplug_operator_signature(find("handles.counter"), 0);
  CHECK(cuplug_signature_n_parameters(s) == 2 && cuplug_signature_n_outputs(s) == 1);
  CHECK(cuplug_parameter_kind(s, 2) == CUPLUG_PARAMETER_HANDLE);
  CHECK(!strcmp(cuplug_parameter_tag(s, 2), "counter") && !cuplug_parameter_tag(s, 0));
  CHECK(!strcmp(cuplug_parameter_name(s, 2), "c") && !cuplug_parameter_name(s, 3));
  CHECK(cuplug_overload_flags(cuplug_operator_overload(find("step"), 0)) ==
        CUPLUG_OVERLOAD_HANDLES);
}

/* A handle is used on the device where it was created. */
static void devices(void) {
  cuplug_handle *handle;
  cuplug_options options = cuplug_default_options();
  CHECK(!make("well", gpu, &handle, &error));
  CHECK(cuplug_handle_device(handle).type == CUPLUG_CUDA && !cuplug_handle_device(handle).id);
  const cuplug_argument args[] = {cuplug_handle_argument(handle)};
  int64_t value;
  CHECK(step(handle, NULL, &value, &error) == CUPLUG_ERROR_VALUE);
  CHECK_TEXT(error.message, "step: c: got handle[counter] made on cuda:0, expected one made on the "
                            "host (the device of the call); make one there with counter");
  options.device = other;
  const cuplug_tensor out = cuplug_make_cuda_tensor(&value, CUPLUG_INT64, 0, NULL, 1);
  const cuplug_argument there[] = {args[0], cuplug_absent(), cuplug_absent(), cuplug_array(&out)};
  CHECK(cuplug_invoke(find("step"), there, 4, &options, &error) == CUPLUG_ERROR_VALUE);
  CHECK_TEXT(error.message, "step: c: got handle[counter] made on cuda:0, expected one made on "
                            "cuda:1 (the device of the call); make one there with counter");
  CHECK(!cuplug_free_handle(handle, &error));
}

/* ---- Several threads ------------------------------------------------------------------------- */

static void *call_and_close(void *data) {
  cuplug_error mine;
  int64_t value;
  const int closes = *(const int *)data;
  for (int k = 0; k < N_ROUNDS; k++) {
    pthread_barrier_wait(&barrier); /* `shared` is made */
    int status = CUPLUG_OK;
    if (closes) CHECK(!cuplug_close_handle(shared, &mine));
    for (int call = 0; call < 5 && !status; call++) status = step(shared, NULL, &value, &mine);
    CHECK(!status || status == CUPLUG_ERROR_VALUE);
    if (closes) CHECK(status == CUPLUG_ERROR_VALUE);
    pthread_barrier_wait(&barrier);
  }
  return NULL;
}

static void many_threads(void) {
  pthread_t threads[N_THREADS];
  int closes[N_THREADS] = {1, 1}; /* the others only call */
  int64_t counts[2];
  CHECK(!pthread_barrier_init(&barrier, NULL, N_THREADS + 1));
  for (int k = 0; k < N_THREADS; k++)
    CHECK(!pthread_create(&threads[k], NULL, call_and_close, &closes[k]));
  for (int k = 0; k < N_ROUNDS; k++) {
    CHECK(!make("well", host, &shared, &error));
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    counters(counts);
    CHECK(counts[0] == counts[1]);
    CHECK(!cuplug_free_handle(shared, &error));
  }
  for (int k = 0; k < N_THREADS; k++) CHECK(!pthread_join(threads[k], NULL));
  counters(counts);
  CHECK(counts[0] == counts[1]);
  pthread_barrier_destroy(&barrier);
}

typedef struct visit {
  cuplug_handle *handle;
  _Atomic int32_t gate[2];
} visit;

static void *call_until_told(void *data) {
  visit *v = data;
  cuplug_error mine;
  int64_t value = 0;
  CHECK(!step(v->handle, v->gate, &value, &mine) && value == 1);
  return NULL;
}

/* A call in progress keeps its handle, and closes it at its end. */
static void closed_meanwhile(void) {
  visit v = {.gate = {0, 0}};
  pthread_t thread;
  int64_t before[2], counts[2], value;
  CHECK(!make("bad", host, &v.handle, &error));
  counters(before);
  CHECK(!pthread_create(&thread, NULL, call_until_told, &v));
  while (!v.gate[0]) usleep(100);
  CHECK(!cuplug_close_handle(v.handle, &error)); /* the function fails later, without a caller */
  CHECK(step(v.handle, NULL, &value, &error) == CUPLUG_ERROR_VALUE);
  counters(counts);
  CHECK(counts[1] == before[1]);
  v.gate[1] = 1;
  CHECK(!pthread_join(thread, NULL));
  counters(counts);
  CHECK(counts[1] == before[1] + 1);
  CHECK(!cuplug_free_handle(v.handle, &error));
}

/* ---- Processes ------------------------------------------------------------------------------- */

static void forks(void) {
  int status;
  cuplug_handle *handle, *own;
  int64_t value, counts[2], before[2];
  CHECK(!make("well", host, &handle, &error));
  counters(before);
  const pid_t child = fork();
  if (!child) {
    alarm(60);
    CHECK(step(handle, NULL, &value, &error) == CUPLUG_ERROR_VALUE);
    CHECK_TEXT(error.message, "step: c: got handle[counter] of the parent process, expected one of "
                              "this process; make one here with counter");
    CHECK(!cuplug_free_handle(handle, &error));
    counters(counts);
    CHECK(counts[1] == before[1]); /* it is not the child's */
    CHECK(!make("well", host, &own, &error));
    CHECK(!step(own, NULL, &value, &error) && value == 1 && !cuplug_free_handle(own, &error));
    _exit(n_failed != 0);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  CHECK(!step(handle, NULL, &value, &error) && value == 1 && !cuplug_free_handle(handle, &error));
}

int main(void) {
  char folder[4096];
  CHECK(getcwd(folder, sizeof folder));
  setenv("LD_LIBRARY_CUPLUG_PATH", folder, 1);
  one_thread();
  described();
  failures();
  devices();
  many_threads();
  closed_meanwhile();
  forks();
  return n_failed != 0;
}
