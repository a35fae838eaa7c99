/* sanitizers: thread | address,undefined */
/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of a GPU: few threads at once; others wait, but none without end. */
#include "staging/stage.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHECK(condition)                                                    \
  do {                                                                      \
    if (condition) break;                                                   \
    fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
    exit(1);                                                                \
  } while (0)

#define N_THREADS 8

static _Atomic int n_running, n_most;
static cuplug__progress_tracker unwatched;

static void note_most(int n) {
  for (int seen = n_most; n > seen && !atomic_compare_exchange_weak(&n_most, &seen, n);) continue;
}

static void *take_turns(void *device) {
  const int32_t id = (int32_t)(intptr_t)device;
  for (int k = 0; k < 20; k++) {
    CHECK(!cuplug__gpu_slot_acquire(id, &unwatched, NULL));
    note_most(++n_running);
    usleep(500);
    n_running--;
    cuplug__gpu_slot_release(id);
  }
  return NULL;
}

static void few_at_once(void) {
  pthread_t all[N_THREADS];
  for (int i = 0; i < N_THREADS; i++)
    CHECK(!pthread_create(&all[i], NULL, take_turns, (void *)(intptr_t)3));
  for (int i = 0; i < N_THREADS; i++) CHECK(!pthread_join(all[i], NULL));
  CHECK(n_most >= 1 && n_most <= CUPLUG__GPU_SLOTS);
}

static void *take_one(void *status) {
  cuplug__progress_tracker *tracker = status;
  cuplug_error error;
  const int32_t device = 0;
  const int ended = cuplug__gpu_slot_acquire(device, tracker, &error);
  if (!ended) cuplug__gpu_slot_release(device);
  return (void *)(intptr_t)ended;
}

static void *one_more(cuplug__progress_tracker *tracker) {
  pthread_t thread;
  void *status;
  CHECK(!pthread_create(&thread, NULL, take_one, tracker));
  CHECK(!pthread_join(thread, &status));
  return status;
}

static int end(void *user, uint64_t done_bytes, uint64_t total_bytes, cuplug_error *error) {
  (void)user, (void)done_bytes, (void)total_bytes, (void)error;
  return CUPLUG_ERROR_VALUE;
}

/* A thread that has a slot gets another one. A thread for whose call all others wait continues in
 * the end, and the caller of a waiting one may end it. */
static void none_for_ever(void) {
  cuplug__progress_tracker tracker;
  for (int k = 0; k <= CUPLUG__GPU_SLOTS; k++)
    CHECK(!cuplug__gpu_slot_acquire(0, &unwatched, NULL));
  cuplug__progress_tracker_start(&tracker, end, NULL, 100);
  tracker.next_ns = 0;
  CHECK((intptr_t)one_more(&tracker) == CUPLUG_ERROR_VALUE);
  CHECK(!one_more(&unwatched));
  for (int k = 0; k <= CUPLUG__GPU_SLOTS; k++) cuplug__gpu_slot_release(0);
  CHECK(!one_more(&unwatched));
}

int main(void) {
  few_at_once();
  none_for_ever();
  return 0;
}
