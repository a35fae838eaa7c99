/* SPDX-License-Identifier: Apache-2.0 */
/* The operators of fuzz_bind.c, and their one entry: it compares the arrays of a call with the
 * signature, and touches all of their elements. */
#ifndef BIND_ENTRY_H
#define BIND_ENTRY_H

#include <runtime/define.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define require(condition)                                                  \
  do {                                                                      \
    if (condition) break;                                                   \
    fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
    abort();                                                                \
  } while (0)

/* The entry's description of an overload. `arrays`: for each, its dtype and dimensions: T, I for
 * variables, f, d, l, q for float32, float64, int64, bool; n, m, k for one dimension, S for a
 * group, "." for loop dimensions, ? for an unknown one, * for any. ! precedes arrays that the entry
 * writes, | arrays that may be absent, @ arrays of the list among the scalars. `scalars`: b, i, f,
 * c, s; u for uint8; 2 and 3 for choices among this number; K for an integer that is size k; L, N,
 * F for lists of arrays, integers and floats. */
typedef struct expectation {
  const char *arrays, *scalars;
  int takes_strides;
} expectation;

typedef struct fuzzed {
  const char *signatures[2];
  expectation wanted[2];
  uint32_t n_parameters, n_outputs;
  cuplug_operator *made;
} fuzzed;

static fuzzed operators[] = {
    {{"f(x: T[...], y: T[...]) -> T[...] where T: any"}, {{"T. T. !T.", "", 0}}, 2, 1, NULL},
    {{"f(x: T[...], y: T[...]) -> T[...] where T: any"}, {{"T. T. !T.", "", 1}}, 2, 1, NULL},
    {{"f(x: T[m, *s], i: I[n]) -> T[n, *s] where T: any, I: integer"},
     {{"TmS In !TnS", "", 0}},
     2,
     1,
     NULL},
    {{"f(x: T[..., m, k], y: T[..., k, n]) -> T[..., m, n] where T: floating"},
     {{"T.mk T.kn !T.mn", "", 1}},
     2,
     1,
     NULL},
    {{"f(inout x: T[...], a: T = 1, y: T[...] = None) where T: floating"},
     {{"!T. |T.", "f", 0}},
     3,
     0,
     NULL},
    {{"f(inout x: T[...], inout y: I[...]) where T: any, I: any"},
     {{"!T. !I.", "", 1}},
     2,
     0,
     NULL},
    {{"f(x: T[n], b: T[n] = None, mode: 'near' | 'far' = 'far') -> (T[n], i: bool[n]) where T: "
      "any"},
     {{"Tn |Tn !Tn !qn", "2", 0}},
     3,
     2,
     NULL},
    {{"f(x: T[n], s: str = 'a', k: uint8 = 3) -> (T[?], T[n, ?]) where T: any"},
     {{"Tn !T? !Tn?", "su", 0}},
     3,
     2,
     NULL},
    {{"f(a: bool, b: int, c: float, d: complex, e: 'a' | 'all' | 'none') -> float32[2, 3]"},
     {{"!f23", "bifc3", 0}},
     5,
     1,
     NULL},
    {{"f(x: float32[n]) -> float32[n]", "f(x: T[*s, n], k: int = 0) -> T[n, *s] where T: any"},
     {{"fn !fn", "", 0}, {"TSn !TnS", "i", 1}},
     2,
     1,
     NULL},
    {{"f(x: T[*s], y: T[*s], z: I[...]) -> (T[*s, *s], I[..., 2]) where T: any, I: any"},
     {{"TS TS I. !TSS !I.2", "", 1}},
     3,
     2,
     NULL},
    {{"f(x: T[]) -> T[] where T: any"}, {{"T !T", "", 0}}, 1, 1, NULL},
    {{"f(x: T[..., n], k: int) -> (a: T[..., k], b: int64[k]) where T: any, 0 <= k <= n"},
     {{"T.n !T.k !lk", "K", 0}},
     2,
     2,
     NULL},
    {{"f(xs: float32[*s][], w: float[] = None) -> float32[len(xs), *s]"},
     {{"@fS !fnS", "LF", 0}},
     2,
     1,
     NULL},
    {{"f(shape: int[], value: float = 1.5) -> float64[*shape] where len(shape) > 0"},
     {{"!d*", "Nf", 0}},
     2,
     1,
     NULL},
    {{"f(x: T[*s], i: I[*n], axis: int = 0) -> T[*s[:axis % len(s)], *n, *s[axis % len(s) + 1:]] "
      "where T: any, I: integer, -len(s) <= axis < len(s)"},
     {{"TS I* !T*", "i", 1}},
     3,
     1,
     NULL},
    {{"f(k: int = None, m: 'a' | 'b' = None, x: float32[n] = None) -> int64[4] where 0 <= k",
      "f(k: float[], m: int, x: T[n]) -> T[max(n // m, n % m)] where T: any"},
     {{"|fn !l4", "i2", 0}, {"Tn !Tm", "Fi", 0}},
     3,
     1,
     NULL},
    {{"f(x: T[*s], k: int) -> (T[prod(s)], T[s[k] * min(k, 3) - 2]) where T: any"},
     {{"TS !Tk !Ti", "i", 1}},
     2,
     2,
     NULL},
};

static int has_unknown(const cuplug_tensor *x) {
  for (int32_t d = 0; d < x->ndim; d++)
    if (x->shape[d] < 0) return 1;
  return 0;
}

/* -1 on overflow. */
static int64_t n_bytes(const cuplug_tensor *x) {
  int64_t n = cuplug_element_bytes(x), wide = 1;
  for (int32_t d = 0; d < x->ndim; d++) {
    if (!x->shape[d]) return 0;
    if (__builtin_mul_overflow(wide, x->shape[d], &wide)) wide = INT64_MAX;
  }
  return __builtin_mul_overflow(n, wide, &n) ? -1 : n;
}

static int is_contiguous(const cuplug_tensor *x) {
  int64_t n = 1;
  for (int32_t d = x->ndim - 1; d >= 0; d--) {
    if (x->shape[d] > 1 && x->strides[d] != n) return 0;
    if (__builtin_mul_overflow(n, x->shape[d], &n)) return 0;
  }
  return 1;
}

/* Element i in C order. */
static char *element(const cuplug_tensor *x, int64_t i) {
  int64_t place = i;
  if (x->strides) {
    place = 0;
    for (int32_t d = x->ndim - 1; d >= 0; i /= x->shape[d--])
      place += i % x->shape[d] * x->strides[d];
  }
  return (char *)x->data + place * cuplug_element_bytes(x);
}

/* A mark in the elements of array k, which shows whether two arrays share memory. */
static int mark(uint32_t k, int64_t i) { return (int)((k * 101 + (uint64_t)i * 7) & 255); }

static unsigned n_read; /* of all bytes, so that none is omitted */

static void visit(const cuplug_tensor *x, uint32_t k, int writes) {
  const int64_t n = cuplug_n_elements(x), bytes = cuplug_element_bytes(x);
  for (int64_t i = 0; i < n; i++) {
    char *to = element(x, i);
    if (writes) memset(to, mark(k, i), (size_t)bytes);
    for (int64_t b = 0; b < bytes; b++) n_read += (unsigned char)to[b];
  }
}

static void check_marks(const cuplug_tensor *x, uint32_t k) {
  const int64_t n = cuplug_n_elements(x), bytes = cuplug_element_bytes(x);
  for (int64_t i = 0; i < n; i++)
    for (int64_t b = 0; b < bytes; b++) require((unsigned char)element(x, i)[b] == mark(k, i));
}

/* Sizes of names, shapes of groups, dtypes of variables: all arrays must match the first. */
typedef struct seen {
  int64_t sizes[128];
  const cuplug_tensor *groups[128];
  int32_t begins[128], counts[128];
  uint32_t types[128];
  int is_seen[128];
} seen;

static void check_group(seen *s, int name, const cuplug_tensor *x, int32_t begin, int32_t count) {
  if (!s->is_seen[name]) {
    s->is_seen[name] = 1;
    s->groups[name] = x, s->begins[name] = begin, s->counts[name] = count;
    return;
  }
  require(count == s->counts[name]);
  for (int32_t d = 0; d < count; d++)
    require(x->shape[begin + d] == s->groups[name]->shape[s->begins[name] + d]);
}

static void check_dims(seen *s, const char *dims, size_t n, const cuplug_tensor *x) {
  int32_t d = 0;
  for (size_t i = 0; i < n; i++) {
    const int name = dims[i], is_group = name == 'S' || name == '.';
    if (name == '*') return;
    if (is_group) {
      const int32_t count = s->is_seen[name] ? s->counts[name] : x->ndim - (int32_t)(n - 1);
      require(count >= 0 && d + count <= x->ndim);
      check_group(s, name, x, d, count);
      d += count;
      continue;
    }
    require(d < x->ndim);
    const int64_t size = x->shape[d++];
    if (name == '?') continue;
    if (name < 'a') s->sizes[name] = name - '0', s->is_seen[name] = 1;
    if (!s->is_seen[name]) s->sizes[name] = size, s->is_seen[name] = 1;
    require(size == s->sizes[name]);
  }
  require(d == x->ndim);
}

static void check_type(seen *s, int name, const cuplug_tensor *x) {
  if (name == 'f') s->types[name] = CUPLUG_FLOAT32;
  if (name == 'q') s->types[name] = CUPLUG_BOOL;
  if (name == 'd') s->types[name] = CUPLUG_FLOAT64;
  if (name == 'l') s->types[name] = CUPLUG_INT64;
  if (!s->types[name]) s->types[name] = cuplug_type(x);
  require(cuplug_type(x) == s->types[name]);
}

static void check_scalar(int kind, const cuplug_scalar *x) {
  if (kind == 's') n_read += (unsigned)strlen(x->s);
  if (kind == 'b') require(x->i == 0 || x->i == 1);
  if (kind == 'u') require(x->u < 256);
  if (kind == '2' || kind == '3') require(x->i >= 0 && x->i < kind - '0');
  if (kind == 'f') n_read += x->f > 0;
  if (kind == 'c') n_read += x->c[0] > x->c[1];
  for (int64_t i = 0; kind == 'N' && i < x->list.n; i++)
    n_read += ((const int64_t *)x->list.items)[i] > 0;
  for (int64_t i = 0; kind == 'F' && i < x->list.n; i++)
    n_read += ((const double *)x->list.items)[i] > 0;
}

/* Allocates an output of unknown size. */
static int allocate_output(const cuplug_call *call, uint32_t k) {
  const cuplug_tensor *x = &call->tensors[k];
  int64_t shape[CUPLUG_MAX_NDIM];
  if (!has_unknown(x)) return CUPLUG_OK;
  for (int32_t d = 0; d < x->ndim; d++) shape[d] = x->shape[d] < 0 ? 2 : x->shape[d];
  return cuplug_output(call, k, shape);
}

static int check_array(const cuplug_call *call, const expectation *e, int stage, seen *s,
                       const char *wanted, uint32_t k) {
  const int is_optional = *wanted == '|', is_written = *wanted == '!';
  const char *dims = wanted + (is_optional || is_written || *wanted == '@');
  const cuplug_tensor *x = &call->tensors[k];
  require(k < call->n_tensors);
  if (x->ndim < 0) {
    require(is_optional && !x->data && x->ndim == -1);
    return CUPLUG_OK;
  }
  const int status = stage == 0 ? allocate_output(call, k) : CUPLUG_OK;
  if (status) return status;
  require(x->ndim <= CUPLUG_MAX_NDIM && !x->byte_offset && !has_unknown(x));
  require(x->device.type != CUPLUG_CUDA && !!x->strides == e->takes_strides);
  require(x->data || !n_bytes(x));
  check_type(s, *dims, x);
  check_dims(s, dims + 1, strcspn(dims, " ") - 1, x);
  if (stage == 0) visit(x, k, 0);
  if (stage == 1 && is_written) visit(x, k, 1);
  if (stage == 2 && is_written) check_marks(x, k);
  return CUPLUG_OK;
}

/* The number of arrays for an item of `arrays`: the list's arrays, which are consecutive. */
static int64_t n_arrays(const cuplug_call *call, const expectation *e, uint32_t k) {
  const cuplug_items list = call->scalars[strcspn(e->scalars, "L")].list;
  require(list.items == call->tensors + k);
  return list.n;
}

/* The arrays of a call, as `arrays` lists them: once to read, or to compare with marks. */
static int each_array(const cuplug_call *call, const expectation *e, int stage) {
  seen s;
  uint32_t k = 0;
  int status = CUPLUG_OK;
  memset(&s, 0, sizeof s);
  for (const char *at = e->arrays; *at;) {
    for (int64_t n = *at == '@' ? n_arrays(call, e, k) : 1; n > 0 && !status; n--)
      status = check_array(call, e, stage, &s, at, k++);
    if (status) return status;
    at += strcspn(at, " ");
    at += *at == ' ';
  }
  require(k == call->n_tensors);
  const size_t size = strcspn(e->scalars, "K");
  if (e->scalars[size]) require(call->scalars[size].i == s.sizes['k']);
  return CUPLUG_OK;
}

static int check_call(const cuplug_call *call) {
  const expectation *e = call->context;
  require(call->struct_bytes == sizeof *call && call->device.type == CUPLUG_CPU && !call->stream);
  require(call->n_scalars == strlen(e->scalars));
  for (uint32_t k = 0; k < call->n_scalars; k++)
    if (!(call->none_mask >> k & 1)) check_scalar(e->scalars[k], &call->scalars[k]);
  int status = CUPLUG_OK;
  for (int stage = 0; stage < 3 && !status; stage++) status = each_array(call, e, stage);
  return status;
}

static const fuzzed *take_operator(unsigned which) {
  fuzzed *op = &operators[which % (sizeof operators / sizeof *operators)];
  cuplug_definition_overload rows[2];
  cuplug_definition d = {.plugin = "fuzzed", .origin = "<fuzz_bind>", .rows = rows};
  cuplug_error error;
  for (; !op->made && d.n_rows < 2 && op->signatures[d.n_rows]; d.n_rows++)
    rows[d.n_rows] = (cuplug_definition_overload){
        .signature = op->signatures[d.n_rows],
        .host = check_call,
        .context = &op->wanted[d.n_rows],
        .flags = op->wanted[d.n_rows].takes_strides ? CUPLUG_OVERLOAD_TAKES_STRIDES : 0};
  if (op->made || !cuplug_define(&d, &op->made, &error)) return op;
  fprintf(stderr, "%s\n", error.message);
  abort();
}

#endif
