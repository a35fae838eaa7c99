/* sanitizers: address,undefined | thread */
/* fake-cuda */
/* ldflags: -ldl */
/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on GPUs: the calls that raise a fault, how often, and results that depend on it. */
#include "cuda/calls.h"
#include "cuda/driver.h"
#include "cuda/gpus.h"
#include "raise_fault.h"
#include "scenarios.h"

#include <internal/functions.h>
#include <pthread.h>

#define LEGACY ((void *)1)

static cuplug_error error;
static cuplug_parameter arrays[] = {{.name = "source"}, {.name = "index"}};
static const cuplug_signature signature = {.name = "op", .n_parameters = 2, .parameters = arrays};
static const cuplug__callable overload = {.signature = &signature, .n_arrays = 2};

typedef struct made {
  cuplug_fault *fault;
  uint64_t origin;
} made;

static made begin_on(int32_t device, void *stream, const uint64_t *origins, uint32_t n) {
  made m = {NULL, 0};
  cuplug_error own;
  CHECK(!cuplug__cuda_enter(device, &own).status);
  CHECK(!cuplug__calls_begin(&overload, device, stream, origins, n, &m.fault, &m.origin, &own));
  CHECK(m.fault && m.origin && !m.fault->claimed && !m.fault->status);
  return m;
}

static made begin(void) { return begin_on(0, LEGACY, NULL, 0); }

static made begin_from(uint64_t a, uint64_t b) {
  const uint64_t origins[] = {a, b};
  return begin_on(0, LEGACY, origins, 2);
}

static made begin_bad(int64_t value) {
  const made m = begin();
  raise_fault(m.fault, 1, 7, value, 0, 5);
  return m;
}

#define CHECK_RAISED(status, value)                                                      \
  do {                                                                                   \
    CHECK((status) == CUPLUG_ERROR_INDEX);                                               \
    CHECK_MESSAGE(&error, "op: index: index " #value " at position 7 is out of bounds"); \
  } while (0)

static void *check_elsewhere(void *status) {
  cuplug_error own;
  *(int *)status = cuplug__calls_check(&own);
  return NULL;
}

static int checked_by_another_thread(void) {
  pthread_t other;
  int status = -1;
  CHECK(!pthread_create(&other, NULL, check_elsewhere, &status));
  CHECK(!pthread_join(other, NULL));
  return status;
}

/* Its own thread raises it once, in the order of its calls. */
static void told_to_its_thread(void) {
  CHECK(!cuplug__calls_check(&error));
  begin();
  CHECK(!cuplug__calls_check(&error));
  const made second = begin(), first = begin_bad(90);
  raise_fault(second.fault, 1, 7, 80, 0, 5);
  CHECK(first.fault != second.fault);
  CHECK(!checked_by_another_thread());
  CHECK_RAISED(cuplug__calls_check(&error), 80);
  CHECK_RAISED(cuplug__calls_check(&error), 90);
  CHECK(!cuplug__calls_check(&error) && !cuplug__calls_check_all(&error));
}

/* Status and summary have not both arrived yet. */
static void while_written(void) {
  const made m = begin();
  m.fault->claimed = 1;
  *m.fault->summary = 1;
  CHECK(!cuplug__calls_check(&error));
  m.fault->status = CUPLUG_ERROR_INDEX;
  CHECK(cuplug__calls_check(&error) == CUPLUG_ERROR_INDEX);
  CHECK(!cuplug__calls_check(&error));
}

/* Every read of the call's outputs, or of results computed from them; nothing else. */
static void told_to_readers(void) {
  const made before = begin(), bad = begin_bad(9), good = begin();
  const made next = begin_from(bad.origin, good.origin),
             later = begin_from(good.origin, next.origin);
  for (int i = 0; i < 3; i++) {
    CHECK_RAISED(cuplug_check_origin(bad.origin, &error), 9);
    CHECK_RAISED(cuplug_check_origin(next.origin, &error), 9);
    CHECK_RAISED(cuplug_check_origin(later.origin, &error), 9);
    CHECK(!cuplug_check_origin(before.origin, &error));
    CHECK(!cuplug_check_origin(good.origin, &error));
    CHECK(!cuplug_check_origin(begin_from(good.origin, before.origin).origin, &error));
    CHECK(!cuplug_check_origin(0, &error));
  }
  CHECK(!cuplug__calls_check(&error)); /* a read on its own thread has raised it */
}

/* The records have long served other calls. */
static void told_to_late_readers(void) {
  const made bad = begin_bad(9), next = begin_from(bad.origin, 0), good = begin();
  CHECK_RAISED(cuplug__calls_check(&error), 9);
  for (int i = 0; i < 1000; i++) CHECK(!cuplug_check_origin(begin().origin, &error));
  CHECK(fake_counts().n_pinned <= 3);
  const made late = begin_from(next.origin, good.origin);
  for (int i = 0; i < 1000; i++) CHECK(!cuplug_check_origin(begin().origin, &error));
  for (int i = 0; i < 2; i++) {
    CHECK_RAISED(cuplug_check_origin(bad.origin, &error), 9);
    CHECK_RAISED(cuplug_check_origin(next.origin, &error), 9);
    CHECK_RAISED(cuplug_check_origin(late.origin, &error), 9);
    CHECK(!cuplug_check_origin(good.origin, &error));
  }
}

/* Each reads the previous one twice, and many others: no path is searched twice. */
static void long_history(void) {
  uint64_t all[100];
  const made bad = begin_bad(9);
  all[0] = bad.origin;
  for (int i = 1; i < 100; i++) all[i] = begin_on(0, LEGACY, all, (uint32_t)i).origin;
  CHECK_RAISED(cuplug_check_origin(all[99], &error), 9);
  CHECK(!cuplug__calls_check(&error) || error.status == CUPLUG_ERROR_INDEX);
}

static uint64_t bad_of_thread;

static void *call_badly(void *unused) {
  bad_of_thread = begin_bad(9).origin;
  return unused;
}

static void *call_well(void *unused) {
  cuplug_error own;
  begin();
  CHECK(!cuplug__calls_check(&own));
  return unused;
}

static void in_thread(void *(*body)(void *)) {
  pthread_t other;
  CHECK(!pthread_create(&other, NULL, body, NULL));
  CHECK(!pthread_join(other, NULL));
}

/* A thread that ended before its fault was raised: only a wait for the device raises it. */
static void threads_that_end(void) {
  in_thread(call_badly);
  in_thread(call_well); /* has the records of the other */
  CHECK(!cuplug__calls_check(&error));
  CHECK_RAISED(cuplug_check_origin(bad_of_thread, &error), 9);
  CHECK(!cuplug_synchronize(0, NULL, 0, &error));
  CHECK_RAISED(cuplug_synchronize(0, NULL, 1, &error), 9);
  CHECK(!cuplug_synchronize(0, NULL, 1, &error));
  CHECK_RAISED(cuplug_check_origin(bad_of_thread, &error), 9);
}

/* Later threads use the records of earlier ones. */
static void many_threads(void) {
  for (int i = 0; i < 100; i++) in_thread(call_well);
  CHECK(fake_counts().n_pinned == 1);
}

static CUstream make_stream(void) {
  CUstream stream = NULL;
  CHECK(!cuplug__cuda_enter(0, &error).status);
  CHECK(!cuplug__driver.cuStreamCreate(&stream, CUPLUG__STREAM_NON_BLOCKING));
  return stream;
}

/* Work that does not end keeps its records; finished work releases them. */
static int wait_kernel(const void *unused) { return (void)unused, 0; }

static void work_under_way(void) {
  CUstream stream = make_stream();
  const made first = begin_on(0, stream, NULL, 0);
  CHECK(!fake_launch(stream, wait_kernel, &error, 1));
  for (int i = 0; i < 200; i++) CHECK(begin_on(0, stream, NULL, 0).fault != first.fault);
  raise_fault(first.fault, 1, 7, 9, 0, 5);
  CHECK_RAISED(cuplug__calls_check(&error), 9);
  CHECK_RAISED(cuplug_check_origin(first.origin, &error), 9);
  CHECK(!cuplug_synchronize(0, stream, 0, &error));
  const long pinned = fake_counts().n_pinned;
  for (int i = 0; i < 1000; i++) {
    begin_on(0, stream, NULL, 0);
    if (i % 50 == 0) CHECK(!cuplug_synchronize(0, stream, 0, &error));
  }
  CHECK(fake_counts().n_pinned <= pinned + 1);
}

/* A call on each of many streams, which may be destroyed: the records are used again after a wait
 * for the device. */
static void many_streams(void) {
  for (int round = 0; round < 4; round++) {
    for (int i = 0; i < 200; i++) {
      CUstream stream = make_stream();
      begin_on(0, stream, NULL, 0);
      CHECK(!cuplug__driver.cuStreamDestroy(stream));
    }
    CHECK(!cuplug_synchronize(0, NULL, 1, &error));
  }
  CHECK(fake_counts().n_pinned < 300);
}

/* A graph's calls keep their records, and each launch may be bad, or good again. */
static void captured(void) {
  CUstream stream = make_stream();
  CUgraph graph = NULL;
  CHECK(!cuplug__driver.cuStreamBeginCapture(stream, CUPLUG__CAPTURE_RELAXED));
  const made call = begin_on(0, stream, NULL, 0);
  CHECK(!cuplug__driver.cuStreamEndCapture(stream, &graph));
  cuplug__calls_again(stream);
  for (int i = 0; i < 200; i++) CHECK(begin_on(0, stream, NULL, 0).fault != call.fault);
  for (int i = 0; i < 3; i++) {
    raise_fault(call.fault, 1, 7, 9, 0, 5);
    if (i) CHECK_RAISED(cuplug__calls_check(&error), 9);
    CHECK_RAISED(cuplug_check_origin(call.origin, &error), 9);
    CHECK_RAISED(cuplug_check_origin(call.origin, &error), 9);
    cuplug__calls_again(LEGACY); /* another graph */
    CHECK_RAISED(cuplug_check_origin(call.origin, &error), 9);
    CHECK(!cuplug__calls_check(&error));
    cuplug__calls_again(stream);
    CHECK(!cuplug_check_origin(call.origin, &error));
  }
  CHECK(!cuplug__driver.cuGraphDestroy(graph));
}

/* Its launches are not observed. */
static void captured_by_others(void) {
  CUstream stream = make_stream();
  CUgraph graph = NULL;
  CHECK(!cuplug__driver.cuStreamBeginCapture(stream, CUPLUG__CAPTURE_RELAXED));
  const made call = begin_on(0, stream, NULL, 0);
  CHECK(!cuplug__driver.cuStreamEndCapture(stream, &graph));
  for (int i = 0; i < 3; i++) {
    raise_fault(call.fault, 1, 7, 9, 0, 5);
    CHECK_RAISED(cuplug__calls_check(&error), 9);
    CHECK(!cuplug__calls_check(&error) && !cuplug_check_origin(call.origin, &error));
  }
  CHECK(!cuplug__driver.cuGraphDestroy(graph));
}

static void several_gpus(void) {
  const made a = begin_on(0, LEGACY, NULL, 0), b = begin_on(1, LEGACY, &a.origin, 1);
  raise_fault(a.fault, 1, 7, 9, 0, 5);
  for (int i = 0; i < 300; i++) begin_on(i % 2, LEGACY, NULL, 0);
  CHECK_RAISED(cuplug_check_origin(b.origin, &error), 9);
  CHECK_RAISED(cuplug__calls_check(&error), 9);
  CHECK(!cuplug__calls_check(&error));
}

enum { N_THREADS = 4, N_ROUNDS = 400, N_SHARED = 64 };
static _Atomic uint64_t shared[N_SHARED]; /* origins; odd: bad, or computed from bad ones */
static _Atomic int shared_is_bad[N_SHARED], n_bad, n_told;

/* Random valid and invalid calls that read arrays of other threads. */
static void *random_calls(void *argument) {
  uint32_t seed = (uint32_t)(intptr_t)argument + 1;
  CUstream streams[2] = {make_stream(), make_stream()};
  cuplug_error own;
  for (int i = 0; i < N_ROUNDS; i++) {
    seed = seed * 1664525 + 1013904223;
    const uint32_t at = seed >> 8 & (N_SHARED / N_THREADS - 1), from = seed >> 16 & (N_SHARED - 1);
    const int is_bad = seed >> 24 < 25;
    const int was_bad = shared_is_bad[from];
    const uint64_t origin = shared[from];
    const uint32_t mine = (uint32_t)(intptr_t)argument * (N_SHARED / N_THREADS) + at;
    if (cuplug__calls_check(&own)) n_told++;
    const made m = begin_on(0, streams[seed >> 12 & 1], &origin, 1);
    if (is_bad) raise_fault(m.fault, 1, i, i, 0, 1), n_bad++;
    if (was_bad >= 0 && shared[from] == origin && shared_is_bad[from] == was_bad) {
      CHECK(!cuplug_check_origin(origin, &own) == !was_bad);
      shared_is_bad[mine] = -1; /* others look away while it changes */
      shared[mine] = m.origin;
      shared_is_bad[mine] = is_bad || was_bad;
    }
    if (!is_bad) continue;
    CHECK(cuplug_check_origin(m.origin, &own));
    n_told++;
  }
  while (cuplug__calls_check(&own)) n_told++;
  return NULL;
}

static void threads(void) {
  pthread_t all[N_THREADS];
  begin();
  for (intptr_t i = 0; i < N_THREADS; i++)
    CHECK(!pthread_create(&all[i], NULL, random_calls, (void *)i));
  for (int i = 0; i < N_THREADS; i++) CHECK(!pthread_join(all[i], NULL));
  CHECK(n_bad >= N_THREADS && n_told == n_bad);
  CHECK(!cuplug__calls_check_all(&error));
}

static void no_pinned_memory(void) {
  made m;
  CHECK(!cuplug__cuda_enter(0, &error).status);
  CHECK(cuplug__calls_begin(&overload, 0, LEGACY, NULL, 0, &m.fault, &m.origin, &error) ==
        CUPLUG_ERROR_MEMORY);
  CHECK_MESSAGE(&error, "making a fault record: CUDA ran out of memory");
  begin();
}

/* Raised by the copy out that waits for the kernel, not earlier. */
static int bad_kernel(const void *argument) {
  raise_fault(*(cuplug_fault *const *)argument, 1, 7, 9, 0, 5);
  return 0;
}

static made launch_badly(void) {
  const made m = begin();
  CHECK(!fake_launch(NULL, bad_kernel, &m.fault, sizeof m.fault));
  return m;
}

static void asynchronous(void) {
  void *pointer;
  int32_t host = 0;
  CHECK(!cuplug__cuda_enter(0, &error).status);
  CHECK(!cuplug_allocate_device(0, 4, NULL, &pointer, &error));
  launch_badly();
  CHECK(!cuplug__calls_check(&error));
  CHECK_RAISED(cuplug_copy_to_host(0, &host, pointer, 4, NULL, &error), 9);
  CHECK(!cuplug_copy_to_host(0, &host, pointer, 4, NULL, &error));
  launch_badly();
  CHECK_RAISED(cuplug_copy_to_device(0, pointer, &host, 4, NULL, &error), 9);
  launch_badly();
  CHECK_RAISED(cuplug_synchronize(0, NULL, 0, &error), 9);
  CHECK(!cuplug_synchronize(0, NULL, 0, &error));
  CHECK(!cuplug_free_device(0, pointer, NULL, &error));
  CHECK(!cuplug_synchronize(0, NULL, 1, &error));
}

static const scenario scenarios[] = {
    {"told_to_its_thread", told_to_its_thread, {NULL}},
    {"while_written", while_written, {NULL}},
    {"told_to_readers", told_to_readers, {NULL}},
    {"told_to_late_readers", told_to_late_readers, {NULL}},
    {"long_history", long_history, {NULL}},
    {"threads_that_end", threads_that_end, {NULL}},
    {"many_threads", many_threads, {NULL}},
    {"work_under_way", work_under_way, {"FAKE_CUDA_LAZY=1"}},
    {"many_streams", many_streams, {NULL}},
    {"captured", captured, {NULL}},
    {"captured_by_others", captured_by_others, {NULL}},
    {"several_gpus", several_gpus, {"FAKE_CUDA_DEVICES=2"}},
    {"threads", threads, {NULL}},
    {"no_pinned_memory", no_pinned_memory, {"FAKE_CUDA_FAIL=cuMemHostAlloc:1:2"}},
    {"asynchronous", asynchronous, {"FAKE_CUDA_LAZY=1"}},
};

int main(int argc, char **argv) {
  return run_scenarios(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
}
