/* sanitizers: thread */
/* fixture: waiting.c */
/* ldflags: -pthread -rdynamic */
/* SPDX-License-Identifier: Apache-2.0 */
/* No lock of the core is held while a library's constructors run: one of them waits for a thread
 * that uses the core, while other threads load the same plugin and search for others. */
#include "check.h"

#include <cuplug/host.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define N_THREADS 6

static pthread_barrier_t barrier;
static cuplug_operator *waiting, *fresh[N_THREADS];

static int load_and_call(cuplug_error *error) {
  cuplug_operator *op;
  int status = cuplug_load("libwaiting.so", &op, 1, NULL, error);
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

static int reload(size_t number, cuplug_error *error) {
  int status = cuplug_reload(waiting, &fresh[number], error);
  return status ? status : cuplug_invoke(fresh[number], NULL, 0, NULL, error);
}

/* Some threads search for plugins, the others load one, or reload its new file. */
static void *run(void *data) {
  const size_t number = (size_t)data;
  cuplug_error error;
  pthread_barrier_wait(&barrier);
  int status = number % 2 ? look_up(&error)
               : waiting  ? reload(number, &error)
                          : load_and_call(&error);
  if (status) fprintf(stderr, "%s\n", error.message);
  return status ? &barrier : NULL;
}

static void run_threads(void) {
  pthread_t threads[N_THREADS];
  void *failed;
  for (size_t k = 0; k < N_THREADS; k++) CHECK(!pthread_create(&threads[k], NULL, run, (void *)k));
  for (size_t k = 0; k < N_THREADS; k++) CHECK(!pthread_join(threads[k], &failed) && !failed);
}

/* If several threads reload a file, one loads it, and all use the result. */
static void check_reload(void) {
  CHECK(!cuplug_find("waiting", &waiting, NULL));
  CHECK(!system("cp libwaiting.so copy.so && mv copy.so libwaiting.so"));
  run_threads();
  for (size_t k = 0; k < N_THREADS; k += 2) CHECK(fresh[k] == fresh[0]);
  CHECK(fresh[0] && fresh[0] != waiting);
  CHECK(!cuplug_find("waiting", &waiting, NULL) && waiting == fresh[0]);
}

int main(void) {
  const char *plugins = getenv("CUPLUG_TEST_PLUGINS");
  if (!plugins) return fprintf(stderr, "CUPLUG_TEST_PLUGINS: a folder is expected\n");
  setenv("LD_LIBRARY_CUPLUG_PATH", plugins, 1);
  alarm(120); /* ends a process whose threads wait for each other */
  CHECK(!pthread_barrier_init(&barrier, NULL, N_THREADS));
  run_threads();
  if (!n_failed) check_reload();
  return n_failed != 0;
}
