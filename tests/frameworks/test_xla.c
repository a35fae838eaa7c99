/* sanitizers: address,undefined */
/* fake-cuda */
/* ldflags: -ldl */
/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that XLA calls, called by a replacement for it, on the fake driver: attributes of
 * all kinds and damaged ones, results, scalars that are operands, workspaces of captured calls. */
#include "fake_operators.h"

#include "cuda/driver.h"
#include "cuda/gpus.h"
#include "jax/xla.h"

#include <runtime/xla.h>

#define N 4
#define PROCESS 77

/* ---- XLA --------------------------------------------------------------------------------------
 */

struct cuplug__xla_error {
  char message[512];
  int32_t code;
};
struct cuplug__xla_context {
  void *state, *stream;
  int32_t device;
};

static struct cuplug__xla_error refused;
static void (*destroy)(void *state);
static const int64_t state_type = 9;

static cuplug__xla_error *create_error(cuplug__xla_error_args *args) {
  snprintf(refused.message, sizeof refused.message, "%s", args->message);
  refused.code = args->code;
  return &refused;
}
static cuplug__xla_error *register_type(cuplug__xla_type_args *args) {
  CHECK(args->name.n && !*args->type);
  *args->type = state_type;
  destroy = args->info->destroy;
  return NULL;
}
static cuplug__xla_error *set_state(cuplug__xla_state_args *args) {
  CHECK(*args->type == state_type && args->stage == 0);
  args->context->state = args->state;
  return NULL;
}
static cuplug__xla_error *get_state(cuplug__xla_state_args *args) {
  CHECK(*args->type == state_type && args->stage == 0);
  args->state = args->context->state;
  return NULL;
}
static cuplug__xla_error *get_stream(cuplug__xla_stream_args *args) {
  args->stream = args->context->stream;
  return NULL;
}
static cuplug__xla_error *get_device(cuplug__xla_device_args *args) {
  args->device = args->context->device;
  return NULL;
}

static const cuplug__xla_api api = {.struct_bytes = sizeof api,
                                    .version = {.minor = 3},
                                    .create_error = create_error,
                                    .get_stream = get_stream,
                                    .register_type = register_type,
                                    .set_state = set_state,
                                    .get_state = get_state,
                                    .get_device = get_device};

#define F32 11
#define F64 12
#define S64 5
#define MOST 8

/* One place in a program where an operator is called. */
typedef struct site {
  cuplug__xla_context context;
  cuplug__xla_span names[MOST], *name_list[MOST], texts[MOST];
  cuplug__xla_scalar scalars[MOST];
  cuplug__xla_array arrays[MOST];
  int64_t integers[2];
  int32_t kinds[MOST];
  void *values[MOST];
  cuplug__xla_buffer buffers[2 * MOST];
  cuplug__xla_buffer *operands[MOST], *results[MOST];
  int32_t one[MOST];
  cuplug__xla_call call;
} site;

static void add_attribute(site *s, const char *name, int32_t kind, void *value) {
  const int64_t k = s->call.attributes.n++;
  s->names[k] = (cuplug__xla_span){name, strlen(name)};
  s->name_list[k] = &s->names[k];
  s->kinds[k] = kind;
  s->values[k] = value;
}

static void add_text(site *s, const char *name, const char *text) {
  cuplug__xla_span *span = &s->texts[s->call.attributes.n];
  *span = (cuplug__xla_span){text, strlen(text)};
  add_attribute(s, name, CUPLUG__XLA_STRING, span);
}

static void add_scalar(site *s, const char *name, int32_t dtype, const void *value) {
  cuplug__xla_scalar *scalar = &s->scalars[s->call.attributes.n];
  *scalar = (cuplug__xla_scalar){dtype, value};
  add_attribute(s, name, CUPLUG__XLA_SCALAR, scalar);
}

static void add_array(site *s, const char *name, int32_t dtype, size_t n, const void *values) {
  cuplug__xla_array *array = &s->arrays[s->call.attributes.n];
  *array = (cuplug__xla_array){dtype, n, values};
  add_attribute(s, name, CUPLUG__XLA_ARRAY, array);
}

/* In XLA's order: the names are sorted. */
static void start_site(site *s, const char *name, const char *arguments) {
  memset(s, 0, sizeof *s);
  s->call.struct_bytes = sizeof s->call;
  s->call.api = &api;
  s->call.context = &s->context;
  s->call.attributes.kinds = s->kinds;
  s->call.attributes.names = s->name_list;
  s->call.attributes.values = s->values;
  s->call.operands.buffers = s->operands;
  s->call.results.buffers = s->results;
  s->call.operands.kinds = s->call.results.kinds = s->one;
  s->integers[0] = (int64_t)(uintptr_t)(name ? find(name) : NULL);
  s->integers[1] = PROCESS;
  add_scalar(s, "address", S64, &s->integers[0]);
  add_text(s, "arguments", arguments);
  add_scalar(s, "process", S64, &s->integers[1]);
}

static void add_buffer(site *s, cuplug__xla_buffers *to, int32_t dtype, void *data, int64_t ndim,
                       int64_t *shape) {
  cuplug__xla_buffer *buffer = &s->buffers[s->call.operands.n + s->call.results.n];
  *buffer = (cuplug__xla_buffer){sizeof *buffer, NULL, dtype, data, ndim, shape};
  to->buffers[to->n++] = buffer;
}

static int refuses(const cuplug__xla_error *error, int32_t code, const char *part) {
  if (error && error->code == code && strstr(error->message, part)) return 1;
  fprintf(stderr, "got %s\n", error ? error->message : "no error");
  return 0;
}

/* Nothing else is called before a function's metadata are requested. */
static void ask_metadata(cuplug_xla_handler *handler, uint32_t traits, int64_t state) {
  cuplug__xla_metadata metadata = {.struct_bytes = sizeof metadata};
  cuplug__xla_extension extension = {sizeof extension, CUPLUG__XLA_ASKS_METADATA, NULL, &metadata};
  cuplug__xla_call call = {.struct_bytes = sizeof call, .extensions = &extension, .api = &api};
  CHECK(!handler(&call));
  CHECK(metadata.version.major == 0 && metadata.version.minor == 3);
  CHECK(metadata.traits == traits && metadata.state_type == state);
}

static void register_handlers(void) {
  ask_metadata(cuplug_xla_execute_cpu, 0, state_type);
  ask_metadata(cuplug_xla_instantiate_cpu, 0, state_type);
  ask_metadata(cuplug_xla_execute_cuda, CUPLUG__XLA_CAN_BE_REPLAYED, state_type);
  ask_metadata(cuplug_xla_execute_cuda_waiting, 0, state_type);
  cuplug_xla_begin(PROCESS);
}

static void let_go(site *s) { destroy(s->context.state); }

/* ---- Scenarios --------------------------------------------------------------------------------
 */

static void on_the_host(void) {
  float x[N] = {1, 2, 3, 4}, out[N];
  int64_t n = N, shorter = N - 1;
  site s;
  register_handlers();
  start_site(&s, "triple", "a");
  CHECK(!cuplug_xla_instantiate_cpu(&s.call));
  add_buffer(&s, &s.call.operands, F32, x, 1, &n);
  add_buffer(&s, &s.call.results, F32, out, 1, &n);
  CHECK(!cuplug_xla_execute_cpu(&s.call) && out[0] == 3 && out[3] == 12);
  s.buffers[1].shape = &shorter;
  CHECK(refuses(cuplug_xla_execute_cpu(&s.call), CUPLUG__XLA_INVALID_ARGUMENT, "triple: out: got"));
  s.buffers[1].shape = &n, s.buffers[1].dtype = 32;
  CHECK(refuses(cuplug_xla_execute_cpu(&s.call), CUPLUG__XLA_INVALID_ARGUMENT, "XLA's type 32"));
  s.call.results.n = 0;
  CHECK(refuses(cuplug_xla_execute_cpu(&s.call), CUPLUG__XLA_INVALID_ARGUMENT,
                "triple: got 0 results, expected 1"));
  s.call.operands.n = 0;
  CHECK(refuses(cuplug_xla_execute_cpu(&s.call), CUPLUG__XLA_INVALID_ARGUMENT,
                "triple: got 0 operands, expected 1"));
  let_go(&s);
}

/* A scalar as a constant, as an operand, and omitted. */
static void in_place(void) {
  static const struct {
    const char *arguments;
    float wanted;
  } calls[] = {{"av", 6}, {"at", 5}, {"a-", 2}};
  static const double five = 5;
  for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
    float x[N] = {1, 1, 1, 1}, other[N], by = 4;
    int64_t n = N;
    site s;
    register_handlers();
    start_site(&s, "increase", calls[k].arguments);
    if (k == 0) add_scalar(&s, "value00", F64, &five);
    CHECK(!cuplug_xla_instantiate_cpu(&s.call));
    add_buffer(&s, &s.call.operands, F32, x, 1, &n);
    if (k == 1) add_buffer(&s, &s.call.operands, F32, &by, 0, NULL);
    add_buffer(&s, &s.call.results, F32, x, 1, &n);
    CHECK(!cuplug_xla_execute_cpu(&s.call) && x[0] == calls[k].wanted && x[3] == x[0]);
    s.results[0]->data = other;
    CHECK(refuses(cuplug_xla_execute_cpu(&s.call), CUPLUG__XLA_INVALID_ARGUMENT,
                  "increase: x: its result has memory of its own"));
    let_go(&s);
  }
}

static void lists(void) {
  static const double shifts[] = {10, 20};
  float x[2][N] = {{1, 2, 3, 4}, {5, 6, 7, 8}}, out[2][N];
  void *data[3];
  int64_t n = N, shape[] = {2, N};
  site s;
  register_handlers();
  start_site(&s, "stack", "[aa]v");
  add_array(&s, "value00", F64, 2, shifts);
  s.context.device = 1;
  CHECK(!cuplug_xla_instantiate_cuda(&s.call));
  for (int k = 0; k < 3; k++) CHECK(!cuplug_allocate_device(1, sizeof out, NULL, &data[k], &error));
  for (int k = 0; k < 2; k++) {
    CHECK(!cuplug_copy_to_device(1, data[k], x[k], sizeof x[k], NULL, &error));
    add_buffer(&s, &s.call.operands, F32, data[k], 1, &n);
  }
  add_buffer(&s, &s.call.results, F32, data[2], 2, shape);
  CHECK(!cuplug_xla_execute_cuda(&s.call));
  CHECK(!cuplug_copy_to_host(1, out, data[2], sizeof out, NULL, &error));
  CHECK(out[0][0] == 11 && out[1][3] == 28);
  for (int k = 0; k < 3; k++) CHECK(!cuplug_free_device(1, data[k], NULL, &error));
  let_go(&s);
  check_all_given_back();
}

static void scalars_on_a_gpu(void) {
  float x[N] = {1, 1, 1, 1}, by = 4;
  void *data, *scalar;
  int64_t n = N;
  site s;
  register_handlers();
  start_site(&s, "increase", "at");
  CHECK(!cuplug_xla_instantiate_cuda(&s.call));
  CHECK(!cuplug_allocate_device(0, sizeof x, NULL, &data, &error));
  CHECK(!cuplug_allocate_device(0, sizeof by, NULL, &scalar, &error));
  CHECK(!cuplug_copy_to_device(0, data, x, sizeof x, NULL, &error));
  CHECK(!cuplug_copy_to_device(0, scalar, &by, sizeof by, NULL, &error));
  add_buffer(&s, &s.call.operands, F32, data, 1, &n);
  add_buffer(&s, &s.call.operands, F32, scalar, 0, NULL);
  add_buffer(&s, &s.call.results, F32, data, 1, &n);
  CHECK(!cuplug_xla_execute_cuda_waiting(&s.call));
  CHECK(!cuplug_copy_to_host(0, x, data, sizeof x, NULL, &error) && x[0] == 5 && x[3] == 5);
  CHECK(!cuplug_free_device(0, data, NULL, &error) && !cuplug_free_device(0, scalar, NULL, &error));
  let_go(&s);
  check_all_given_back();
}

/* Three captures of one call use one block, which exists as long as the program. Calls that are not
 * captured release theirs at once. */
static void scratch_of_captured_calls(void) {
  void *x, *out;
  CUstream stream;
  int64_t n = N;
  site s;
  register_handlers();
  start_site(&s, "divide", "an");
  CHECK(!cuplug_allocate_device(0, N * sizeof(double), NULL, &x, &error));
  CHECK(!cuplug_allocate_device(0, N * sizeof(float), NULL, &out, &error));
  fake_cuda_capture_function *begin = fake_symbol("fake_cuda_begin_capture");
  fake_cuda_capture_function *end = fake_symbol("fake_cuda_end_capture");
  CUPLUG__ENTERED context = cuplug__cuda_enter(0, &error);
  CHECK(!context.status && !cuplug__driver.cuStreamCreate(&stream, CUPLUG__STREAM_NON_BLOCKING));
  s.context.stream = stream;
  CHECK(!cuplug_xla_instantiate_cuda(&s.call));
  add_buffer(&s, &s.call.operands, F64, x, 1, &n);
  add_buffer(&s, &s.call.results, F32, out, 1, &n);
  CHECK(!cuplug_xla_execute_cuda(&s.call));
  CHECK(!cuplug_synchronize(0, stream, 0, &error) && fake_counts().n_allocations == 2);
  for (int k = 0; k < 3; k++) {
    CHECK(!begin(stream) && !cuplug_xla_execute_cuda(&s.call) && !end(stream));
    CHECK(fake_counts().n_allocations == 3);
  }
  CHECK(!cuplug_free_device(0, x, NULL, &error) && !cuplug_free_device(0, out, NULL, &error));
  let_go(&s);
  CHECK(!cuplug__driver.cuStreamDestroy(stream));
  check_all_given_back();
}

/* The messages for stored programs, also ones that other software stored. */
static void damaged(void) {
  static const struct {
    const char *arguments, *sentence;
  } calls[] = {{"x", "an argument is of no kind"}, {"v", "a value is missing"},
               {"[a", "a list has no end"},        {"[v]", "a list has no end"},
               {"c", "a value is missing"},        {"a[", "a list has no end"}};
  char many[2 * CUPLUG_MAX_ARGUMENTS];
  site s;
  register_handlers();
  for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
    start_site(&s, "triple", calls[k].arguments);
    CHECK(refuses(cuplug_xla_instantiate_cpu(&s.call), CUPLUG__XLA_INVALID_ARGUMENT,
                  calls[k].sentence));
  }
  memset(many, 'a', sizeof many), many[sizeof many - 1] = 0;
  start_site(&s, "triple", many);
  CHECK(refuses(cuplug_xla_instantiate_cpu(&s.call), CUPLUG__XLA_INVALID_ARGUMENT, "too many"));
  many[0] = '[';
  start_site(&s, "triple", many);
  CHECK(refuses(cuplug_xla_instantiate_cpu(&s.call), CUPLUG__XLA_INVALID_ARGUMENT, "too many"));
  start_site(&s, "triple", "a");
  s.integers[1]++;
  CHECK(refuses(cuplug_xla_instantiate_cpu(&s.call), CUPLUG__XLA_NOT_FOUND, "another process"));
  start_site(&s, NULL, "a");
  CHECK(refuses(cuplug_xla_instantiate_cpu(&s.call), CUPLUG__XLA_INVALID_ARGUMENT, "no operator"));
}

static const scenario scenarios[] = {
    {"on_the_host", on_the_host, {NULL}},
    {"in_place", in_place, {NULL}},
    {"lists", lists, {NULL}},
    {"scalars_on_a_gpu", scalars_on_a_gpu, {"FAKE_CUDA_LAZY=1"}},
    {"scratch_of_captured_calls", scratch_of_captured_calls, {"FAKE_CUDA_LAZY=1"}},
    {"damaged", damaged, {NULL}},
};

int main(int argc, char **argv) {
  make_operators();
  return run_scenarios(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
}
