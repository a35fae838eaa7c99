/* sanitizers: address,undefined */
/* SPDX-License-Identifier: Apache-2.0 */
/* cuplug_invoke: an argument of every kind, outputs that are given, allocated or rejected, options
 * of other versions; and descriptions of operators. */
#include "check.h"

#include <runtime/define.h>
#include <stdlib.h>

#define CHECK_REFUSED(wanted, call, text) \
  do {                                    \
    CHECK((call) == (wanted));            \
    CHECK(error.status == (wanted));      \
    CHECK_TEXT(error.message, text);      \
  } while (0)

static cuplug_error error;

static cuplug_operator *define(const char *signature, cuplug_entry *host) {
  const cuplug_definition_overload row = {.signature = signature, .host = host};
  const cuplug_definition d = {
      .plugin = "test", .version = "1", .origin = "<test>", .rows = &row, .n_rows = 1};
  cuplug_operator *op = NULL;
  if (cuplug_define(&d, &op, &error)) fprintf(stderr, "%s\n", error.message), exit(1);
  return op;
}

/* ---- Arguments ----------------------------------------------------------------------------- */

static int kinds_host(const cuplug_call *call) {
  const cuplug_scalar *s = call->scalars;
  CHECK(s[0].f == 0.5 && s[1].i == -3 && s[2].u == UINT64_MAX && s[3].u == 7);
  CHECK(s[4].c[0] == 1 && s[4].c[1] == -2 && s[5].i == 1);
  CHECK_TEXT(s[6].s, "text");
  CHECK(s[7].i == 1 && s[8].i == 42);
  CHECK(call->tensors[1].ndim == -1 && call->tensors[0].shape[0] == 2);
  *(int64_t *)call->tensors[2].data = 5;
  return CUPLUG_OK;
}

static cuplug_operator *kinds; /* operators live until the process ends */

static void check_arguments(void) {
  kinds = define("kinds(x: T[n], f: float, i: int, u: uint64, v: uint64, c: complex128, "
                 "b: bool, s: str, m: \"p\" | \"q\", k: int = 42, z: T[n] = None) "
                 "-> int64[] where T: float32 | float64",
                 kinds_host);
  float x[] = {1, 2};
  int64_t n = 2, out = 0;
  const cuplug_tensor in = cuplug_make_tensor(x, CUPLUG_FLOAT32, 1, &n);
  const cuplug_tensor to = cuplug_make_tensor(&out, CUPLUG_INT64, 0, NULL);
  cuplug_argument args[] = {cuplug_read_only_array(&in),
                            cuplug_float(0.5),
                            cuplug_int(-3),
                            cuplug_uint(UINT64_MAX),
                            cuplug_uint(7),
                            cuplug_complex(1, -2),
                            cuplug_bool(5),
                            cuplug_string("text"),
                            cuplug_string("q"),
                            cuplug_absent(),
                            cuplug_none(),
                            cuplug_array(&to)};
  CHECK(!cuplug_invoke(kinds, args, 12, NULL, &error) && out == 5);
  args[11] = cuplug_read_only_array(&to);
  CHECK_REFUSED(CUPLUG_ERROR_VALUE, cuplug_invoke(kinds, args, 12, NULL, &error),
                "kinds: out: got a read-only array, expected a writable one");
}

static void check_tensors(void) {
  int64_t shape[] = {2, 3};
  const cuplug_tensor x = cuplug_make_cuda_tensor(shape, CUPLUG_COMPLEX64, 2, shape, 3);
  CHECK(x.device.type == CUPLUG_CUDA && x.device.id == 3 && x.data == shape && x.shape == shape);
  CHECK(cuplug_type(&x) == CUPLUG_COMPLEX64 && x.ndim == 2 && !x.strides && !x.byte_offset);
  CHECK(cuplug_make_tensor(NULL, CUPLUG_BOOL, 0, NULL).device.type == CUPLUG_CPU);
}

/* ---- Outputs ------------------------------------------------------------------------------- */

/* The elements above zero, and all of them doubled. */
static int split_host(const cuplug_call *call) {
  const cuplug_tensor *x = &call->tensors[0];
  const float *from = x->data;
  int64_t n_kept = 0;
  for (int64_t i = 0; i < x->shape[0]; i++) n_kept += from[i] > 0;
  int status = cuplug_output(call, 2, &n_kept);
  if (status) return status;
  float *doubled = call->tensors[1].data, *kept = call->tensors[2].data;
  for (int64_t i = 0; i < x->shape[0]; i++) {
    doubled[i] = 2 * from[i];
    if (from[i] > 0) *kept++ = from[i];
  }
  return CUPLUG_OK;
}

static int counter_host(const cuplug_call *call) {
  for (int k = 0; k < 3; k++) ((double *)call->tensors[0].data)[k] = k;
  return CUPLUG_OK;
}

static cuplug_operator *split, *counter;

typedef struct memory {
  int n_asked, status, is_empty, fills; /* its result; allocates nothing; sets a message */
  int64_t n[2];
  cuplug_dtype dtype[2];
  cuplug_device device[2];
  void *data[2];
} memory;

static int allocate(void *user, uint32_t output, cuplug_tensor *x, cuplug_error *mine) {
  memory *m = user;
  m->n_asked++;
  CHECK(output < 2 && mine && x->ndim == 1 && !x->data && !x->strides);
  m->n[output] = x->shape[0];
  m->dtype[output] = x->dtype;
  m->device[output] = x->device;
  if (m->fills) snprintf(mine->message, 20, "no room"), mine->status = m->status;
  if (m->status || m->is_empty) return m->status;
  const size_t bytes = (size_t)(cuplug_n_elements(x) * cuplug_element_bytes(x));
  if (bytes) x->data = m->data[output] = malloc(bytes);
  return CUPLUG_OK;
}

static void free_memory(memory *m) {
  free(m->data[0]), free(m->data[1]);
  memset(m, 0, sizeof *m);
}

static cuplug_options allocating(memory *m) {
  cuplug_options options = cuplug_default_options();
  options.allocate = allocate, options.user = m;
  return options;
}

static void check_allocated(void) {
  float x[] = {3, -1, 2}, out[3] = {0};
  int64_t n = 3;
  memory m = {0};
  const cuplug_options options = allocating(&m);
  const cuplug_tensor in = cuplug_make_tensor(x, CUPLUG_FLOAT32, 1, &n);
  const cuplug_tensor to = cuplug_make_tensor(out, CUPLUG_FLOAT32, 1, &n);
  cuplug_argument args[] = {cuplug_array(&in), cuplug_absent(), cuplug_absent()};
  for (uint32_t n_args = 1; n_args <= 3; n_args++) {
    CHECK(!cuplug_invoke(split, args, n_args, &options, &error));
    CHECK(m.n_asked == 2 && m.n[0] == 3 && m.n[1] == 2);
    CHECK(((float *)m.data[0])[1] == -2 && ((float *)m.data[1])[1] == 2);
    CHECK(m.dtype[1].bits == 32 && m.device[0].type == CUPLUG_CPU && m.device[1].type == 1);
    free_memory(&m);
  }
  args[1] = cuplug_array(&to); /* one is given */
  CHECK(!cuplug_invoke(split, args, 2, &options, NULL) && m.n_asked == 1 && m.n[1] == 2);
  CHECK(out[0] == 6 && ((float *)m.data[1])[0] == 3);
  free_memory(&m);
  n = 0; /* no elements, no memory */
  CHECK(!cuplug_invoke(split, args, 1, &options, &error) && m.n_asked == 2 && !m.data[1]);
  free_memory(&m);
}

/* Without array parameters, the host entry's device is requested. */
static void check_without_inputs(void) {
  double out[3] = {0};
  int64_t n = 3;
  memory m = {0};
  cuplug_options options = allocating(&m);
  const cuplug_tensor to = cuplug_make_tensor(out, CUPLUG_FLOAT64, 1, &n);
  cuplug_argument given = cuplug_array(&to);
  CHECK(!cuplug_invoke(counter, NULL, 0, &options, &error) && m.device[0].type == CUPLUG_CPU);
  CHECK(m.n[0] == 3 && ((double *)m.data[0])[2] == 2);
  free_memory(&m);
  CHECK(!cuplug_invoke(counter, &given, 1, NULL, &error) && out[1] == 1);
  options.device.type = CUPLUG_CUDA;
  CHECK_REFUSED(CUPLUG_ERROR_VALUE, cuplug_invoke(counter, &given, 1, &options, &error),
                "counter: out: got an array on the host, expected cuda:0 (as the call)");
}

static void check_refused_outputs(void) {
  float x[] = {3, -1, 2};
  int64_t n = 3;
  memory m = {0};
  cuplug_options options = allocating(&m);
  const cuplug_tensor in = cuplug_make_tensor(x, CUPLUG_FLOAT32, 1, &n);
  cuplug_argument args[] = {cuplug_array(&in), cuplug_array(&in), cuplug_absent(), cuplug_absent()};
  CHECK_REFUSED(CUPLUG_ERROR_VALUE, cuplug_invoke(split, args, 1, NULL, &error),
                "split: output 0: got no array, expected one, or options->allocate");
  args[1] = cuplug_absent();
  CHECK_REFUSED(CUPLUG_ERROR_TYPE, cuplug_invoke(split, args, 4, &options, &error),
                "split: out: got 3 outputs, expected 2");
  m.is_empty = 1;
  CHECK_REFUSED(CUPLUG_ERROR_VALUE, cuplug_invoke(split, args, 1, &options, &error),
                "split: output 0: allocate returned CUPLUG_OK without memory");
  m.status = CUPLUG_ERROR_MEMORY;
  CHECK_REFUSED(CUPLUG_ERROR_MEMORY, cuplug_invoke(split, args, 1, &options, &error),
                "split: output 0: allocate returned ERROR_MEMORY");
  m.fills = 1;
  CHECK_REFUSED(CUPLUG_ERROR_MEMORY, cuplug_invoke(split, args, 1, &options, &error),
                "split: no room");
  CHECK(cuplug_invoke(split, args, 1, &options, NULL) == CUPLUG_ERROR_MEMORY);
}

/* The output of unknown size, in the run. */
static void check_refused_late(void) {
  float x[] = {3, -1, 2}, out[3];
  int64_t n = 3;
  memory m = {.is_empty = 1};
  cuplug_options options = allocating(&m);
  const cuplug_tensor in = cuplug_make_tensor(x, CUPLUG_FLOAT32, 1, &n);
  const cuplug_tensor to = cuplug_make_tensor(out, CUPLUG_FLOAT32, 1, &n);
  const cuplug_argument args[] = {cuplug_array(&in), cuplug_array(&to), cuplug_array(&to)};
  CHECK_REFUSED(CUPLUG_ERROR_VALUE, cuplug_invoke(split, args, 2, &options, &error),
                "split: output 1: allocate returned CUPLUG_OK without memory");
  m.status = CUPLUG_ERROR_MEMORY;
  CHECK_REFUSED(CUPLUG_ERROR_MEMORY, cuplug_invoke(split, args, 2, &options, &error),
                "split: output 1: allocate returned ERROR_MEMORY");
  CHECK_REFUSED(CUPLUG_ERROR_VALUE, cuplug_invoke(split, args, 2, NULL, &error),
                "split: output 1: got no array, expected options->allocate (its size is known only "
                "after the run)");
}

/* ---- Options ------------------------------------------------------------------------------- */

static void check_options(void) {
  struct {
    cuplug_options known;
    uint64_t newer;
  } options = {.known = cuplug_default_options()};
  double out[3];
  int64_t n = 3;
  const cuplug_tensor to = cuplug_make_tensor(out, CUPLUG_FLOAT64, 1, &n);
  cuplug_argument given = cuplug_array(&to);
  options.known.struct_bytes = sizeof options;
  CHECK(!cuplug_invoke(counter, &given, 1, &options.known, &error));
  options.newer = 1;
  CHECK_REFUSED(CUPLUG_ERROR_VALUE, cuplug_invoke(counter, &given, 1, &options.known, &error),
                "counter: options: cuplug_options: got a nonzero field after byte 48, expected "
                "zeros (this version of the library does not know it)");
  options.known.struct_bytes = 0;
  CHECK_REFUSED(CUPLUG_ERROR_VALUE, cuplug_invoke(counter, &given, 1, &options.known, &error),
                "counter: options: struct_bytes: got 0, expected sizeof(cuplug_options) "
                "(at least 48)");
  options.known = cuplug_default_options(), options.known.reserved = 2;
  CHECK_REFUSED(CUPLUG_ERROR_VALUE, cuplug_invoke(counter, &given, 1, &options.known, &error),
                "counter: options: reserved: got 2, expected 0");
}

/* ---- Descriptions -------------------------------------------------------------------------- */

static void check_parameter(const cuplug_signature *s, uint32_t i, const char *name, int kind,
                            uint64_t dtypes, uint32_t n_dims, const char *by_default) {
  CHECK_TEXT(cuplug_parameter_name(s, i), name);
  CHECK(cuplug_parameter_kind(s, i) == kind && cuplug_parameter_n_dims(s, i) == n_dims);
  CHECK(cuplug_parameter_dtypes(s, i) == dtypes);
  const char *seen = cuplug_parameter_default(s, i);
  CHECK(!seen == !by_default);
  if (seen && by_default) CHECK_TEXT(seen, by_default);
}

/* The bit of a dtype among those that a parameter allows. */
static uint64_t bit_of(uint32_t id) {
  for (uint32_t k = 0; cuplug_dtype_name(k); k++)
    if (cuplug_dtype_id(k) == id) return 1ull << k;
  return 0;
}

static void check_signature(void) {
  const cuplug_signature *s = cuplug_operator_signature(kinds, 0);
  const uint64_t f32 = bit_of(CUPLUG_FLOAT32), f64 = bit_of(CUPLUG_FLOAT64);
  CHECK(!cuplug_operator_signature(kinds, 1) && !cuplug_operator_overload(kinds, 1));
  const cuplug_overload *first = cuplug_operator_overload(kinds, 0);
  CHECK_TEXT(cuplug_signature_text(s), cuplug_overload_signature(first));
  CHECK(cuplug_signature_n_parameters(s) == 11 && cuplug_signature_n_outputs(s) == 1);
  check_parameter(s, 0, "x", CUPLUG_PARAMETER_ARRAY, f32 | f64, 1, NULL);
  check_parameter(s, 1, "f", CUPLUG_PARAMETER_SCALAR, f64, 0, NULL);
  check_parameter(s, 7, "s", CUPLUG_PARAMETER_STRING, 0, 0, NULL);
  check_parameter(s, 8, "m", CUPLUG_PARAMETER_CHOICE, 0, 0, NULL);
  check_parameter(s, 9, "k", CUPLUG_PARAMETER_SCALAR, bit_of(CUPLUG_INT64), 0, "42");
  check_parameter(s, 10, "z", CUPLUG_PARAMETER_ARRAY, f32 | f64, 1, "None");
  check_parameter(s, 11, "", CUPLUG_PARAMETER_OUTPUT, bit_of(CUPLUG_INT64), 0, NULL);
  CHECK(!cuplug_parameter_name(s, 12) && cuplug_parameter_kind(s, 12) == -1);
  CHECK(!cuplug_parameter_dtypes(s, 12) && !cuplug_parameter_n_dims(s, 12));
  CHECK(!cuplug_parameter_default(s, 12));
  s = cuplug_operator_signature(split, 0);
  check_parameter(s, 2, "kept", CUPLUG_PARAMETER_OUTPUT, f32, 1, NULL);
}

/* Memory with the wrong alignment for the type is found by its address. */
static void check_misaligned(void) {
  char bytes[32];
  int64_t n = 1;
  const cuplug_type_id types[] = {CUPLUG_FLOAT64, CUPLUG_COMPLEX128, CUPLUG_FLOAT32, CUPLUG_INT8};
  char *at = bytes + (8 - (uintptr_t)bytes % 8) % 8;
  for (int k = 0; k < 4; k++) {
    cuplug_tensor x = cuplug_make_tensor(at, types[k], 1, &n);
    CHECK(!cuplug_array(&x).flags);
    x.byte_offset = 4;
    CHECK(!cuplug_array(&x).flags == (k > 1));
    x.byte_offset = 1;
    CHECK(!cuplug_array(&x).flags == (k == 3));
    CHECK(cuplug_read_only_array(&x).flags == (cuplug_array(&x).flags | CUPLUG_READ_ONLY));
  }
  cuplug_tensor x = cuplug_make_tensor(at + 1, CUPLUG_FLOAT32, 1, &n);
  cuplug_argument args[] = {cuplug_array(&x), cuplug_absent(), cuplug_absent()};
  memory m = {0};
  const cuplug_options options = allocating(&m);
  CHECK_REFUSED(CUPLUG_ERROR_VALUE, cuplug_invoke(split, args, 3, &options, &error),
                "split: x: got a strided, misaligned or broadcast array, expected a C-contiguous "
                "copy of it");
  free_memory(&m);
}

static int first_host(const cuplug_call *call) {
  const cuplug_tensor *sum = &call->outputs[0], *first = &call->outputs[1];
  const float *x = call->tensors[0].data;
  *(float *)sum->data = x[0] + x[1];
  CHECK(first->ndim == (first->data ? 0 : -1));
  CHECK(cuplug_n_elements(first) == (first->data != NULL));
  if (first->data) *(float *)first->data = x[0];
  return CUPLUG_OK;
}

static int take_place(void *user, uint32_t output, cuplug_tensor *tensor, cuplug_error *record) {
  (void)record;
  tensor->data = (float *)user + output;
  return CUPLUG_OK;
}

static void check_optional_outputs(void) {
  static cuplug_operator *op;
  op = define("first(x: float32[2]) -> (sum: float32[], first: float32[] = None)", first_host);
  float x[] = {3, 4}, out[] = {0, 0};
  int64_t n = 2;
  const cuplug_tensor in = cuplug_make_tensor(x, CUPLUG_FLOAT32, 1, &n);
  const cuplug_tensor to = cuplug_make_tensor(out + 1, CUPLUG_FLOAT32, 0, NULL);
  cuplug_options options = cuplug_default_options();
  cuplug_argument args[] = {cuplug_array(&in), cuplug_absent(), cuplug_array(&to)};
  options.allocate = take_place, options.user = out;
  CHECK(!cuplug_invoke(op, args, 1, &options, &error) && out[0] == 7 && out[1] == 0);
  args[2] = cuplug_bool(1);
  CHECK(!cuplug_invoke(op, args, 3, &options, &error) && out[1] == 3);
  x[0] = 5, args[2] = cuplug_array(&to);
  CHECK(!cuplug_invoke(op, args, 3, &options, &error) && out[0] == 9 && out[1] == 5);
  args[1] = cuplug_bool(1);
  CHECK_REFUSED(CUPLUG_ERROR_TYPE, cuplug_invoke(op, args, 3, &options, &error),
                "first: sum: got True, expected an array");
}

static void check_row(void) {
  const cuplug_overload *row = cuplug_operator_overload(split, 0);
  CHECK_TEXT(cuplug_overload_entry(row, CUPLUG_CPU), "in_memory");
  CHECK(!cuplug_overload_entry(row, CUPLUG_CUDA) && !cuplug_overload_entry(row, 77));
  CHECK_TEXT(cuplug_overload_doc(row), "");
  CHECK(cuplug_overload_property(row, "host") && !cuplug_overload_property(row, "gradient"));
  CHECK(!cuplug_overload_flags(row));
  uint32_t n = 0;
  while (cuplug_overload_field(row, n)) n++;
  CHECK(n == 3 && !cuplug_overload_field(row, n + 1));
  CHECK(!strncmp(cuplug_overload_field(row, 0), "signature=split(x: ", 19));
}

/* ---- Without a call ------------------------------------------------------------------------ */

static void check_infer(void) {
  int64_t n = 1ll << 40, sizes[2][CUPLUG_MAX_NDIM];
  cuplug_tensor x = cuplug_make_cuda_tensor(NULL, CUPLUG_FLOAT32, 1, &n, 3), outputs[2];
  cuplug_argument arg = cuplug_array(&x);
  uint32_t row = 9, n_outputs = 2;
  CHECK(!cuplug_infer(split, &arg, 1, &row, outputs, sizes, &n_outputs, &error));
  CHECK(row == 0 && n_outputs == 2 && outputs[0].ndim == 1 && !outputs[0].data);
  CHECK(sizes[0][0] == n && sizes[1][0] == -1 && outputs[1].shape == sizes[1]);
  CHECK(cuplug_type(&outputs[0]) == CUPLUG_FLOAT32 && outputs[0].device.id == 3);
  outputs[1].ndim = 77;
  n_outputs = 1;
  CHECK(!cuplug_infer(split, &arg, 1, &row, outputs, sizes, &n_outputs, &error));
  CHECK(n_outputs == 2 && outputs[1].ndim == 77);
  n = -1;
  CHECK_REFUSED(CUPLUG_ERROR_VALUE,
                cuplug_infer(split, &arg, 1, &row, outputs, sizes, &n_outputs, &error),
                "split: x: got shape (-1,), expected sizes of at least 0");
  n_outputs = 0;
  CHECK(!cuplug_infer(counter, NULL, 0, &row, NULL, NULL, &n_outputs, NULL) && n_outputs == 1);
}

int main(void) {
  split = define("split(x: float32[n]) -> (doubled: float32[n], kept: float32[?])", split_host);
  counter = define("counter() -> float64[3]", counter_host);
  check_arguments();
  check_tensors();
  check_allocated();
  check_misaligned();
  check_without_inputs();
  check_refused_outputs();
  check_refused_late();
  check_options();
  check_signature();
  check_optional_outputs();
  check_row();
  check_infer();
  return n_failed != 0;
}
