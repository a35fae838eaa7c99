/* sanitizers: address,undefined | thread */
/* fake-cuda */
/* ldflags: -ldl -Wl,--wrap=calloc */
/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory and staging channels. */
#include "cuda/channel.h"
#include "cuda/driver.h"
#include "cuda/fault.h"
#include "cuda/gpus.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "scenarios.h"

#include <pthread.h>

static cuplug_error error;
static _Atomic int callocs_fail;

void *__real_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes) {
  return callocs_fail ? NULL : __real_calloc(n, bytes);
}

static void enter(void) { CHECK(!cuplug__cuda_enter(0, &error).status); }

static void *allocate(uint64_t bytes) {
  void *pointer = NULL;
  CHECK(!cuplug__device_allocate(0, bytes, CUPLUG__STREAM(NULL), &pointer, &error));
  CHECK(pointer && (uintptr_t)pointer % 256 == 0);
  return pointer;
}

static void release(void *pointer) {
  CHECK(!cuplug__device_free(pointer, CUPLUG__STREAM(NULL), &error));
}

static void sizes(void) {
  static const uint64_t bytes[] = {0, 1, 255, 256, 4097, 1 << 20};
  enter();
  for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
    char *pointer = allocate(bytes[i]);
    memset(pointer, 1, bytes[i]);
    release(pointer);
  }
  release(NULL);
  check_nothing_left();
}

static void both_devices(void) {
  void *zero, *one;
  CHECK(!cuplug_allocate_device(0, 100, NULL, &zero, &error));
  CHECK(!cuplug_allocate_device(1, 100, NULL, &one, &error));
  CHECK(cuplug_free_device(0, one, NULL, &error) == CUPLUG_ERROR_CUDA);
  CHECK_MESSAGE(&error, "freeing device memory: CUDA error 1");
  CHECK(!cuplug_free_device(1, one, NULL, &error));
  CHECK(!cuplug_free_device(0, zero, NULL, &error));
  const cuplug__context context = cuplug__cuda_enter(0, &error);
  CHECK(!context.status && !context.previous);
  CHECK(fake_counts().n_allocations == 0);
}

static void too_much(void) {
  void *pointer = &error;
  const uint64_t huge[] = {(1 << 20) + 1, (uint64_t)1 << 40, UINT64_MAX};
  enter();
  for (int i = 0; i < 3; i++) {
    CHECK(cuplug_allocate_device(0, huge[i], NULL, &pointer, &error) == CUPLUG_ERROR_MEMORY);
    CHECK(!pointer && error.cuda_code == 0);
  }
  CHECK_MESSAGE(&error,
                "out of device memory: requested 18446744073709551615 bytes (17179869184.00 "
                "GiB) on cuda:0, free 0.00 of 0.00 GiB");
  check_nothing_left();
}

/* 1 MiB, of which the pool retains 128 KiB. A trim releases cached blocks. */
static void trim(void) {
  void *pointer;
  enter();
  release(allocate(100 << 10));
  void *all = allocate(1000 << 10);
  CHECK(cuplug__device_allocate(0, 500 << 10, CUPLUG__STREAM(NULL), &pointer, &error) ==
        CUPLUG_ERROR_MEMORY);
  CHECK_MESSAGE(&error, "requested 512000 bytes (0.00 GiB) on cuda:0");
  release(all);
  release(allocate(500 << 10));
  check_nothing_left();
}

/* A block of another library of the process, which releases it on request. */
static void *others_block;
static int n_asked;

static void give_others_back(int32_t device, char held[CUPLUG_RECLAIM_BYTES]) {
  n_asked++;
  strcpy(held, ", others 0.50 GiB");
  CHECK(device == 0 && !cuplug_free_device(0, others_block, NULL, &error));
  others_block = NULL;
  CHECK(!cuplug__driver.cuCtxSetCurrent(NULL));
}

static void reclaim(void) {
  void *pointer;
  enter();
  others_block = allocate(1000 << 10);
  CHECK(cuplug__device_allocate(0, 600 << 10, CUPLUG__STREAM(NULL), &pointer, &error) ==
        CUPLUG_ERROR_MEMORY);
  cuplug_set_reclaim(give_others_back);
  release(allocate(10 << 10));
  CHECK(n_asked == 0);
  void *first = allocate(600 << 10);
  CHECK(n_asked == 1 && !others_block);
  CHECK(cuplug__device_allocate(0, 600 << 10, CUPLUG__STREAM(NULL), &pointer, &error) ==
        CUPLUG_ERROR_MEMORY);
  CHECK(n_asked == 2);
  CHECK_MESSAGE(&error, "cuplug uses 0.00 GiB, others 0.50 GiB");
  CHECK(cuplug_allocate_device(0, 2 << 20, NULL, &pointer, &error) == CUPLUG_ERROR_MEMORY);
  CHECK(n_asked == 2); /* larger than any GPU */
  cuplug_set_reclaim(NULL);
  CHECK(cuplug__device_allocate(0, 600 << 10, CUPLUG__STREAM(NULL), &pointer, &error) ==
        CUPLUG_ERROR_MEMORY);
  CHECK(n_asked == 2);
  release(first);
  check_nothing_left();
}

/* If memory is short, idle channels are freed. A captured stream is not waited for. */
static void short_memory(void) {
  cuplug__channel *channel;
  void *pointer;
  CUstream stream;
  enter();
  CHECK(!cuplug__channel_acquire(0, &channel, &error) && !cuplug__channel_pin(channel, 1, &error));
  cuplug__channel_release(channel);
  CHECK(fake_counts().n_streams == 1);
  CHECK(!cuplug__driver.cuStreamCreate(&stream, CUPLUG__STREAM_NON_BLOCKING));
  fake_cuda_capture_function *begin = fake_symbol("fake_cuda_begin_capture");
  fake_cuda_capture_function *end = fake_symbol("fake_cuda_end_capture");
  void *all = allocate(1000 << 10);
  CHECK(!begin(stream));
  CHECK(cuplug__device_allocate(0, 500 << 10, stream, &pointer, &error) == CUPLUG_ERROR_MEMORY);
  CHECK(!end(stream));
  CHECK(fake_counts().n_streams == 1 && fake_counts().n_misuses == 0);
  release(all);
  CHECK(!cuplug__driver.cuStreamDestroy(stream));
  check_nothing_left();
}

/* A free that is still on the default stream is waited for. */
static void trim_waits(void) {
  cuplug_memory_info info = {.struct_bytes = sizeof info};
  uint64_t freed = 0;
  enter();
  release(allocate(100 << 10));
  CHECK(!cuplug_query_memory(0, &info, &error) && info.reserved_bytes == 100 << 10);
  CHECK(!cuplug_trim(0, &freed, &error) && freed == 100 << 10);
  CHECK(!cuplug_query_memory(0, &info, &error) && info.reserved_bytes == 0);
  CHECK(info.total_bytes == 1 << 20 && !info.used_bytes && !info.pinned_bytes);
  CHECK(!cuplug_trim(0, NULL, &error));
  CHECK(cuplug_trim(2, &freed, &error) == CUPLUG_ERROR_VALUE);
  CHECK(cuplug_query_memory(-1, &info, &error) == CUPLUG_ERROR_VALUE);
  check_nothing_left();
}

static void queries_fail(void) {
  cuplug_memory_info info = {.struct_bytes = sizeof info};
  enter();
  CHECK(cuplug_query_memory(0, &info, &error) == CUPLUG_ERROR_CUDA);
  CHECK_MESSAGE(&error, "querying free memory: CUDA error 999");
  CHECK(cuplug_trim(0, NULL, &error) == CUPLUG_ERROR_CUDA);
  CHECK_MESSAGE(&error, "trimming the pool of device memory: CUDA error 999");
  CHECK(!cuplug_trim(0, NULL, &error));
}

/* Freed on the stream, and used by the next allocation on it, without waiting. */
static void reuse(void) {
  enter();
  long n_before = fake_counts().n_synchronizations;
  for (int i = 0; i < 10; i++) release(allocate(600 << 10));
  CHECK(fake_counts().n_synchronizations == n_before);
}

static void default_pool(void) {
  enter();
  release(allocate(1000));
  check_nothing_left();
}

static void no_pools(void) {
  void *pointer;
  enter();
  CHECK(cuplug__device_allocate(0, 1, CUPLUG__STREAM(NULL), &pointer, &error) == CUPLUG_ERROR_CUDA);
  CHECK_MESSAGE(&error, "cuda:0 has no stream-ordered memory pools");
}

static void pool_fails(void) {
  void *pointer;
  enter();
  CHECK(cuplug__device_allocate(0, 1, CUPLUG__STREAM(NULL), &pointer, &error) == CUPLUG_ERROR_CUDA);
  CHECK_MESSAGE(&error, "making a pool of device memory: CUDA error 999");
  release(allocate(1));
}

static void channels(void) {
  enum { N = CUPLUG__MAX_FREE_CHANNELS + 3 };
  cuplug__channel *all[N];
  enter();
  for (int i = 0; i < N; i++) {
    CHECK(!cuplug__channel_acquire(0, &all[i], &error));
    CHECK(all[i]->stream && all[i]->faults && all[i]->events[0]);
    CHECK(!all[i]->pinned && all[i]->device == 0);
    for (int k = 0; k < i; k++)
      CHECK(all[k] != all[i] && all[k]->faults != all[i]->faults &&
            all[k]->stream != all[i]->stream);
  }
  for (int i = 0; i < N; i++) cuplug__channel_release(all[i]);
  CHECK(fake_counts().n_streams == N - 3 && fake_counts().n_events == (N - 3) * CUPLUG__N_PINNED);
  cuplug__channel *again;
  CHECK(!cuplug__channel_acquire(0, &again, &error));
  CHECK(again == all[N - 4]);
  cuplug__channel_release(again);
  CHECK(fake_counts().n_streams == N - 3);
  check_nothing_left();
}

static void pinned(void) {
  const uint64_t together = CUPLUG__N_PINNED * CUPLUG__PINNED_SMALL;
  cuplug__channel *channel;
  enter();
  CHECK(!cuplug__channel_acquire(0, &channel, &error));
  CHECK(!cuplug__channel_pin(channel, 1, &error) && channel->pinned_bytes == CUPLUG__PINNED_SMALL);
  CHECK(!cuplug__channel_pin(channel, together, &error));
  CHECK(channel->pinned_bytes == CUPLUG__PINNED_SMALL);
  CHECK(!cuplug__channel_pin(channel, together + 1, &error));
  CHECK(channel->pinned_bytes == 4 * CUPLUG__PINNED_SMALL);
  CHECK(!cuplug__channel_pin(channel, 4 * together + 1, &error));
  CHECK(channel->pinned_bytes == CUPLUG__PINNED_LARGE && channel->pinned);
  CHECK(!cuplug__channel_pin(channel, 1, &error) && channel->pinned_bytes == CUPLUG__PINNED_LARGE);
  memset(channel->pinned, 1, CUPLUG__N_PINNED * channel->pinned_bytes);
  CHECK(fake_counts().n_pinned == 2); /* with the block of fault records */
  cuplug__channel_release(channel);
  check_nothing_left();
}

/* Pinned memory of idle channels is released if no more can be pinned. */
static void pinned_runs_short(void) {
  cuplug__channel *idle, *channel;
  enter();
  CHECK(!cuplug__channel_acquire(0, &idle, &error) &&
        !cuplug__channel_acquire(0, &channel, &error));
  CHECK(!cuplug__channel_pin(idle, 1, &error));
  cuplug__channel_release(idle);
  CHECK(!cuplug__channel_pin(channel, 1, &error));
  CHECK(fake_counts().n_streams == 1 && fake_counts().n_pinned == 2);
  CHECK(cuplug__channels_pinned(0) == CUPLUG__N_PINNED * CUPLUG__PINNED_SMALL);
  CHECK(cuplug__channel_pin(channel, UINT64_MAX, &error) == CUPLUG_ERROR_MEMORY);
  CHECK_MESSAGE(&error, "allocating pinned host memory: CUDA ran out of memory");
  CHECK(cuplug__channels_pinned(0) == 0);
  cuplug__channel_release(channel);
  check_nothing_left();
}

/* Beyond the limit, channels get or keep small buffers; buffers of idle channels are reused. */
static void pinned_limit(void) {
  enum { N = CUPLUG__MAX_PINNED / (CUPLUG__N_PINNED * CUPLUG__PINNED_LARGE) };
  cuplug__channel *all[N + 2];
  enter();
  for (int i = 0; i < N + 2; i++) CHECK(!cuplug__channel_acquire(0, &all[i], &error));
  CHECK(!cuplug__channel_pin(all[N], 1, &error));
  for (int i = 0; i < N + 2; i++) CHECK(!cuplug__channel_pin(all[i], UINT64_MAX, &error));
  for (int i = 0; i < N - 1; i++) CHECK(all[i]->pinned_bytes == CUPLUG__PINNED_LARGE);
  for (int i = N - 1; i < N + 2; i++) CHECK(all[i]->pinned_bytes == CUPLUG__PINNED_SMALL);
  for (int i = N; i >= 0; i--) cuplug__channel_release(all[i]);
  CHECK(!cuplug__channel_pin(all[N + 1], UINT64_MAX, &error));
  CHECK(all[N + 1]->pinned_bytes == CUPLUG__PINNED_LARGE);
  cuplug__channel_release(all[N + 1]);
  check_nothing_left();
}

/* A fault that its call did not read does not belong to the next call. */
static void stale_fault(void) {
  cuplug__channel *channel;
  enter();
  CHECK(!cuplug__channel_acquire(0, &channel, &error));
  channel->faults->records->claimed = 1, channel->faults->records->status = CUPLUG_ERROR_INDEX;
  cuplug__channel_release(channel);
  CHECK(!cuplug__channel_acquire(0, &channel, &error));
  CHECK(channel->faults->records->claimed == 0 && channel->faults->records->status == 0);
  cuplug__channel_release(channel);
}

/* The environment makes one call after another fail. In the end, a channel is created, and nothing
 * is lost. */
static void lane_fails(void) {
  cuplug__channel *channel;
  int n_failed = 0;
  enter();
  while (cuplug__channel_acquire(0, &channel, &error)) {
    CHECK_STATUS(&error, CUPLUG_ERROR_CUDA);
    CHECK_MESSAGE(&error, ": CUDA error 999");
    CHECK(fake_counts().n_streams == 0 && fake_counts().n_events == 0);
    CHECK(++n_failed < 10);
  }
  CHECK(n_failed == 4);
  while (cuplug__channel_pin(channel, 1, &error)) {
    CHECK_MESSAGE(&error, "allocating pinned host memory: CUDA error 999");
    CHECK(fake_counts().n_pinned == 1 && channel->pinned_bytes == 0);
    CHECK(++n_failed < 10);
  }
  CHECK(n_failed == 6);
  cuplug__channel_release(channel);
  check_nothing_left();
}

/* Its stream is broken: such a channel is not cached. */
static void lane_given_broken(void) {
  cuplug__channel *channel;
  enter();
  CHECK(!cuplug__channel_acquire(0, &channel, &error));
  cuplug__channel_release(channel);
  CHECK(fake_counts().n_streams == 0 && fake_counts().n_events == 0);
}

static void no_heap(void) {
  cuplug__channel *channel;
  enter();
  callocs_fail = 1;
  CHECK(cuplug__channel_acquire(0, &channel, &error) == CUPLUG_ERROR_MEMORY);
  CHECK_MESSAGE(&error, "out of memory while making a staging channel");
  callocs_fail = 0;
  CHECK(!cuplug__channel_acquire(0, &channel, &error));
  cuplug__channel_release(channel);
}

static void *use_lanes(void *unused) {
  cuplug_error mine;
  cuplug__channel *channel;
  void *pointer;
  const cuplug__context context = cuplug__cuda_enter(0, &mine);
  CHECK(!context.status);
  for (int i = 0; i < 100; i++) {
    CHECK(!cuplug__channel_acquire(0, &channel, &mine));
    CHECK(channel->faults->records->reserved_tail++ == 0);
    CHECK(!cuplug__device_allocate(0, 1000, channel->stream, &pointer, &mine));
    CHECK(!cuplug__device_free(pointer, channel->stream, &mine));
    channel->faults->records->reserved_tail--;
    cuplug__channel_release(channel);
  }
  cuplug__cuda_leave(&context);
  return unused;
}

static void threads(void) {
  pthread_t all[6];
  for (int i = 0; i < 6; i++) CHECK(!pthread_create(&all[i], NULL, use_lanes, NULL));
  for (int i = 0; i < 6; i++) CHECK(!pthread_join(all[i], NULL));
  CHECK(fake_counts().n_streams <= CUPLUG__MAX_FREE_CHANNELS);
  check_nothing_left();
}

static const scenario scenarios[] = {
    {"sizes", sizes, {NULL}},
    {"both_devices", both_devices, {NULL}},
    {"too_much", too_much, {"FAKE_CUDA_MEMORY_BYTES=1048576"}},
    {"trim", trim, {"FAKE_CUDA_MEMORY_BYTES=1048576"}},
    {"reclaim", reclaim, {"FAKE_CUDA_MEMORY_BYTES=1048576"}},
    {"short_memory", short_memory, {"FAKE_CUDA_MEMORY_BYTES=1048576"}},
    {"trim_waits", trim_waits, {"FAKE_CUDA_MEMORY_BYTES=1048576", "FAKE_CUDA_LAZY=1"}},
    {"queries_fail", queries_fail, {"FAKE_CUDA_FAIL=cuMemGetInfo:1:999,cuMemPoolTrimTo:1:999"}},
    {"reuse", reuse, {"FAKE_CUDA_MEMORY_BYTES=1048576", "FAKE_CUDA_LAZY=1"}},
    {"default_pool", default_pool, {"FAKE_CUDA_FAIL=cuMemPoolCreate:1:801"}},
    {"no_pools", no_pools, {"FAKE_CUDA_NO_POOLS=1"}},
    {"pool_fails", pool_fails, {"FAKE_CUDA_FAIL=cuMemPoolCreate:1:999"}},
    {"lanes", channels, {NULL}},
    {"pinned", pinned, {NULL}},
    {"pinned_limit", pinned_limit, {NULL}},
    {"pinned_runs_short",
     pinned_runs_short,
     {"FAKE_CUDA_FAIL=cuMemHostAlloc:4:2,cuMemHostAlloc:6:2,cuMemHostAlloc:7:2"}},
    {"stale_fault", stale_fault, {NULL}},
    {"lane_fails",
     lane_fails,
     {"FAKE_CUDA_FAIL=cuMemHostAlloc:1:999,cuStreamCreate:1:999,cuEventCreate:1:999,"
      "cuEventCreate:3:999,cuMemHostAlloc:6:999,cuMemHostAlloc:7:999"}},
    {"lane_given_broken", lane_given_broken, {"FAKE_CUDA_FAIL=cuStreamSynchronize:1:999"}},
    {"no_heap", no_heap, {NULL}},
    {"threads", threads, {NULL}},
};

int main(int argc, char **argv) {
  return run_scenarios(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
}
