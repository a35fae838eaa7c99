/* SPDX-License-Identifier: Apache-2.0 */
/* Times calls of an operator that does nothing, or of strtod, which shares nothing between threads,
 * from many threads of a C program.
 *
 *     call_threads cuplug|strtod N_THREADS N_CALLS
 *
 * prints the nanoseconds until all threads have made N_CALLS each. */
#include <cuplug/host.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_THREADS 256
#define SIZE 16

static cuplug_operator *op;
static pthread_barrier_t barrier;
static int n_calls;

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static cuplug_argument array_of(float *data, int64_t *shape) {
  const cuplug_tensor tensor = cuplug_make_tensor(data, CUPLUG_FLOAT32, 1, shape);
  return cuplug_array(&tensor);
}

/* Returns NULL, or the message of the call that failed. */
static void *caller(void *message) {
  float data[3][SIZE] = {{0}};
  int64_t shape[] = {SIZE};
  cuplug_argument args[3];
  cuplug_error error;
  void *failed = NULL;
  for (int k = 0; k < 3; k++) args[k] = array_of(data[k], shape);
  pthread_barrier_wait(&barrier);
  for (int k = 0; k < n_calls && !failed; k++)
    if (cuplug_invoke(op, args, 3, NULL, &error)) {
      snprintf(message, 200, "%s", error.message);
      failed = message;
    }
  pthread_barrier_wait(&barrier);
  return failed;
}

static void *parser(void *unused) {
  volatile double sum = 0;
  (void)unused;
  pthread_barrier_wait(&barrier);
  for (int k = 0; k < n_calls; k++) sum = sum + strtod("3.14159", NULL);
  pthread_barrier_wait(&barrier);
  return NULL;
}

static int run(void *(*work)(void *), int n_threads) {
  pthread_t threads[MAX_THREADS];
  char messages[MAX_THREADS][200];
  void *failed = NULL;
  pthread_barrier_init(&barrier, NULL, (unsigned)n_threads + 1);
  for (int k = 0; k < n_threads; k++)
    if (pthread_create(&threads[k], NULL, work, messages[k])) return fprintf(stderr, "threads\n");
  int64_t start_ns = now_ns();
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  int64_t elapsed_ns = now_ns() - start_ns;
  for (int k = 0; k < n_threads; k++) {
    void *message = NULL;
    pthread_join(threads[k], &message);
    if (message) failed = message;
  }
  if (failed) return fprintf(stderr, "%s\n", (const char *)failed);
  return printf("%lld\n", (long long)elapsed_ns) < 0;
}

int main(int argc, char **argv) {
  int n_threads = argc == 4 ? atoi(argv[2]) : 0;
  cuplug_error error;
  if (n_threads < 1 || n_threads > MAX_THREADS)
    return fprintf(stderr, "cuplug|strtod N_THREADS N_CALLS\n");
  n_calls = atoi(argv[3]);
  if (!strcmp(argv[1], "strtod")) return run(parser, n_threads) != 0;
  if (cuplug_find("noop.noop3", &op, &error) || cuplug_load_code(op, &error))
    return fprintf(stderr, "%s\n", error.message);
  return run(caller, n_threads) != 0;
}
