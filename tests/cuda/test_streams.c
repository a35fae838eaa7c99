/* sanitizers: address,undefined | thread */
/* fake-cuda */
/* ldflags: -ldl */
/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on streams of the caller: the GPU of a stream, captures, order, many threads. */
#include "cuda/driver.h"
#include "cuda/gpus.h"
#include "fake_operators.h"

#include <pthread.h>

#define N_THREADS 6
#define N_ROUNDS 60
#define N 100

static CUstream make_stream(int32_t device) {
  CUstream stream;
  const cuplug__context context = cuplug__cuda_enter(device, NULL);
  CHECK(!context.status);
  CHECK(!cuplug__driver.cuStreamCreate(&stream, CUPLUG__STREAM_NON_BLOCKING));
  cuplug__cuda_leave(&context);
  return stream;
}

static void on_stream(const char *function, CUstream stream) {
  const cuplug__context context = cuplug__cuda_enter(0, &error);
  CHECK(!context.status);
  CHECK(!((fake_cuda_capture_function *)fake_symbol(function))(stream));
  cuplug__cuda_leave(&context);
}

static void check_query(void *stream, int32_t wanted_device, int32_t wanted_captured) {
  int32_t device = 7, is_captured = 7;
  CHECK(!cuplug_query_stream(stream, &device, &is_captured, &error));
  CHECK(device == wanted_device && is_captured == wanted_captured);
}

/* The context that was current is current again. */
static void query_stream(void) {
  CUstream zero = make_stream(0), one = make_stream(1);
  CUcontext context = NULL;
  int32_t device, is_captured;
  check_query(zero, 0, 0), check_query(one, 1, 0);
  for (uintptr_t number = 0; number < 3; number++) check_query((void *)number, -1, 0);
  on_stream("fake_cuda_begin_capture", zero);
  check_query(zero, 0, 1), check_query(one, 1, 0);
  on_stream("fake_cuda_end_capture", zero);
  check_query(zero, 0, 0);
  CHECK(!cuplug__driver.cuCtxGetCurrent(&context) && !context);
  CHECK(cuplug_query_stream(&device, &device, &is_captured, &error) == CUPLUG_ERROR_CUDA);
  CHECK_MESSAGE(&error, "querying a stream's GPU: CUDA error 400");
}

static void query_pointer(void) {
  void *pointer;
  int32_t device = 7;
  CHECK(!cuplug_allocate_device(1, 64, NULL, &pointer, &error));
  CHECK(!cuplug_query_pointer((char *)pointer + 63, &device, &error) && device == 1);
  CHECK(cuplug_query_pointer(&device, &device, &error) == CUPLUG_ERROR_CUDA && device == -1);
  CHECK_MESSAGE(&error, "querying the GPU of memory: CUDA error 1");
  CHECK(!cuplug_free_device(1, pointer, NULL, &error));
  check_all_given_back();
}

/* An event cannot lead into a capture or out of it; between captured streams it can. */
static void order_in_a_capture(void) {
  CUstream a = make_stream(0), b = make_stream(0), other = make_stream(0);
  on_stream("fake_cuda_begin_capture", a);
  on_stream("fake_cuda_begin_capture", b);
  CHECK(!cuplug_order_streams(0, a, other, &error));
  CHECK(!cuplug_order_streams(0, other, a, &error));
  CHECK(!cuplug_order_streams(0, a, NULL, &error));
  CHECK(!cuplug_order_streams(0, a, b, &error));
  on_stream("fake_cuda_end_capture", a);
  on_stream("fake_cuda_end_capture", b);
  CHECK(fake_counts().n_misuses == 0);
}

/* While a stream that blocks the legacy one is captured, the driver rejects queries of it. */
static void legacy_stream_is_blocked(void) {
  CUstream stream = make_stream(0);
  CHECK(cuplug_order_streams(0, stream, NULL, &error) == CUPLUG_ERROR_CUDA);
  CHECK_MESSAGE(&error, "ordering two streams: CUDA error 906");
  CHECK_MESSAGE(&error, "the legacy default stream cannot be used meanwhile");
  on_stream("fake_cuda_begin_capture", stream);
  CHECK(!cuplug_order_streams(0, stream, NULL, &error));
  on_stream("fake_cuda_end_capture", stream);
  CHECK(fake_counts().n_misuses == 0);
}

static void capture_sentences(void) {
  CHECK(!cuplug__cuda_start(&error));
  for (int code = 900; code <= 908; code++) {
    cuplug__cuda_fail(&error, code, "doing");
    CHECK_MESSAGE(&error, "; a CUDA graph is being captured, and ");
    CHECK(!strstr(error.message, "restart"));
  }
}

/* One thread's arrays, on its own stream. */
typedef struct work {
  pthread_t thread;
  int32_t device;
  int n_faults; /* raised here */
  float *x, *out;
  int64_t *index;
} work;

static void *give_memory(const work *w, uint64_t bytes) {
  void *pointer;
  cuplug_error mine;
  CHECK(!cuplug_allocate_device(w->device, bytes, NULL, &pointer, &mine));
  return pointer;
}

/* Runs on the stream; a fault of an earlier call is counted, and the call repeated. */
static void call(work *w, const char *name, const cuplug_argument *args, uint32_t n_inputs,
                 const cuplug_argument *out, void *stream) {
  cuplug_error mine;
  cuplug_frame frame;
  int status;
  do {
    CHECK(!cuplug_bind(find(name), args, n_inputs, &frame, &mine));
    if (out) CHECK(!cuplug_set_output(&frame, 0, out, &mine));
    frame.stream = stream;
    status = cuplug_run(&frame, &mine);
    if (status) CHECK_MESSAGE(&mine, "pick: index: index -1 at position 3 is out of bounds");
    w->n_faults += status != 0;
  } while (status);
}

static void *run_calls(void *work_) {
  work *w = work_;
  const cuplug_device device = {CUPLUG_CUDA, w->device};
  int64_t n = N;
  float host[N];
  cuplug_error mine;
  CUstream stream = make_stream(w->device);
  const cuplug_argument x = array(CUPLUG_FLOAT32, w->x, &n, device),
                        out = array(CUPLUG_FLOAT32, w->out, &n, device),
                        index = array(CUPLUG_INT64, w->index, &n, device);
  const cuplug_argument both[] = {x, index}, more[] = {x, cuplug_float(1)};
  for (int round = 0; round < N_ROUNDS; round++) {
    call(w, "increase", more, 2, NULL, stream);
    call(w, "pick", both, 2, &out, stream);
    call(w, "triple", &x, 1, &out, stream);
  }
  while (cuplug_copy_to_host(w->device, host, w->out, sizeof host, stream, &mine)) {
    CHECK_STATUS(&mine, CUPLUG_ERROR_INDEX);
    w->n_faults++;
  }
  for (int i = 0; i < N; i++) CHECK(host[i] == 3.0f * (float)(i + N_ROUNDS));
  return NULL;
}

static void prepare(work *w, int k) {
  float x[N];
  int64_t index[N];
  for (int i = 0; i < N; i++) x[i] = (float)i, index[i] = i;
  if (k == 0) index[3] = -1; /* this thread's calls have a fault each */
  w->device = k % 2;
  w->x = give_memory(w, sizeof x), w->out = give_memory(w, sizeof x);
  w->index = give_memory(w, sizeof index);
  CHECK(!cuplug_copy_to_device(w->device, w->x, x, sizeof x, NULL, &error));
  CHECK(!cuplug_copy_to_device(w->device, w->index, index, sizeof index, NULL, &error));
}

/* A thread receives all its faults, and no call of any thread is lost or changed. */
static void threads(void) {
  work all[N_THREADS] = {{0}};
  for (int k = 0; k < N_THREADS; k++) prepare(&all[k], k);
  for (int k = 0; k < N_THREADS; k++)
    CHECK(!pthread_create(&all[k].thread, NULL, run_calls, &all[k]));
  for (int k = 0; k < N_THREADS; k++) CHECK(!pthread_join(all[k].thread, NULL));
  for (int k = 0; k < N_THREADS; k++) {
    CHECK(all[k].n_faults == (k ? 0 : N_ROUNDS));
    CHECK(!cuplug_free_device(all[k].device, all[k].x, NULL, &error));
    CHECK(!cuplug_free_device(all[k].device, all[k].out, NULL, &error));
    CHECK(!cuplug_free_device(all[k].device, all[k].index, NULL, &error));
  }
  check_all_given_back();
}

static const scenario scenarios[] = {
    {"query_stream", query_stream, {NULL}},
    {"query_pointer", query_pointer, {NULL}},
    {"order_in_a_capture", order_in_a_capture, {NULL}},
    {"legacy_stream_is_blocked",
     legacy_stream_is_blocked,
     {"FAKE_CUDA_FAIL=cuStreamIsCapturing:2:906,cuStreamIsCapturing:4:906"}},
    {"capture_sentences", capture_sentences, {NULL}},
    {"threads", threads, {NULL}},
    {"threads", threads, {"FAKE_CUDA_LAZY=1"}},
};

int main(int argc, char **argv) {
  make_operators();
  return run_scenarios(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
}
