/* SPDX-License-Identifier: Apache-2.0 */
/* sanitizers: address,undefined | thread */
/* fixture: states.c */
/* fake-cuda */
/* ldflags: -pthread -rdynamic */
/* States: created once for each device, with any number of first callers; one for each call if they
 * are exclusive; created again after a failure, and by a forked child for itself. */
#include "check.h"

#include <cuplug/host.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_THREADS 8
#define N_CALLS 20

typedef struct report {
  int64_t state, device, n_inputs;
  uint64_t supplied;
} report;

static cuplug_error error;
static pthread_barrier_t barrier;

static int call_on(cuplug_device device, const char *name, report *r, cuplug_error *mine) {
  cuplug_operator *op;
  cuplug_options options = cuplug_default_options();
  const cuplug_argument where = cuplug_uint((uintptr_t)r);
  options.device = device;
  int status = cuplug_find(name, &op, mine);
  return status ? status : cuplug_invoke(op, &where, 1, &options, mine);
}

static int call(const char *name, report *r, cuplug_error *mine) {
  return call_on((cuplug_device){0, 0}, name, r, mine);
}

static void *call_often(void *data) {
  cuplug_error mine;
  report r;
  int64_t state = -1, *n_states = data;
  pthread_barrier_wait(&barrier);
  for (int k = 0; k < N_CALLS; k++) {
    CHECK(!call("common", &r, &mine) && r.device == -1);
    CHECK(k == 0 || r.state == state);
    state = r.state;
    const int failed = call("alone", &r, &mine);
    if (failed) fprintf(stderr, "%s\n", mine.message);
    CHECK(!failed);
    if (r.state > *n_states) *n_states = r.state;
  }
  return (void *)(intptr_t)state;
}

static int64_t many_threads(void) {
  pthread_t threads[N_THREADS];
  int64_t most[N_THREADS] = {0}, n_states = 0;
  void *state, *first = NULL;
  CHECK(!pthread_barrier_init(&barrier, NULL, N_THREADS));
  for (int k = 0; k < N_THREADS; k++)
    CHECK(!pthread_create(&threads[k], NULL, call_often, &most[k]));
  for (int k = 0; k < N_THREADS; k++) {
    CHECK(!pthread_join(threads[k], &state));
    if (!k) first = state;
    CHECK(state == first);
    if (most[k] > n_states) n_states = most[k];
  }
  CHECK(n_states <= N_THREADS); /* one for each concurrent call, and the common one */
  pthread_barrier_destroy(&barrier);
  return (intptr_t)first;
}

static void each_device(int64_t on_host) {
  report r;
  int64_t seen[2];
  for (int32_t id = 0; id < 2; id++) {
    CHECK(!call_on((cuplug_device){CUPLUG_CUDA, id}, "common", &r, &error));
    CHECK(r.device == id && r.state != on_host);
    seen[id] = r.state;
    CHECK(!call_on((cuplug_device){CUPLUG_CUDA, id}, "common", &r, &error));
    CHECK(r.state == seen[id]);
  }
  CHECK(seen[0] != seen[1]);
}

static void failures(void) {
  report r;
  CHECK(call("late", &r, &error) == CUPLUG_ERROR_VALUE);
  CHECK_TEXT(error.message, "late: try 1");
  CHECK(call("late", &r, &error) == CUPLUG_ERROR_VALUE);
  CHECK_TEXT(error.message, "late: try 2");
  CHECK(!call("late", &r, &error));
  CHECK(call("greedy", &r, &error) == CUPLUG_ERROR_MEMORY);
  CHECK_TEXT(error.message, "greedy: workspace: got a request for 8 bytes while a state is created "
                            "or a handle closed, expected one during a call; allocate the memory");
  CHECK(call("circle", &r, &error) == CUPLUG_ERROR_PLUGIN);
  CHECK_TEXT(error.message, "circle: circle: state: its function make_circle called the plugin, "
                            "which needs the state");
}

/* The properties of outputs that an entry receives. */
static void outputs(int64_t state) {
  int64_t in = 0, out[2] = {-1, -1};
  report r;
  cuplug_operator *op;
  const cuplug_tensor x = cuplug_make_tensor(&in, CUPLUG_INT64, 0, NULL);
  const cuplug_tensor a = cuplug_make_tensor(&out[0], CUPLUG_INT64, 0, NULL);
  const cuplug_tensor b = cuplug_make_tensor(&out[1], CUPLUG_INT64, 0, NULL);
  const cuplug_argument args[] = {cuplug_array(&x), cuplug_uint((uintptr_t)&r), cuplug_array(&a),
                                  cuplug_array(&b)};
  CHECK(!cuplug_find("filled", &op, &error));
  CHECK(!cuplug_invoke(op, args, 4, NULL, &error));
  CHECK(out[0] == state && out[1] == state && r.n_inputs == 1 && r.supplied == 3);
}

/* A child does not use its parent's states, and its own child neither. */
static void forks(int depth, int64_t parents) {
  int status;
  report r;
  const pid_t child = fork();
  if (!child) {
    alarm(60);
    int is_fine = !call("common", &r, &error) && r.state != parents && r.device == -1;
    const int64_t own = r.state;
    is_fine = is_fine && !call("common", &r, &error) && r.state == own;
    is_fine = is_fine && !call("alone", &r, &error);
    if (is_fine && depth) forks(depth - 1, own);
    _exit(!is_fine || n_failed);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

int main(void) {
  char folder[4096];
  CHECK(getcwd(folder, sizeof folder));
  setenv("LD_LIBRARY_CUPLUG_PATH", folder, 1);
  const int64_t state = many_threads();
  outputs(state);
  each_device(state);
  failures();
  forks(1, state);
  return n_failed != 0;
}
