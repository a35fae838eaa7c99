/* sanitizers: thread | none */
/* fixture: waiting.c */
/* ldflags: -pthread -rdynamic */
/* SPDX-License-Identifier: Apache-2.0 */
/* No lock of the core is held while a library's constructors run: one of them waits for a thread
 * that uses the core, while other threads load the same plugin and look for others. */
#include "check.h"

#include <cuplug/host.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define N_THREADS 6

static pthread_barrier_t barrier;
static _Atomic int n_wrong;

static int load_and_call(cuplug_error *error) {
  cuplug_operator *op;
  uint32_t n;
  int status = cuplug_load("libwaiting.so", &op, 1, &n, error);
  if (!status) status = cuplug_load_code(op, error);
  return status ? status : cuplug_invoke(op, NULL, 0, NULL, error);
}

static int look_up(cuplug_error *error) {
  cuplug_listing *listing;
  cuplug_operator *op;
  int status = CUPLUG_OK;
  for (int k = 0; k < 20 && !status; k++) {
    status = cuplug_find(k % 2 ? "gather" : "gather.gather", &op, error);
    if (!status) status = cuplug_list(1, &listing, error);
    if (!status) cuplug_free_listing(listing);
  }
  return status;
}

static void *run(void *number) {
  cuplug_error error;
  pthread_barrier_wait(&barrier);
  int status = (size_t)number % 2 ? look_up(&error) : load_and_call(&error);
  if (!status) return NULL;
  fprintf(stderr, "%s\n", error.message);
  n_wrong++;
  return NULL;
}

int main(void) {
  pthread_t threads[N_THREADS];
  const char *plugins = getenv("CUPLUG_TEST_PLUGINS");
  if (!plugins) return fprintf(stderr, "CUPLUG_TEST_PLUGINS: a folder is wanted\n");
  setenv("LD_LIBRARY_CUPLUG_PATH", plugins, 1);
  alarm(120); /* ends a process whose threads wait for each other */
  CHECK(!pthread_barrier_init(&barrier, NULL, N_THREADS));
  for (size_t k = 0; k < N_THREADS; k++) CHECK(!pthread_create(&threads[k], NULL, run, (void *)k));
  for (size_t k = 0; k < N_THREADS; k++) pthread_join(threads[k], NULL);
  CHECK(!n_wrong);
  return n_failed != 0;
}
