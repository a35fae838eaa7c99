/* SPDX-License-Identifier: Apache-2.0 */
#include "base/describe.h"

#include "base/dtype.h"
#include "base/layout.h"
#include "base/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static void add(cuplug__text *text, const char *format, ...) {
  size_t n = strlen(text->s);
  va_list list;
  va_start(list, format);
  cuplug__print(text->s + n, sizeof(text->s) - n, format, list);
  va_end(list);
}

__attribute__((format(printf, 1, 2))) static cuplug__text text_of(const char *format, ...) {
  cuplug__text text;
  va_list list;
  va_start(list, format);
  cuplug__print(text.s, sizeof text.s, format, list);
  va_end(list);
  return text;
}

cuplug__text cuplug__describe_float(double x) { return text_of("%.9g", x); }

cuplug__text cuplug__describe_dtype(uint32_t id) {
  const uint64_t bit = cuplug__dtype_bit(id), pair = cuplug__dtype_bit((id & 0xffff0000u) | 2);
  if (bit) return text_of("%s", cuplug_dtype_name(cuplug__dtype_number(bit)));
  cuplug__text text =
      text_of("DLPack dtype (%u, %u bits, %u lanes)", id >> 24, id >> 16 & 255, id & 65535);
  if (pair) add(&text, ", an unpacked %s", cuplug_dtype_name(cuplug__dtype_number(pair)));
  return text;
}

/* "float32 | float64", "integer" if it is the whole group, or "any dtype". */
static cuplug__text describe_dtypes(uint64_t bits) {
  static const char *const groups[] = {"integer", "floating", "complex"};
  cuplug__text text = {""};
  for (size_t k = 0; k < sizeof groups / sizeof *groups; k++)
    if (bits == cuplug__dtype_bits(groups[k])) return text_of("%s", groups[k]);
  if (bits == CUPLUG__ANY_DTYPE) return text_of("any dtype");
  for (uint32_t k = 0; k < CUPLUG__N_DTYPES; k++)
    if (bits >> k & 1) add(&text, "%s%s", *text.s ? " | " : "", cuplug_dtype_name(k));
  return text;
}

static cuplug__text describe_items(const int64_t *items, int32_t n, int has_unknown) {
  cuplug__text text = {"("};
  for (int32_t k = 0; k < n; k++)
    add(&text, has_unknown && items[k] < 0 ? "%s?" : "%s%" PRId64, k ? ", " : "", items[k]);
  add(&text, n == 1 ? ",)" : ")");
  return text;
}

cuplug__text cuplug__describe_tuple(const int64_t *items, int32_t n) {
  return describe_items(items, n, 0);
}

cuplug__text cuplug__describe_output_shape(const int64_t *shape, int32_t ndim) {
  return describe_items(shape, ndim, 1);
}

cuplug__text cuplug__describe_device(cuplug_device device) {
  if (device.type == CUPLUG_CUDA && device.id == CUPLUG_ALL_GPUS) return text_of("cuda:*");
  if (cuplug__is_cuda(device)) return text_of("cuda:%d", (int)device.id);
  if (cuplug__is_host(device)) return text_of("the host");
  return text_of("a device of DLPack type %d", (int)device.type);
}

cuplug__text cuplug__describe_architectures(const char *architectures) {
  cuplug__text text = {""};
  char *end;
  for (const char *at = architectures; *at; at = *end ? end + 1 : end) {
    long value = strtol(at, &end, 10);
    if (end == at) break;
    const int has_suffix = *end == 'a' || *end == 'f';
    add(&text, "%s%ld.%ld%.*s", *text.s ? ", " : "", value / 100, value / 10 % 10, has_suffix, end);
    end += has_suffix;
  }
  return text;
}

static cuplug__text describe_array(const cuplug_argument *a) {
  const cuplug_tensor *x = &a->tensor;
  const char *swapped = a->flags & CUPLUG_BYTE_SWAPPED ? "byte-swapped " : "";
  cuplug__text text = text_of("%s%s", swapped, cuplug__describe_dtype(cuplug_type(x)).s);
  const int has_sizes = cuplug__has_sizes(x);
  if (!has_sizes)
    add(&text, " of %" PRId32 " dimensions%s", x->ndim, x->shape ? "" : " without a shape");
  for (int32_t k = 0; has_sizes && k < x->ndim; k++)
    add(&text, "%s%" PRId64, k ? ", " : "[", x->shape[k]);
  if (has_sizes) add(&text, x->ndim ? "]" : "[]");
  return text;
}

cuplug__text cuplug__describe_argument(const cuplug_argument *a) {
  switch (a->kind) {
  case CUPLUG_ARGUMENT_ABSENT:
    return text_of("nothing");
  case CUPLUG_ARGUMENT_ARRAY:
    return describe_array(a);
  case CUPLUG_ARGUMENT_BOOL:
    return text_of("%s", a->scalar.i ? "True" : "False");
  case CUPLUG_ARGUMENT_INT:
    return text_of("the integer %" PRId64, a->scalar.i);
  case CUPLUG_ARGUMENT_UINT:
    return text_of("the integer %" PRIu64, a->scalar.u);
  case CUPLUG_ARGUMENT_HUGE_INT:
    return text_of("an integer beyond 64 bits");
  case CUPLUG_ARGUMENT_FLOAT:
    return text_of("the float %.9g", a->scalar.f);
  case CUPLUG_ARGUMENT_COMPLEX:
    return text_of("the complex number %.9g%+.9gj", a->scalar.c[0], a->scalar.c[1]);
  case CUPLUG_ARGUMENT_STRING:
    return text_of("the string \"%.80s\"", a->scalar.s);
  case CUPLUG_ARGUMENT_NONE:
    return text_of("None");
  case CUPLUG_ARGUMENT_LIST:
    return text_of(a->list.n == 1 ? "a list of 1 item" : "a list of %" PRIu32 " items", a->list.n);
  case CUPLUG_ARGUMENT_HANDLE:
    return text_of(a->flags & CUPLUG_NEW_HANDLE ? "the place of a new handle" : "a handle");
  case CUPLUG_ARGUMENT_DTYPE:
    return text_of("the dtype %s", cuplug__describe_dtype(cuplug__id_of(a->scalar.dtype)).s);
  case CUPLUG_ARGUMENT_OTHER:
    return text_of("%s", a->scalar.s);
  default:
    return text_of("an argument of unknown kind %u", a->kind);
  }
}

static cuplug__text describe_choices(const cuplug_parameter *x) {
  cuplug__text text = {""};
  for (int32_t k = 0; k < x->n_choices; k++)
    add(&text, "%s\"%s\"", !k ? "" : k + 1 < x->n_choices ? ", " : " or ", x->choices[k]);
  return text;
}

cuplug__text cuplug__describe_parameter(const cuplug_signature *s, const cuplug_parameter *x) {
  if (x->kind == CUPLUG_PARAMETER_STRING) return text_of("a string");
  if (x->kind == CUPLUG_PARAMETER_HANDLE) return text_of("handle[%s]", x->tag);
  if (x->kind == CUPLUG_PARAMETER_CHOICE) return describe_choices(x);
  const cuplug_type_variable *t = &s->variables[x->type_variable];
  if (x->kind == CUPLUG_PARAMETER_LIST)
    return text_of("a list of %s",
                   t->dtypes == cuplug__dtype_bits("int64") ? "integers" : "numbers");
  const cuplug__text dtypes = describe_dtypes(t->dtypes | t->later);
  if (x->kind == CUPLUG_PARAMETER_DTYPE) return dtypes;
  const int is_scalar = x->kind == CUPLUG_PARAMETER_SCALAR;
  cuplug__text text = text_of("%s%s", is_scalar ? "a scalar " : "", *t->name ? t->name : dtypes.s);
  for (int32_t k = 0; k < x->n_dims; k++) add(&text, "%s%s", k ? ", " : "[", x->dims[k].text);
  if (!is_scalar) add(&text, x->n_dims ? "]" : "[]");
  if (*t->name) add(&text, " with %s: %s", t->name, dtypes.s);
  return text;
}

/* ---- Names that may have been meant ---------------------------------------------------------- */

#define MAX_NAME 64

static int least(int a, int b) { return a < b ? a : b; }

int cuplug__edit_distance(const char *a, const char *b, int limit) {
  size_t n_a = strlen(a), n_b = strlen(b);
  int rows[3][MAX_NAME + 1]; /* of the lengths i, i - 1 and i - 2 of a, in turns */
  if (n_a > MAX_NAME || n_b > MAX_NAME) return limit + 1;
  for (size_t j = 0; j <= n_b; j++) rows[0][j] = (int)j;
  for (size_t i = 1; i <= n_a; i++) {
    int *row = rows[i % 3], *before = rows[(i + 2) % 3], *two_before = rows[(i + 1) % 3];
    row[0] = (int)i;
    for (size_t j = 1; j <= n_b; j++) {
      row[j] = least(before[j - 1] + (a[i - 1] != b[j - 1]), least(before[j], row[j - 1]) + 1);
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = least(row[j], two_before[j - 2] + 1);
    }
  }
  return rows[n_a % 3][n_b];
}

int cuplug__name_distance(const char *asked, const char *name) {
  size_t n_asked = strlen(asked), n_name = strlen(name);
  size_t n = n_asked < n_name ? n_asked : n_name;
  if (n >= 3 && !strncmp(asked, name, n)) return 1;
  int limit = n_asked < 5 ? 1 : 1 + (int)n_asked / 3;
  int changes = cuplug__edit_distance(asked, name, limit);
  return changes <= limit && (size_t)changes < n_asked ? changes : -1;
}

/* Names of dtypes in other languages. */
static const char *const other_names[][2] = {
    {"half", "float16"},     {"single", "float32"},    {"double", "float64"}, {"bf16", "bfloat16"},
    {"f16", "float16"},      {"f32", "float32"},       {"f64", "float64"},    {"byte", "uint8"},
    {"char", "int8"},        {"short", "int16"},       {"long", "int64"},     {"i8", "int8"},
    {"i16", "int16"},        {"i32", "int32"},         {"i64", "int64"},      {"u8", "uint8"},
    {"u16", "uint16"},       {"u32", "uint32"},        {"u64", "uint64"},     {"boolean", "bool"},
    {"cfloat", "complex64"}, {"cdouble", "complex128"}};

static const char *near_dtype(const char *name) {
  const char *nearest = NULL;
  int best = MAX_NAME;
  for (size_t k = 0; k < sizeof other_names / sizeof *other_names; k++)
    if (!strcmp(name, other_names[k][0])) return other_names[k][1];
  for (uint32_t k = 0; k < CUPLUG__N_DTYPES; k++) {
    const int far = cuplug__name_distance(name, cuplug_dtype_name(k));
    if (far >= 0 && far < best) best = far, nearest = cuplug_dtype_name(k);
  }
  return nearest;
}

cuplug__text cuplug__meant_dtype(const char *name) {
  cuplug__text text = {""};
  const char *near = near_dtype(name);
  if (near) snprintf(text.s, sizeof text.s, "; did you mean %s?", near);
  return text;
}
