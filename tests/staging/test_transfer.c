/* sanitizers: address,undefined | thread */
/* fake-cuda */
/* ldflags: -ldl */
/* SPDX-License-Identifier: Apache-2.0 */
/* Copies through pinned buffers. The fake driver is lazy: a copy is done when it is waited for, so
 * a pinned buffer that is reused too early results in wrong data. */
#include "cuda/channel.h"
#include "cuda/driver.h"
#include "cuda/gpus.h"
#include "cuda/memory.h"
#include "host/view.h"
#include "scenarios.h"
#include "staging/transfer.h"

#include <pthread.h>

#define LARGE CUPLUG__PINNED_LARGE
#define SMALL CUPLUG__PINNED_SMALL
#define TEAM CUPLUG__TEAM_BYTES /* from here on, the thread pool takes part */
#define RING CUPLUG__N_PINNED   /* chunks that fill a channel's buffers */

/* Around the ends of chunks and of the buffers. */
static const uint64_t sizes[] = {0,
                                 1,
                                 7,
                                 4096,
                                 SMALL - 1,
                                 SMALL,
                                 SMALL + 1,
                                 RING *SMALL,
                                 RING *SMALL + 1,
                                 LARGE - 1,
                                 LARGE,
                                 LARGE + 1,
                                 RING *LARGE + 1,
                                 (RING + 1) * LARGE + 13};
#define N_SIZES (sizeof sizes / sizeof *sizes)

static cuplug_error error;

/* Its period is odd, so that chunks differ. */
static uint8_t *make_bytes(uint64_t n, unsigned seed) {
  enum { PERIOD = 4099 };
  uint8_t *bytes = malloc(n + PERIOD);
  CHECK(bytes);
  for (uint64_t i = 0; i < PERIOD; i++) bytes[i] = (uint8_t)(i * 31 + i / 251 + seed);
  for (uint64_t i = PERIOD; i < n; i += PERIOD) memcpy(bytes + i, bytes, PERIOD);
  return bytes;
}

static void check_bytes(const uint8_t *bytes, uint64_t n, unsigned seed) {
  uint8_t *wanted = make_bytes(n, seed);
  CHECK(!memcmp(bytes, wanted, n));
  free(wanted);
}

static int copy_to_device(cuplug__channel *channel, void *to, const void *from, uint64_t n) {
  cuplug__view view;
  cuplug__view_bytes(&view, from, n);
  return cuplug__transfer(channel, 0, &view, 0, to, n, NULL, &error);
}

static int copy_to_host(cuplug__channel *channel, void *to, void *from, uint64_t n) {
  cuplug__view view;
  cuplug__view_bytes(&view, to, n);
  return cuplug__transfer(channel, 1, &view, 0, from, n, NULL, &error);
}

static void round_trip(int32_t device, uint64_t n, uint64_t shift, unsigned seed) {
  cuplug_error mine;
  void *pointer = NULL;
  uint8_t *from = make_bytes(n, seed), *to = calloc(n + 2, 1);
  CHECK(to && !cuplug_allocate_device(device, n + shift, NULL, &pointer, &mine));
  CHECK(!cuplug_copy_to_device(device, (char *)pointer + shift, from, n, NULL, &mine));
  memset(from, 0, n);
  CHECK(!cuplug_copy_to_host(device, to + 1, (char *)pointer + shift, n, NULL, &mine));
  check_bytes(to + 1, n, seed);
  CHECK(to[0] == 0 && to[n + 1] == 0);
  CHECK(!cuplug_free_device(device, pointer, NULL, &mine));
  free(from);
  free(to);
}

static void round_trips(void) {
  for (unsigned i = 0; i < N_SIZES; i += step_of_many()) round_trip(0, sizes[i], i % 3, i);
  CHECK(!cuplug_synchronize(0, NULL, 1, &error));
  check_nothing_left();
}

static void both_devices(void) {
  for (unsigned i = 0; i < N_SIZES / 2; i++) {
    round_trip(0, sizes[2 * i], 0, i);
    round_trip(1, sizes[2 * i + 1], 1, i + 9);
  }
  for (int i = 0; i < 2; i++) CHECK(!cuplug_synchronize(i, NULL, 1, &error));
  check_nothing_left();
}

/* Several consecutive copies on one channel: the source may be reused at once. */
static void queued(void) {
  enum { N = 5 };
  cuplug__channel *channel;
  void *pointers[N];
  uint64_t n = 2 * LARGE + 100;
  uint8_t *to = malloc(n);
  CHECK(to);
  const cuplug__context context = cuplug__cuda_enter(0, &error);
  CHECK(!context.status);
  CHECK(!cuplug__channel_acquire(0, &channel, &error));
  for (unsigned i = 0; i < N; i++) {
    uint8_t *from = make_bytes(n, i);
    CHECK(!cuplug__device_allocate(0, n, channel->stream, &pointers[i], &error));
    CHECK(!copy_to_device(channel, pointers[i], from, n));
    memset(from, 0, n);
    free(from);
  }
  for (unsigned i = 0; i < N; i++) {
    CHECK(!copy_to_host(channel, to, pointers[i], n));
    check_bytes(to, n, i);
    CHECK(!cuplug__device_free(pointers[i], channel->stream, &error));
  }
  cuplug__channel_release(channel);
  cuplug__cuda_leave(&context);
  free(to);
  check_nothing_left();
}

UNSEEN static void every_other(uint8_t *to, const uint8_t *from, uint64_t n) {
  for (uint64_t k = 0; k < n; k++) to[k] = from[2 * k];
}

UNSEEN static void spread(uint8_t *to, const uint8_t *from, uint64_t n) {
  for (uint64_t k = 0; k < n; k++) to[2 * k + 1] = from[k];
}

/* Copies `from` to every other byte; the bytes between do not change. */
static void check_written_apart(cuplug__channel *channel, void *from, const uint8_t *bytes,
                                uint64_t n) {
  uint8_t *to = malloc(2 * n + 1), *wanted = malloc(2 * n + 1);
  const uint64_t first = n / 3;
  CHECK(to && wanted);
  memset(to, 77, 2 * n + 1);
  memset(wanted, 77, 2 * n + 1);
  spread(wanted, bytes, n);
  const cuplug__view view = {(char *)to + 1, 1, 1, {(int64_t)n}, {2}};
  CHECK(!cuplug__transfer(channel, 1, &view, 0, from, first, NULL, &error));
  CHECK(!cuplug__transfer(channel, 1, &view, first, (char *)from + first, n - first, NULL, &error));
  CHECK(!memcmp(to, wanted, 2 * n + 1));
  free(to);
  free(wanted);
}

/* Copies like offloaded calls: in chunks, by one thread and by several. */
static void on_a_lane(void) {
  static const uint64_t more[] = {TEAM - 1, TEAM, TEAM + 1};
  cuplug__channel *channel;
  void *pointer;
  const cuplug__context context = cuplug__cuda_enter(0, &error);
  CHECK(!context.status);
  CHECK(!cuplug__channel_acquire(0, &channel, &error));
  for (unsigned i = 0; i < N_SIZES + 3; i += step_of_many()) {
    const uint64_t n = i < N_SIZES ? sizes[i] : more[i - N_SIZES], first = n / 3;
    uint8_t *from = make_bytes(n, i), *to = malloc(n + 1);
    cuplug__view view;
    cuplug__view_bytes(&view, from, n);
    CHECK(to && !cuplug__device_allocate(0, n, channel->stream, &pointer, &error));
    CHECK(!cuplug__transfer(channel, 0, &view, 0, pointer, first, NULL, &error));
    CHECK(!cuplug__transfer(channel, 0, &view, first, (char *)pointer + first, n - first, NULL,
                            &error));
    CHECK(!copy_to_host(channel, to, pointer, n));
    check_bytes(to, n, i);
    every_other(to, from, n / 2);
    view = (cuplug__view){(char *)from, 1, 1, {(int64_t)(n / 2)}, {2}};
    CHECK(!cuplug__transfer(channel, 0, &view, 0, pointer, n / 2, NULL, &error));
    CHECK(!copy_to_host(channel, from, pointer, n / 2));
    CHECK(!memcmp(from, to, n / 2));
    check_written_apart(channel, pointer, to, n / 2);
    CHECK(!cuplug__device_free(pointer, channel->stream, &error));
    free(from);
    free(to);
  }
  cuplug__channel_release(channel);
  cuplug__cuda_leave(&context);
  check_nothing_left();
}

/* A small copy is in progress when a larger one requires larger buffers. */
static void growing(void) {
  cuplug__channel *channel;
  void *pointer;
  uint64_t n = LARGE + 5;
  uint8_t *from = make_bytes(n, 3), *to = malloc(n);
  CHECK(to);
  const cuplug__context context = cuplug__cuda_enter(0, &error);
  CHECK(!context.status);
  CHECK(!cuplug__channel_acquire(0, &channel, &error));
  CHECK(!cuplug__device_allocate(0, n, channel->stream, &pointer, &error));
  CHECK(!copy_to_device(channel, pointer, from, 100));
  CHECK(!copy_to_device(channel, (char *)pointer + 100, from + 100, n - 100));
  CHECK(!copy_to_host(channel, to, pointer, n));
  check_bytes(to, n, 3);
  CHECK(!cuplug__device_free(pointer, channel->stream, &error));
  cuplug__channel_release(channel);
  cuplug__cuda_leave(&context);
  free(from);
  free(to);
  check_nothing_left();
}

/* Work on the caller's stream comes first, also on the default stream. */
static int fill_kernel(const void *argument) {
  return memset(*(void *const *)argument, 77, 1000), 0;
}

static void after_the_stream(void) {
  void *pointer;
  uint8_t to[1000];
  CHECK(!cuplug_allocate_device(0, 1000, NULL, &pointer, &error));
  const cuplug__context context = cuplug__cuda_enter(0, &error);
  CHECK(!context.status);
  CHECK(!fake_launch(NULL, fill_kernel, &pointer, sizeof pointer));
  cuplug__cuda_leave(&context);
  CHECK(!cuplug_copy_to_host(0, to, pointer, 1000, NULL, &error));
  for (int i = 0; i < 1000; i++) CHECK(to[i] == 77);
  CHECK(!cuplug_free_device(0, pointer, NULL, &error));
  CHECK(!cuplug_synchronize(0, NULL, 0, &error));
  check_nothing_left();
}

static void out_of_bounds(void) {
  uint8_t bytes[16] = {0};
  void *pointer;
  CHECK(!cuplug_allocate_device(0, 8, NULL, &pointer, &error));
  CHECK(cuplug_copy_to_device(0, pointer, bytes, 16, NULL, &error) == CUPLUG_ERROR_CUDA);
  CHECK_MESSAGE(&error, "copying to the device: CUDA error 1");
  CHECK(cuplug_copy_to_host(0, bytes, pointer, 16, NULL, &error) == CUPLUG_ERROR_CUDA);
  CHECK_MESSAGE(&error, "copying to the host: CUDA error 1");
  CHECK(!cuplug_free_device(0, pointer, NULL, &error));
}

/* One driver call after another fails, as set in the environment; then both copies are correct. */
static void failures(void) {
  uint64_t n = 2 * LARGE + 1;
  int n_failed = 0;
  void *pointer;
  uint8_t *from = make_bytes(n, 5), *to = malloc(n);
  CHECK(to && !cuplug_allocate_device(0, n, NULL, &pointer, &error));
  while (cuplug_copy_to_device(0, pointer, from, n, NULL, &error)) {
    CHECK_MESSAGE(&error, "CUDA error 999");
    CHECK(error.status == CUPLUG_ERROR_CUDA && ++n_failed < 20);
  }
  while (cuplug_copy_to_host(0, to, pointer, n, NULL, &error)) {
    CHECK_MESSAGE(&error, "CUDA error 999");
    CHECK(error.status == CUPLUG_ERROR_CUDA && ++n_failed < 20);
  }
  CHECK(n_failed == atoi(getenv("N_WANTED")));
  check_bytes(to, n, 5);
  CHECK(!cuplug_free_device(0, pointer, NULL, &error));
  CHECK(!cuplug_synchronize(0, NULL, 1, &error));
  check_nothing_left();
  free(from);
  free(to);
}

/* The driver's copies of pinned memory, and the wait for the second, fail; the next ones are
 * correct. */
static void failures_of_pinned_memory(void) {
  const uint64_t n = 2 * TEAM;
  cuplug__channel *channel;
  void *pointer;
  uint8_t *bytes = make_bytes(n, 6);
  void *from, *to;
  const cuplug__context context = cuplug__cuda_enter(0, &error);
  CHECK(!context.status);
  CHECK(!cuplug__channel_acquire(0, &channel, &error));
  CHECK(!cuplug__device_allocate(0, n, channel->stream, &pointer, &error));
  CHECK(!cuplug__driver.cuMemHostAlloc(&from, n, CUPLUG__HOST_PORTABLE));
  CHECK(!cuplug__driver.cuMemHostAlloc(&to, n, CUPLUG__HOST_PORTABLE));
  memcpy(from, bytes, n);
  CHECK(copy_to_device(channel, pointer, from, n) == CUPLUG_ERROR_CUDA);
  CHECK_MESSAGE(&error, "copying to the device: CUDA error 999");
  CHECK(!copy_to_device(channel, pointer, from, n));
  CHECK(copy_to_host(channel, to, pointer, n) == CUPLUG_ERROR_CUDA);
  CHECK_MESSAGE(&error, "copying to the host: CUDA error 999");
  CHECK(copy_to_host(channel, to, pointer, n) == CUPLUG_ERROR_CUDA);
  CHECK_MESSAGE(&error, "waiting for a stream: CUDA error 999");
  CHECK(!copy_to_host(channel, to, pointer, n));
  check_bytes(to, n, 6);
  CHECK(!cuplug__device_free(pointer, channel->stream, &error));
  cuplug__channel_release(channel);
  CHECK(!cuplug__driver.cuMemFreeHost(from) && !cuplug__driver.cuMemFreeHost(to));
  cuplug__cuda_leave(&context);
  check_nothing_left();
  free(bytes);
}

/* In any chunk. */
static void each_failure(void) {
  static const char *const functions[] = {"cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync",
                                          "cuEventSynchronize", "cuEventRecord"};
  static const int calls[] = {1, 2, 5, 7};
  char failing[80];
  for (int i = 0; i < 16; i += step_of_many()) {
    snprintf(failing, sizeof failing, "FAKE_CUDA_FAIL=%s:%d:999", functions[i / 4], calls[i % 4]);
    scenario one = {"failures", failures, {failing, "FAKE_CUDA_LAZY=1", "N_WANTED=1"}};
    CHECK(!run_again(&one));
  }
}

static void *copy_in_thread(void *argument) {
  unsigned seed = (unsigned)(uintptr_t)argument;
  for (unsigned i = 0; i < 3; i++)
    round_trip((int32_t)(seed % 2), sizes[5 + 3 * i] + seed, 0, seed);
  return NULL;
}

static void threads(void) {
  pthread_t all[6];
  for (uintptr_t i = 0; i < 6; i++)
    CHECK(!pthread_create(&all[i], NULL, copy_in_thread, (void *)i));
  for (int i = 0; i < 6; i++) CHECK(!pthread_join(all[i], NULL));
  for (int i = 0; i < 2; i++) CHECK(!cuplug_synchronize(i, NULL, 1, &error));
  check_nothing_left();
}

static const scenario scenarios[] = {
    {"round_trips", round_trips, {NULL}},
    {"round_trips", round_trips, {"FAKE_CUDA_LAZY=1"}},
    {"both_devices", both_devices, {"FAKE_CUDA_LAZY=1"}},
    {"queued", queued, {"FAKE_CUDA_LAZY=1"}},
    {"on_a_lane", on_a_lane, {"FAKE_CUDA_LAZY=1"}},
    {"growing", growing, {"FAKE_CUDA_LAZY=1"}},
    {"after_the_stream", after_the_stream, {"FAKE_CUDA_LAZY=1"}},
    {"out_of_bounds", out_of_bounds, {NULL}},
    {"failures",
     failures,
     {"FAKE_CUDA_FAIL=cuMemcpyHtoDAsync:2:999,cuMemcpyDtoHAsync:2:999,"
      "cuMemcpyDtoHAsync:3:999",
      "FAKE_CUDA_LAZY=1", "N_WANTED=3"}},
    {"failures",
     failures,
     {"FAKE_CUDA_FAIL=cuEventSynchronize:1:999,cuEventSynchronize:3:999,"
      "cuEventSynchronize:9:999",
      "FAKE_CUDA_LAZY=1", "N_WANTED=3"}},
    {"failures",
     failures,
     {"FAKE_CUDA_FAIL=cuEventRecord:1:999,cuEventRecord:3:999,"
      "cuEventRecord:9:999,cuCtxSetCurrent:2:999,cuCtxGetCurrent:2:999",
      "FAKE_CUDA_LAZY=1", "N_WANTED=4"}},
    {"failures",
     failures,
     {"FAKE_CUDA_FAIL=cuMemHostAlloc:1:999,cuMemHostAlloc:2:999,"
      "cuMemHostAlloc:4:999,cuStreamSynchronize:1:999",
      "N_WANTED=3"}},
    {"failures_of_pinned_memory",
     failures_of_pinned_memory,
     {"FAKE_CUDA_FAIL=cuMemcpyHtoDAsync:1:999,cuMemcpyDtoHAsync:1:999,cuStreamSynchronize:1:999",
      "FAKE_CUDA_LAZY=1"}},
    {"each_failure", each_failure, {NULL}},
    {"one_thread", round_trips, {"OMP_NUM_THREADS=1", "FAKE_CUDA_LAZY=1"}},
    {"threads", threads, {NULL}},
    {"threads", threads, {"FAKE_CUDA_LAZY=1"}},
};

int main(int argc, char **argv) {
  return run_scenarios(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
}
