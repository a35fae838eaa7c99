/* sanitizers: thread */
/* ldflags: -pthread */
/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that find and load the same operators at the same time, for the first time; and a fork in
 * between. Each round has its own copy of a plugin, as code is loaded but once. */
#include "check.h"
#include "registry/plugin.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_THREADS 6
#define N_ROUNDS 8

static char folder[] = "/tmp/cuplug-threads-XXXXXX";
static char path[128];
static pthread_barrier_t barrier;

typedef struct worker {
  pthread_t thread;
  int number;
  int failed;
  cuplug_operator *loaded, *found;
  cuplug_entry *entry;
  cuplug_error error;
} worker;

static int use(worker *w) {
  cuplug_error *error = &w->error;
  cuplug_listing *listing;
  uint32_t n;
  int status = cuplug_load(path, &w->loaded, 1, &n, error);
  if (!status) status = cuplug_load_code(w->loaded, error);
  if (!status) w->entry = w->loaded->overloads[0].host;
  if (!status) status = cuplug_find(w->number % 2 ? "gather" : "gather.gather", &w->found, error);
  if (!status) status = cuplug_load_code(w->found, error);
  if (!status) status = cuplug_list(1, &listing, error);
  if (!status) cuplug_free_listing(listing);
  return status;
}

static void *run(void *data) {
  worker *w = data;
  pthread_barrier_wait(&barrier);
  w->failed = use(w);
  return NULL;
}

static void copy_plugin(const char *from, int round_number) {
  char command[512];
  snprintf(path, sizeof(path), "%s/%d", folder, round_number);
  CHECK(!mkdir(path, 0755));
  snprintf(path, sizeof(path), "%s/%d/libgather.so", folder, round_number);
  snprintf(command, sizeof(command), "cp '%s/libgather.so' '%s'", from, path);
  CHECK(!system(command));
}

/* A child that was forked while other threads hold the lock can continue. */
static void fork_now(void) {
  cuplug_operator *op;
  cuplug_error error;
  int status;
  pid_t child = fork();
  if (!child) {
    alarm(60);
    _exit(cuplug_find("gather", &op, &error) != CUPLUG_OK);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static void run_round(int forks) {
  static worker workers[N_THREADS];
  memset(workers, 0, sizeof(workers));
  CHECK(!pthread_barrier_init(&barrier, NULL, N_THREADS + 1));
  for (int k = 0; k < N_THREADS; k++) {
    workers[k].number = k;
    CHECK(!pthread_create(&workers[k].thread, NULL, run, &workers[k]));
  }
  pthread_barrier_wait(&barrier);
  if (forks) fork_now();
  for (int k = 0; k < N_THREADS; k++) pthread_join(workers[k].thread, NULL);
  for (int k = 0; k < N_THREADS; k++) {
    if (workers[k].failed) fprintf(stderr, "%s\n", workers[k].error.message);
    CHECK(!workers[k].failed && workers[k].entry);
    CHECK(workers[k].loaded == workers[0].loaded && workers[k].found == workers[0].loaded);
    CHECK(workers[k].entry == workers[0].entry);
  }
  pthread_barrier_destroy(&barrier);
}

int main(void) {
  char command[64];
  const char *plugins = getenv("CUPLUG_TEST_PLUGINS");
  if (!plugins || !mkdtemp(folder)) {
    fprintf(stderr, "CUPLUG_TEST_PLUGINS: the folder of the stock plugins is expected\n");
    return 1;
  }
  setenv("LD_LIBRARY_CUPLUG_PATH", plugins, 1);
  for (int k = 0; k < N_ROUNDS && !n_failed; k++) {
    copy_plugin(plugins, k);
    run_round(k == N_ROUNDS - 1);
  }
  snprintf(command, sizeof(command), "rm -r %s", folder);
  CHECK(!system(command));
  return n_failed != 0;
}
