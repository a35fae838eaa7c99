/* sanitizers: address,undefined */
/* SPDX-License-Identifier: Apache-2.0 */
/* Cached matches of a thread: random calls return the same as without a cache. */
#include "base/status.h"
#include "check.h"
#include "registry/plugin.h"

#include <stdlib.h>

#define N_CALLS 200000
#define MAX_ARGUMENTS 4

static const char *const signatures[][2] = {
    {"f(x: float32[n], y: float32[n]) -> float32[n]", NULL},
    {"f(x: T[...], y: T[...]) -> T[...] where T: float32 | int64", NULL},
    {"f(x: float32[n, n], inout y: float32[n, n], a: float32 = 1)", NULL},
    {"f(x: T[m, *row], y: I[*n], mode: 'raise' | 'wrap' = 'raise') -> T[*n, *row] where T: any, "
     "I: int64 | int32",
     NULL},
    {"f(x: T[n], a: T, y: T[n] = None) -> (T[n, 2], T[?]) where T: float32 | int64", NULL},
    {"f(x: float32[n], a: int32) -> float32[n]", "f(x: int64[n], a: float32) -> int64[n]"},
    {"f(x: float32[n], a: int32) -> float32[n]", "f(x: float32[n], a: float32) -> int64[n]"},
    {"f(x: float32[3], y: T[n]) where T: any", "f(x: float32[n], y: T[m]) where T: any"},
    {"f(x: float32[n], inout y: T[n]) where T: any", "f(x: float32[n], y: T[m]) where T: any"},
    {"f(x: float32[n], a: int32) where 4 <= a", "f(x: float32[n], a: int64)"},
    {"f(x: float32[n], mode: 'raise' | 'wrap')", "f(x: float32[n], mode: str)"},
    {"f(x: float32[*n], y: float32[*n], z: float32[*n]) -> float32[*n]", NULL},
    {"f(x: T[*s], at: I[*n][]) -> T[*n, *s[len(at):]] where T: any, I: any, len(at) <= len(s)",
     NULL},
    {"f(inout x: T[*s], at: I[*n][], y: T[*v]) where T: any, I: any, 0 < len(at)", NULL},
    {"f(x: T[n][], y: T[n][] = None) -> T[n] where T: any", NULL},
    {"f(x: T[n][], n: int32) -> T[n] where T: any", "f(x: T[n][], a: float32) where T: any"},
};
#define N_OPERATORS (sizeof signatures / sizeof *signatures)

static cuplug_overload rows[N_OPERATORS][2];
static cuplug__callable overloads[N_OPERATORS][2];
static cuplug_operator operators[N_OPERATORS];

static void make_operators(void) {
  cuplug_error error;
  cuplug__clear(&error);
  for (size_t i = 0; i < N_OPERATORS; i++) {
    operators[i] = (cuplug_operator){.name = "f", .overloads = overloads[i], .loaded = 1};
    for (uint32_t k = 0; k < 2 && signatures[i][k]; k++) {
      cuplug__callable *o = &overloads[i][operators[i].n_overloads++];
      CHECK(!cuplug_parse_signature(signatures[i][k], &rows[i][k].parsed, NULL, &error));
      rows[i][k].host_entry = rows[i][k].cuda_entry = "";
      cuplug__make_overload(o, &rows[i][k]);
      o->inline_call_bytes = 64;
    }
    CHECK(!cuplug__overloads_make(&operators[i], &error));
  }
}

static unsigned seed = 1;
static int pick(int n) { return rand_r(&seed) % n; }
static int rarely(void) { return pick(50) == 0; }

#define MAX_ITEMS 3
#define MAX_ARRAYS (MAX_ARGUMENTS * (1 + MAX_ITEMS))

static char memory[1 << 14];
static int64_t shapes[MAX_ARRAYS][8], strides[MAX_ARRAYS][8];

static void make_strides(const cuplug_tensor *t, int64_t *to) {
  int64_t stride = 1;
  for (int32_t d = t->ndim - 1; d >= 0; d--) {
    to[d] = stride;
    stride *= t->shape[d] ? t->shape[d] : 1;
  }
  if (t->ndim && rarely()) to[pick(t->ndim)] += 1;
}

static cuplug_argument random_array(int k) {
  static const uint32_t types[] = {CUPLUG_FLOAT32, CUPLUG_INT64, CUPLUG_INT32};
  const uint32_t type = types[rarely() ? pick(3) : k && !pick(3)];
  cuplug_argument a = {.kind = CUPLUG_ARGUMENT_ARRAY};
  a.tensor.device = (cuplug_device){rarely() ? CUPLUG_CUDA : CUPLUG_CPU, rarely()};
  a.tensor.dtype = (cuplug_dtype){(uint8_t)(type >> 24), (uint8_t)(type >> 16), (uint16_t)type};
  a.tensor.ndim = rarely() ? pick(7) : 1 + pick(2);
  a.tensor.shape = a.tensor.ndim ? shapes[k] : NULL;
  for (int32_t d = 0; d < a.tensor.ndim; d++) shapes[k][d] = rarely() ? pick(4) : 2;
  a.tensor.data = rarely() ? NULL : memory + 1024 * pick(4);
  a.tensor.byte_offset = rarely() ? 8 : 0;
  if (pick(2)) {
    a.tensor.strides = strides[k];
    make_strides(&a.tensor, strides[k]);
  }
  if (rarely()) a.flags = 1u << pick(4);
  return a;
}

static cuplug_argument random_list(int k) {
  static cuplug_argument items[MAX_ARGUMENTS][MAX_ITEMS];
  const uint32_t n = rarely() ? 0 : 1 + (uint32_t)pick(rarely() ? MAX_ITEMS : 2);
  for (uint32_t i = 0; i < n; i++)
    items[k][i] = rarely() ? cuplug_int(3) : random_array(MAX_ARGUMENTS + k * MAX_ITEMS + (int)i);
  return cuplug_list_argument(items[k], n);
}

static cuplug_argument random_argument(int k, int kind) {
  const int is_array = kind <= CUPLUG_PARAMETER_INOUT;
  static const uint32_t others[] = {CUPLUG_ARGUMENT_NONE, CUPLUG_ARGUMENT_ABSENT,
                                    CUPLUG_ARGUMENT_OTHER};
  if (kind == CUPLUG_PARAMETER_ARRAYS && !rarely()) return random_list(k);
  if (is_array ^ rarely()) return random_array(k);
  switch (pick(4)) {
  case 0:
    return cuplug_int(pick(2) ? 3 : (int64_t)1 << 40);
  case 1:
    return cuplug_float(0.5);
  case 2:
    return cuplug_string(pick(3) ? "wrap" : "rise");
  default:
    return (cuplug_argument){.kind = others[pick(3)], .scalar.s = "list"};
  }
}

static int same_numbers(const int64_t *a, const int64_t *b, int32_t n) {
  return !a == !b && (!a || n <= 0 || !memcmp(a, b, (size_t)n * sizeof *a));
}

static int same_tensor(const cuplug_tensor *a, const cuplug_tensor *b) {
  return a->data == b->data && a->ndim == b->ndim && a->byte_offset == b->byte_offset &&
         !memcmp(&a->device, &b->device, sizeof a->device) &&
         !memcmp(&a->dtype, &b->dtype, sizeof a->dtype) &&
         same_numbers(a->shape, b->shape, a->ndim) && same_numbers(a->strides, b->strides, a->ndim);
}

/* Lists of arrays are among the tensors of their frame. */
static int same_scalar(const cuplug_frame *a, const cuplug_frame *b, uint32_t k) {
  const int32_t i = a->op->overloads[a->row].scalars[k];
  if (a->signature->parameters[i].kind != CUPLUG_PARAMETER_ARRAYS || !a->scalars[k].list.items)
    return !memcmp(&a->scalars[k], &b->scalars[k], sizeof a->scalars[k]);
  const cuplug_tensor *x = a->scalars[k].list.items, *y = b->scalars[k].list.items;
  return a->scalars[k].list.n == b->scalars[k].list.n && x - a->tensors == y - b->tensors;
}

static int same_frame(const cuplug_frame *a, const cuplug_frame *b) {
  int same =
      a->op == b->op && a->signature == b->signature && a->row == b->row &&
      a->n_tensors == b->n_tensors && a->n_inputs == b->n_inputs && a->n_scalars == b->n_scalars &&
      a->copy_mask == b->copy_mask && a->unaligned_stride_mask == b->unaligned_stride_mask &&
      !memcmp(&a->home, &b->home, sizeof a->home) &&
      !memcmp(&a->device, &b->device, sizeof a->device) && a->runs_with_gil == b->runs_with_gil &&
      a->loop_ndim == b->loop_ndim && same_numbers(a->loop_shape, b->loop_shape, a->loop_ndim);
  for (uint32_t k = 0; same && k < a->n_tensors; k++)
    same = a->parameter[k] == b->parameter[k] && same_tensor(&a->tensors[k], &b->tensors[k]) &&
           (a->tensors[k].strides || a->n_bytes[k] == b->n_bytes[k]);
  for (uint32_t k = 0; same && k < a->n_scalars; k++) same = same_scalar(a, b, k);
  return same;
}

static int bind(size_t i, uint64_t number, const cuplug_argument *args, uint32_t n,
                cuplug_frame *frame, cuplug_error *error) {
  operators[i].number = number;
  memset(frame->scalars, 0, sizeof frame->scalars);
  return cuplug_bind(&operators[i], args, n, frame, error);
}

int main(void) {
  static cuplug_frame cold, warm;
  cuplug_error cold_error, warm_error;
  cuplug_argument args[MAX_ARGUMENTS];
  long n_matched = 0, n_wrong = 0;
  make_operators();
  for (int call = 0; call < N_CALLS; call++) {
    const size_t i = (size_t)pick(N_OPERATORS);
    const cuplug_signature *s = overloads[i][0].signature;
    const int n = rarely() ? pick(MAX_ARGUMENTS + 1) : s->n_parameters;
    for (int k = 0; k < n; k++) args[k] = random_argument(k, s->parameters[k].kind);
    int wanted = bind(i, 0, args, (uint32_t)n, &cold, &cold_error);
    for (int again = 0; again < 2; again++) {
      int status = bind(i, 1 + i, args, (uint32_t)n, &warm, &warm_error);
      n_wrong += status != wanted || (status ? !!strcmp(cold_error.message, warm_error.message)
                                             : !same_frame(&cold, &warm));
    }
    n_matched += !wanted;
  }
  CHECK(n_wrong == 0);
  CHECK(n_matched > N_CALLS / 10);
  return n_failed != 0;
}
