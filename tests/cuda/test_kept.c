/* sanitizers: address,undefined | thread */
/* fake-cuda */
/* ldflags: -ldl */
/* SPDX-License-Identifier: Apache-2.0 */
/* Freed memory that is cached for later allocations of the same size. The GPU has 1 MiB, so blocks
 * of up to 1 KiB are cached. */
#include "cuda/driver.h"
#include "cuda/gpus.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "scenarios.h"

#include <internal/functions.h>
#include <pthread.h>

#define MOST 1024
#define N_SLOTS 16

static cuplug_error error;

static void enter(void) { CHECK(!cuplug__cuda_enter(0, &error).status); }

static void *allocate_on(void *stream, uint64_t bytes) {
  void *pointer = NULL;
  CHECK(!cuplug__device_allocate(0, bytes, stream, &pointer, &error));
  return pointer;
}

static void *allocate(uint64_t bytes) { return allocate_on(CUPLUG__STREAM(NULL), bytes); }

static void release(void *pointer, uint64_t bytes) {
  CHECK(!cuplug__device_release(0, pointer, bytes, CUPLUG__STREAM(NULL), &error));
}

static long n_allocations(void) { return fake_counts().n_allocations; }

static void trim_to_nothing(void) {
  cuplug_memory_info info = {.struct_bytes = sizeof info};
  CHECK(!cuplug_query_memory(0, &info, &error) && !info.used_bytes);
  CHECK(!cuplug_trim(0, NULL, &error));
  check_nothing_left();
}

static void as_many_bytes(void) {
  enter();
  void *first = allocate(1000), *second = allocate(1000);
  release(first, 1000);
  release(second, 1000);
  CHECK(n_allocations() == 2);
  void *other = allocate(996);
  CHECK(other != first && other != second && n_allocations() == 3);
  void *again = allocate(997); /* in whole words as many */
  CHECK(again == first || again == second);
  CHECK(allocate(1000) == (again == first ? second : first));
  CHECK(n_allocations() == 3);
  release(first, 1000);
  release(second, 1000);
  release(other, 996);
  release(NULL, 1000);
  trim_to_nothing();
}

static void not_kept(void) {
  CUstream stream;
  enter();
  release(allocate(MOST + 4), MOST + 4);
  CHECK(n_allocations() == 0);
  CHECK(!cuplug__driver.cuStreamCreate(&stream, CUPLUG__STREAM_NON_BLOCKING));
  void *pointer = allocate_on(stream, 100);
  CHECK(!cuplug__device_release(0, pointer, 100, stream, &error));
  CHECK(n_allocations() == 0);
  release(pointer = allocate(100), 100);
  void *other = allocate_on(stream, 100); /* not a block freed on the default one */
  CHECK(other != pointer && n_allocations() == 2);
  CHECK(!cuplug__device_free(other, stream, &error));
  CHECK(!cuplug__driver.cuStreamDestroy(stream));
  trim_to_nothing();
}

static void one_makes_room(void) {
  void *blocks[3 * N_SLOTS];
  enter();
  for (int k = 0; k < 3 * N_SLOTS; k++) blocks[k] = allocate((uint64_t)(4 + 4 * k));
  for (int k = 0; k < 3 * N_SLOTS; k++) release(blocks[k], (uint64_t)(4 + 4 * k));
  CHECK(n_allocations() == N_SLOTS);
  trim_to_nothing();
}

/* Released before memory runs out. */
static void short_of_memory(void) {
  enter();
  void *most = allocate((1 << 20) - MOST);
  release(allocate(MOST), MOST);
  void *rest = allocate(MOST / 2), *more = allocate(MOST / 2);
  release(rest, MOST / 2);
  release(more, MOST / 2);
  release(most, (1 << 20) - MOST);
  trim_to_nothing();
}

static void from_outside(void) {
  void *pointer;
  CHECK(!cuplug_allocate_device(0, 100, NULL, &pointer, &error));
  CHECK(!cuplug_release_device(0, pointer, 100, NULL));
  CHECK(n_allocations() == 1);
  void *again;
  CHECK(!cuplug_allocate_device(0, 100, NULL, &again, &error) && again == pointer);
  CHECK(!cuplug_free_device(0, again, NULL, &error)); /* of unknown size */
  CHECK(n_allocations() == 0);
  CHECK(cuplug_release_device(7, pointer, 100, NULL) == CUPLUG_ERROR_VALUE);
  enter();
  trim_to_nothing();
}

/* Each block belongs to one thread at a time. */
static void *use(void *number) {
  cuplug_error mine;
  CHECK(!cuplug__cuda_enter(0, &mine).status);
  for (int i = 0; i < 3000; i++) {
    void *pointer = NULL;
    const uint64_t bytes = 64 + 64 * (uint64_t)(i % 5);
    CHECK(!cuplug__device_allocate(0, bytes, CUPLUG__STREAM(NULL), &pointer, &mine));
    memset(pointer, (int)(intptr_t)number, bytes);
    for (uint64_t k = 0; k < bytes; k++) CHECK(((char *)pointer)[k] == (char)(intptr_t)number);
    CHECK(!cuplug__device_release(0, pointer, bytes, CUPLUG__STREAM(NULL), &mine));
    if (i % 500 == 499) CHECK(!cuplug_trim(0, NULL, &mine));
  }
  return NULL;
}

static void threads(void) {
  pthread_t all[6];
  for (intptr_t k = 0; k < 6; k++) CHECK(!pthread_create(&all[k], NULL, use, (void *)(k + 1)));
  for (int k = 0; k < 6; k++) CHECK(!pthread_join(all[k], NULL));
  enter();
  trim_to_nothing();
}

#define SMALL \
  { "FAKE_CUDA_MEMORY_BYTES=1048576" }
static const scenario scenarios[] = {
    {"as_many_bytes", as_many_bytes, SMALL},   {"not_kept", not_kept, SMALL},
    {"one_makes_room", one_makes_room, SMALL}, {"short_of_memory", short_of_memory, SMALL},
    {"from_outside", from_outside, SMALL},     {"threads", threads, SMALL},
};

int main(int argc, char **argv) {
  return run_scenarios(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
}
