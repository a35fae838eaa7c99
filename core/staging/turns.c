/* SPDX-License-Identifier: Apache-2.0 */
#include "staging/turns.h"

#include "cuda/gpus.h"

#include <pthread.h>
#include <time.h>

#define PERIOD_NS 100000000 /* after which a waiting thread reports */
#define N_PERIODS 20        /* after which it goes on, come what may */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_given = PTHREAD_COND_INITIALIZER;
static int n_running[CUPLUG__MAX_GPUS]; /* under the lock */
static _Thread_local int n_own;

static struct timespec after(long ns) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  t.tv_nsec += ns;
  if (t.tv_nsec >= 1000000000) t.tv_nsec -= 1000000000, t.tv_sec++;
  return t;
}

/* 1 with a turn, 0 after a period in which there was none. */
static int begin(int32_t device, int at_most) {
  const struct timespec end = after(PERIOD_NS);
  int code = 0;
  pthread_mutex_lock(&lock);
  while (!code && n_running[device] >= at_most)
    code = pthread_cond_timedwait(&is_given, &lock, &end);
  const int has_turn = n_running[device] < at_most;
  n_running[device] += has_turn;
  pthread_mutex_unlock(&lock);
  return has_turn;
}

int cuplug__turn_take(int32_t device, cuplug__watch *watch, cuplug_error *error) {
  for (int k = n_own ? N_PERIODS : 0; !begin(device, k < N_PERIODS ? CUPLUG__TURNS : INT32_MAX);
       k++) {
    int status = cuplug__watch_add(watch, 0, error);
    if (status) return status;
  }
  n_own++;
  return CUPLUG_OK;
}

void cuplug__turn_give(int32_t device) {
  pthread_mutex_lock(&lock);
  n_running[device]--;
  pthread_cond_broadcast(&is_given);
  pthread_mutex_unlock(&lock);
  n_own--;
}
