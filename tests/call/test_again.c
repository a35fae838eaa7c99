/* sanitizers: address,undefined | thread */
/* SPDX-License-Identifier: Apache-2.0 */
/* Repeated calls: entries receive the same, and errors are the same, as in a call in two halves
 * without a cache; entries that call, fail or allocate memory; threads. */
#include "check.h"
#include "registry/plugin.h"
#include "registry/registry.h"

#include <pthread.h>
#include <runtime/define.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_CALLS 60000
#define MAX_ARGUMENTS 5
#define MAX_OUTPUTS 2
#define NOT_CALLED (-1)

static cuplug_error error;

static cuplug_operator *define(cuplug_definition_overload row) {
  const cuplug_definition d = {
      .plugin = "test", .version = "1", .origin = "<test>", .rows = &row, .n_rows = 1};
  cuplug_operator *op = NULL;
  if (cuplug_define(&d, &op, &error)) fprintf(stderr, "%s\n", error.message), exit(1);
  return op;
}

/* ---- Arguments of entries -------------------------------------------------------------------- */

typedef struct seen_tensor {
  const void *data;
  cuplug_device device;
  cuplug_dtype dtype;
  int32_t ndim, has_strides;
  int64_t shape[4], strides[4];
} seen_tensor;

typedef struct seen {
  uint32_t n_calls, n_tensors, n_inputs, n_scalars, max_threads;
  uint64_t none_mask, supplied_mask;
  cuplug_device device;
  ptrdiff_t first_output;
  const void *stream, *fault, *context;
  int64_t scalars[MAX_ARGUMENTS]; /* 0 for lists and None */
  seen_tensor tensors[MAX_ARGUMENTS + MAX_OUTPUTS];
} seen;

static _Thread_local seen last;
static _Thread_local int wanted_failure;

static int record(const cuplug_call *call) {
  seen *s = &last;
  const uint32_t n_calls = s->n_calls + 1;
  memset(s, 0, sizeof *s);
  s->n_calls = n_calls, s->n_tensors = call->n_tensors, s->n_inputs = call->n_inputs;
  s->n_scalars = call->n_scalars, s->max_threads = call->max_threads;
  s->none_mask = call->none_mask, s->supplied_mask = call->supplied_mask;
  s->device = call->device, s->first_output = call->outputs - call->tensors;
  s->stream = call->stream, s->fault = call->fault, s->context = call->context;
  for (uint32_t k = 0; k < call->n_scalars && !call->context; k++)
    if (!(call->none_mask >> k & 1)) s->scalars[k] = call->scalars[k].i;
  for (uint32_t k = 0; k < call->n_tensors; k++) {
    const cuplug_tensor *t = &call->tensors[k];
    seen_tensor *to = &s->tensors[k];
    to->data = t->data, to->device = t->device, to->dtype = t->dtype, to->ndim = t->ndim;
    to->has_strides = t->strides && t->ndim > 0;
    for (int32_t d = 0; d < t->ndim && d < 4; d++) {
      to->shape[d] = t->shape[d];
      if (t->strides) to->strides[d] = t->strides[d];
    }
  }
  if (wanted_failure == 1) return CUPLUG_ERROR_VALUE;
  if (wanted_failure == 2) return cuplug_fail(call, CUPLUG_ERROR_TYPE, "no");
  if (wanted_failure == 3 && cuplug_fail(call, CUPLUG_ERROR_TYPE, "reported")) return CUPLUG_OK;
  if (wanted_failure == 4 && !cuplug_workspace(call, 64)) return CUPLUG_ERROR_MEMORY;
  return CUPLUG_OK;
}

/* ---- Arguments at random --------------------------------------------------------------------- */

static const cuplug_definition_overload definitions[] = {
    {.signature = "f(x: float32[n], y: float32[n])"},
    {.signature = "f(x: T[...], y: T[...]) -> T[...] where T: float32 | int64"},
    {.signature = "f(x: T[...]) -> T[...] where T: any", .flags = CUPLUG_OVERLOAD_IN_PLACE},
    {.signature = "f(x: T[...]) -> T[...] where T: any", .flags = CUPLUG_OVERLOAD_TAKES_STRIDES},
    {.signature = "f(x: float32[n, m], a: float = 2, mode: 'p' | 'q' = 'q') -> float32[m, n]"},
    {.signature = "f(x: T[n], k: int = None, s: str = None) -> (T[n], int64[n]) "
                  "where T: float32 | int64"},
    {.signature = "f(x: float32[n], inout y: float32[n], k: int) where k > 1"},
    {.signature = "f(a: float, x: float32[n], inout y: float32[n]) -> float32[n]"},
    {.signature = "f(x: T[n], y: T[n] = None) -> zero T[n] where T: float32 | int64"},
    {.signature = "f(x: float32[n]) -> y: float32[n] where align(x) >= 16, align(y) >= 16"},
    {.signature = "f(x: float32[n], axes: int[]) -> float32[n]"},
};
#define N_OPERATORS (sizeof definitions / sizeof *definitions)

static cuplug_operator *operators[N_OPERATORS];

static unsigned seed = 1;
static int pick(int n) { return rand_r(&seed) % n; }
static int rarely(void) { return pick(40) == 0; }

static _Alignas(64) char memory[1 << 13];
static int64_t shapes[MAX_ARGUMENTS + MAX_OUTPUTS][4], strides[MAX_ARGUMENTS + MAX_OUTPUTS][4];

static cuplug_argument random_array(int k, int is_output) {
  cuplug_argument a = {.kind = CUPLUG_ARGUMENT_ARRAY};
  const uint32_t type = rarely() || (is_output && k && pick(2)) ? CUPLUG_INT64 : CUPLUG_FLOAT32;
  a.tensor.device.type = rarely() ? CUPLUG_CUDA_HOST : CUPLUG_CPU;
  a.tensor.dtype = (cuplug_dtype){(uint8_t)(type >> 24), (uint8_t)(type >> 16), (uint16_t)type};
  a.tensor.ndim = rarely() ? pick(4) : 1 + pick(2);
  a.tensor.shape = shapes[k];
  int64_t stride = 1;
  for (int32_t d = a.tensor.ndim - 1; d >= 0; d--) {
    shapes[k][d] = rarely() ? pick(3) : 2;
    strides[k][d] = stride;
    stride *= shapes[k][d] ? shapes[k][d] : 1;
  }
  if (rarely()) strides[k][0] += 1;
  a.tensor.strides = pick(2) ? strides[k] : NULL;
  const int place = rarely() ? pick(MAX_ARGUMENTS) : k;
  a.tensor.data = rarely() ? NULL : memory + 1024 * place + (rarely() ? 8 : 0);
  a.flags = rarely() ? 1u << pick(4) : 0;
  return a;
}

static cuplug_argument random_argument(int k, int kind) {
  static const cuplug_argument items[] = {{.kind = CUPLUG_ARGUMENT_INT}};
  if ((kind <= CUPLUG_PARAMETER_INOUT) ^ rarely()) return random_array(k, 0);
  if (kind == CUPLUG_PARAMETER_LIST && !rarely()) return cuplug_list_argument(items, 1);
  if (kind == CUPLUG_PARAMETER_CHOICE || kind == CUPLUG_PARAMETER_STRING)
    return rarely() ? cuplug_string("r") : pick(4) ? cuplug_string("p") : cuplug_none();
  switch (pick(5)) {
  case 0:
    return cuplug_none();
  case 1:
    return cuplug_float(rarely() ? 1e300 : 0.5);
  default:
    return cuplug_int(pick(4));
  }
}

/* ---- Both ways ------------------------------------------------------------------------------- */

static int in_halves(cuplug_operator *op, const cuplug_argument *args, uint32_t n, uint32_t n_out,
                     cuplug_error *e) {
  static cuplug_frame f;
  const uint64_t number = op->number;
  op->number = 0; /* nothing is cached */
  int status = cuplug_bind(op, args, n, &f, e);
  op->number = number;
  if (!status && cuplug_required_copies(&f)) return NOT_CALLED;
  for (uint32_t k = 0; k < n_out && !status; k++)
    status = cuplug_set_output(&f, k, args + n + k, e);
  if (!status) status = cuplug_run(&f, e);
  cuplug_free_blocks(f.blocks);
  return status;
}

static const cuplug_error *failed;
static int is_again;

static int otherwise(const cuplug_bound_call *bound, const cuplug_argument *args, uint32_t n,
                     uint32_t n_out, const cuplug_error *e) {
  failed = e, is_again = e != NULL;
  if (is_again) return e->status;
  cuplug_invoke(bound->op, args, n + n_out, NULL, &error); /* or by the function for both */
  failed = error.status ? &error : NULL;
  return error.status;
}

static void compare_both(void) {
  long n_run = 0, n_again = 0, n_wrong = 0;
  for (size_t i = 0; i < N_OPERATORS; i++) {
    cuplug_definition_overload row = definitions[i];
    row.host = record;
    row.context = strstr(row.signature, "[])") ? &operators[i] : NULL; /* it has a list */
    operators[i] = define(row);
  }
  for (int call = 0; call < N_CALLS; call++) {
    cuplug_argument args[MAX_ARGUMENTS + MAX_OUTPUTS];
    cuplug_operator *op = operators[pick(N_OPERATORS)];
    const cuplug_signature *s = op->overloads[0].signature;
    const uint32_t n = (uint32_t)s->n_parameters, n_out = (uint32_t)s->n_outputs;
    for (uint32_t k = 0; k < n + n_out; k++)
      args[k] = k < n ? random_argument((int)k, s->parameters[k].kind) : random_array((int)k, 1);
    wanted_failure = pick(10) ? 0 : 1 + pick(4);
    memset(&last, 0, sizeof last);
    cuplug_error wanted_error;
    const int wanted = in_halves(op, args, n, n_out, &wanted_error);
    const seen wanted_seen = last;
    for (int repeat = 0; wanted != NOT_CALLED && repeat < 3; repeat++) {
      memset(&last, 0, sizeof last);
      failed = NULL, is_again = 1;
      const int status = cuplug_call_again(&(cuplug_bound_call){op, 0, otherwise}, args, n, n_out);
      n_again += is_again;
      n_wrong += status != wanted || (failed ? failed->status : 0) != wanted ||
                 (failed && strcmp(failed->message, wanted_error.message)) ||
                 memcmp(&last, &wanted_seen, sizeof last);
    }
    n_run += !wanted;
  }
  CHECK(n_wrong == 0);
  CHECK(n_run > N_CALLS / 20 && n_again > N_CALLS / 10);
}

static int64_t two = 2;

static cuplug_argument floats(float *x) {
  const cuplug_tensor t = cuplug_make_tensor(x, CUPLUG_FLOAT32, 1, &two);
  return cuplug_array(&t);
}

/* A call is like one before it if an input, but not an output, is read-only. */
static void read_only_arrays(void) {
  float x[2], y[2];
  cuplug_argument args[] = {floats(x), floats(y)};
  const cuplug_bound_call bound = {operators[3], 0, otherwise};
  for (uint32_t k = 0; k < 8; k++) {
    args[0].flags = k % 2 ? CUPLUG_READ_ONLY : 0;
    is_again = 1;
    CHECK(!cuplug_call_again(&bound, args, 1, 1));
    CHECK(is_again || k < 4);
  }
  args[1].flags = CUPLUG_READ_ONLY;
  CHECK(cuplug_call_again(&bound, args, 1, 1) == CUPLUG_ERROR_VALUE && !is_again);
}

/* ---- Entries that call ----------------------------------------------------------------------- */

static cuplug_operator *outer;

static int nest(const cuplug_call *call) {
  float x[2], y[2];
  const double depth = call->scalars[0].f;
  const cuplug_argument args[] = {floats(x), cuplug_float(depth - 1), floats(y)};
  const void *in = call->tensors[0].data;
  cuplug_error own;
  if (depth > 0) CHECK(!cuplug_invoke(outer, args, 3, NULL, &own));
  CHECK(call->tensors[0].data == in && call->scalars[0].f == depth);
  *(float *)call->outputs[0].data = (float)depth;
  CHECK(depth <= 0 || y[0] == (float)depth - 1);
  return CUPLUG_OK;
}

static void entries_that_call(void) {
  float x[2], y[2] = {0};
  const cuplug_argument args[] = {floats(x), cuplug_float(7), floats(y)};
  outer = define((cuplug_definition_overload){
      .signature = "nest(x: float32[n], depth: float) -> float32[n]", .host = nest});
  for (int k = 0; k < 20; k++) {
    y[0] = 0;
    CHECK(!cuplug_invoke(outer, args, 3, NULL, &error) && y[0] == 7);
  }
}

/* In a forked child, entries start no threads. */
static void forked(void) {
  float x[2], y[2];
  const cuplug_argument args[] = {floats(x), floats(y)};
  cuplug__registry_lock(); /* from then on, forks are detected */
  cuplug__registry_unlock();
  for (int k = 0; k < 3; k++) CHECK(!cuplug_invoke(operators[0], args, 2, NULL, &error));
  CHECK(last.max_threads == 0);
  const pid_t child = fork();
  if (!child) {
    const int status = cuplug_invoke(operators[0], args, 2, NULL, &error);
    _exit(status || last.max_threads != 1);
  }
  int ended = 1;
  CHECK(child > 0 && waitpid(child, &ended, 0) == child && !ended);
}

static void *call_much(void *unused) {
  float x[2], y[2];
  const cuplug_argument args[] = {floats(x), floats(y)};
  (void)unused;
  wanted_failure = 0;
  for (int k = 0; k < 2000; k++) {
    cuplug_error own;
    const int status = cuplug_invoke(operators[0], args, 2, NULL, &own);
    if (status || last.tensors[0].data != x || last.tensors[1].data != y) return (void *)1;
  }
  return NULL;
}

static void threads(void) {
  pthread_t all[4];
  for (int k = 0; k < 4; k++) CHECK(!pthread_create(&all[k], NULL, call_much, NULL));
  for (int k = 0; k < 4; k++) {
    void *failed;
    CHECK(!pthread_join(all[k], &failed) && !failed);
  }
}

int main(void) {
  compare_both();
  wanted_failure = 0;
  read_only_arrays();
  entries_that_call();
  forked();
  threads();
  return n_failed != 0;
}
