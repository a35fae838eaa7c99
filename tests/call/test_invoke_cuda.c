/* sanitizers: address,undefined */
/* fake-cuda */
/* ldflags: -ldl -Wl,--wrap=clock_gettime */
/* SPDX-License-Identifier: Apache-2.0 */
/* cuplug_invoke on the fake driver: the memory that is requested if arrays are on a GPU, on the
 * host and offloaded, or absent; and the device of a call without arrays. */
#include "fake_operators.h"

#include <runtime/define.h>
#include <time.h>

#define N 5

typedef struct memory {
  int n_asked;
  cuplug_device device;
  int64_t n;
  void *data; /* of the program: passed unless it is NULL */
} memory;

static int allocate(void *user, uint32_t output, cuplug_tensor *x, cuplug_error *mine) {
  memory *m = user;
  CHECK(output == 0 && x->ndim == 1);
  m->n_asked++;
  m->device = x->device, m->n = x->shape[0];
  if (x->device.type == CUPLUG_CUDA)
    return cuplug_allocate_device(x->device.id, (uint64_t)m->n * 4, NULL, &x->data, mine) ||
           !(m->data = x->data);
  x->data = m->data;
  return CUPLUG_OK;
}

static cuplug_options allocating(memory *m, cuplug_device device) {
  cuplug_options options = cuplug_default_options();
  options.allocate = allocate, options.user = m, options.device = device;
  return options;
}

static const float values[N] = {1, -2, 3, 0, 5};
static const cuplug_device anywhere = {0, 0};

/* Offloaded: the memory is on the host. */
static void staged(void) {
  float x[N], out[N];
  int64_t n = N;
  memory m = {.data = out};
  const cuplug_options options = allocating(&m, gpu1);
  memcpy(x, values, sizeof x);
  const cuplug_argument args[] = {on_host(CUPLUG_FLOAT32, x, &n)};
  CHECK(!cuplug_invoke(find("positive"), args, 1, &options, &error));
  CHECK(m.n_asked == 1 && m.n == 3 && m.device.type == CUPLUG_CPU);
  CHECK(out[0] == 1 && out[1] == 3 && out[2] == 5);
  CHECK(!cuplug_invoke(find("triple"), args, 1, &options, &error));
  CHECK(m.n_asked == 2 && m.n == N && m.device.type == CUPLUG_CPU && out[4] == 15);
  m.data = NULL;
  CHECK(cuplug_invoke(find("positive"), args, 1, &options, &error) == CUPLUG_ERROR_VALUE);
  CHECK_MESSAGE(&error, "positive: output 0: allocate returned CUPLUG_OK without memory");
  check_all_given_back();
}

static void on_gpu(void) {
  int64_t n = N;
  float out[N];
  void *x;
  memory m = {0};
  const cuplug_options options = allocating(&m, anywhere);
  CHECK(!cuplug_allocate_device(1, sizeof values, NULL, &x, &error));
  CHECK(!cuplug_copy_to_device(1, x, values, sizeof values, NULL, &error));
  const cuplug_argument args[] = {array(CUPLUG_FLOAT32, x, &n, gpu1)};
  CHECK(!cuplug_invoke(find("triple"), args, 1, &options, &error));
  CHECK(m.n_asked == 1 && m.n == N && m.device.type == CUPLUG_CUDA && m.device.id == 1);
  CHECK(!cuplug_copy_to_host(1, out, m.data, (uint64_t)m.n * 4, NULL, &error));
  CHECK(out[0] == 3 && out[N - 1] == 15);
  CHECK(!cuplug_free_device(1, x, NULL, &error) && !cuplug_free_device(1, m.data, NULL, &error));
  check_all_given_back();
}

/* Each read of the clock takes a second, so that each copy is reported. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now) {
  static _Atomic long n_looks;
  (void)clock;
  *now = (struct timespec){.tv_sec = ++n_looks};
  return 0;
}

typedef struct reports {
  int n, status;
  uint64_t done_bytes;
} reports;

static int note_progress(void *user, uint64_t done_bytes, uint64_t total_bytes,
                         cuplug_error *mine) {
  reports *r = user;
  r->n++;
  CHECK(r->done_bytes <= done_bytes && done_bytes <= total_bytes);
  CHECK(total_bytes == 2 * sizeof values);
  r->done_bytes = done_bytes;
  if (r->status) snprintf(mine->message, 20, "enough"), mine->status = r->status;
  return r->status;
}

static void progress(void) {
  float x[N], out[N];
  int64_t n = N;
  reports r = {0};
  cuplug_options options = cuplug_default_options();
  options.device = gpu0, options.progress = note_progress, options.user = &r;
  memcpy(x, values, sizeof x);
  const cuplug_argument args[] = {on_host(CUPLUG_FLOAT32, x, &n), on_host(CUPLUG_FLOAT32, out, &n)};
  CHECK(!cuplug_invoke(find("triple"), args, 2, &options, &error));
  CHECK(r.n >= 2 && r.done_bytes == 2 * sizeof values && out[4] == 15);
  r = (reports){.status = CUPLUG_ERROR_VALUE};
  CHECK(cuplug_invoke(find("triple"), args, 2, &options, &error) == CUPLUG_ERROR_VALUE && r.n == 1);
  CHECK_MESSAGE(&error, "enough");
  check_all_given_back();
}

static cuplug_device seen;

static int note_device(const cuplug_call *call) {
  seen = call->device;
  return CUPLUG_OK;
}

/* Without array parameters: on the device of the outputs, or where it can run. */
static void without_inputs(void) {
  const cuplug_definition_overload row = {.signature = "make() -> float32[5]", .cuda = note_device};
  const cuplug_definition d = {.plugin = "test", .origin = "<test>", .rows = &row, .n_rows = 1};
  static cuplug_operator *make;
  void *data;
  float out[N];
  int64_t n = N;
  memory m = {0};
  cuplug_options options = allocating(&m, anywhere);
  CHECK(!cuplug_define(&d, &make, &error));
  CHECK(!cuplug_invoke(make, NULL, 0, &options, &error));
  CHECK(m.device.type == CUPLUG_CUDA && m.device.id == 0 && seen.id == 0);
  CHECK(!cuplug_free_device(0, m.data, NULL, &error));
  options.device = gpu1;
  CHECK(!cuplug_invoke(make, NULL, 0, &options, &error) && m.device.id == 1 && seen.id == 1);
  CHECK(!cuplug_free_device(1, m.data, NULL, &error));
  CHECK(!cuplug_allocate_device(1, sizeof out, NULL, &data, &error));
  const cuplug_argument there = array(CUPLUG_FLOAT32, data, &n, gpu1);
  const cuplug_argument here = on_host(CUPLUG_FLOAT32, out, &n);
  seen.id = 7;
  CHECK(!cuplug_invoke(make, &there, 1, NULL, &error) && seen.id == 1);
  CHECK(cuplug_invoke(make, &here, 1, NULL, &error) == CUPLUG_ERROR_VALUE);
  CHECK_MESSAGE(&error, "make: device: got the host, expected a GPU (no host entry in <test>)");
  CHECK(cuplug_invoke(make, &here, 1, &options, &error) == CUPLUG_ERROR_VALUE);
  CHECK_MESSAGE(&error, "make: out: got an array on the host, expected cuda:1 (as the call)");
  CHECK(!cuplug_free_device(1, data, NULL, &error));
  check_all_given_back();
}

static const scenario scenarios[] = {
    {"staged", staged, {"FAKE_CUDA_LAZY=1"}},
    {"progress", progress, {NULL}},
    {"on_gpu", on_gpu, {"FAKE_CUDA_LAZY=1"}},
    {"without_inputs", without_inputs, {NULL}},
};

int main(int argc, char **argv) {
  make_operators();
  return run_scenarios(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
}
