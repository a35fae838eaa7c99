/* SPDX-License-Identifier: Apache-2.0 */
#include "base/describe.h"

#include "base/dtype.h"
#include "base/layout.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static void add(cuplug__text *text, const char *format, ...) {
  size_t n = strlen(text->s);
  va_list list;
  va_start(list, format);
  vsnprintf(text->s + n, sizeof(text->s) - n, format, list);
  va_end(list);
}

cuplug__text cuplug__describe_dtype(uint32_t id) {
  cuplug__text text = {""};
  const uint64_t bit = cuplug__dtype_bit(id);
  if (bit)
    add(&text, "%s", cuplug_dtype_name(cuplug__dtype_number(bit)));
  else
    add(&text, "DLPack dtype (%u, %u bits, %u lanes)", id >> 24, id >> 16 & 255, id & 65535);
  const uint64_t pair = bit ? 0 : cuplug__dtype_bit((id & 0xffff0000u) | 2);
  if (pair) add(&text, ", an unpacked %s", cuplug_dtype_name(cuplug__dtype_number(pair)));
  return text;
}

cuplug__text cuplug__describe_dtypes(uint64_t bits) {
  static const char *const groups[] = {"integer", "floating", "complex"};
  cuplug__text text = {""};
  for (size_t k = 0; k < sizeof groups / sizeof *groups; k++)
    if (bits == cuplug__dtype_bits(groups[k])) {
      add(&text, "%s", groups[k]);
      return text;
    }
  if (bits == CUPLUG__ANY_DTYPE) {
    add(&text, "any dtype");
    return text;
  }
  for (uint32_t k = 0; k < CUPLUG__N_DTYPES; k++)
    if (bits >> k & 1) add(&text, "%s%s", *text.s ? " | " : "", cuplug_dtype_name(k));
  return text;
}

cuplug__text cuplug__describe_shape(const int64_t *shape, int32_t ndim) {
  cuplug__text text = {"("};
  for (int32_t k = 0; k < ndim; k++) {
    if (k) add(&text, ", ");
    if (shape[k] < 0)
      add(&text, "?");
    else
      add(&text, "%" PRId64, shape[k]);
  }
  add(&text, ndim == 1 ? ",)" : ")");
  return text;
}

cuplug__text cuplug__describe_strides(const int64_t *strides, int32_t ndim) {
  cuplug__text text = {"("};
  for (int32_t k = 0; k < ndim; k++) add(&text, "%s%" PRId64, k ? ", " : "", strides[k]);
  add(&text, ndim == 1 ? ",)" : ")");
  return text;
}

cuplug__text cuplug__describe_device(cuplug_device device) {
  cuplug__text text = {""};
  if (device.type == CUPLUG_CUDA && device.id == CUPLUG_ALL_GPUS)
    add(&text, "cuda:*");
  else if (device.type == CUPLUG_CUDA || device.type == CUPLUG_CUDA_MANAGED)
    add(&text, "cuda:%d", (int)device.id);
  else if (device.type == CUPLUG_CPU || device.type == CUPLUG_CUDA_HOST)
    add(&text, "the host");
  else
    add(&text, "a device of DLPack type %d", (int)device.type);
  return text;
}

cuplug__text cuplug__describe_architectures(const char *architectures) {
  cuplug__text text = {""};
  char *end;
  for (const char *at = architectures; *at; at = *end ? end + 1 : end) {
    long value = strtol(at, &end, 10);
    if (end == at) break;
    add(&text, "%s%ld.%ld", *text.s ? ", " : "", value / 100, value / 10 % 10);
  }
  return text;
}

static void add_array(cuplug__text *text, const cuplug_argument *a) {
  const cuplug_tensor *x = &a->tensor;
  add(text, "%s%s", a->flags & CUPLUG_BYTE_SWAPPED ? "byte-swapped " : "",
      cuplug__describe_dtype(cuplug_type(x)).s);
  if (!cuplug__has_sizes(x)) {
    add(text, " of %" PRId32 " dimensions%s", x->ndim, x->shape ? "" : " without a shape");
    return;
  }
  add(text, "[");
  for (int32_t k = 0; k < x->ndim; k++) add(text, "%s%" PRId64, k ? ", " : "", x->shape[k]);
  add(text, "]");
}

cuplug__text cuplug__describe_argument(const cuplug_argument *a) {
  cuplug__text text = {""};
  switch (a->kind) {
  case CUPLUG_ARGUMENT_ABSENT:
    add(&text, "nothing");
    break;
  case CUPLUG_ARGUMENT_ARRAY:
    add_array(&text, a);
    break;
  case CUPLUG_ARGUMENT_BOOL:
    add(&text, "%s", a->scalar.i ? "True" : "False");
    break;
  case CUPLUG_ARGUMENT_INT:
    add(&text, "the integer %" PRId64, a->scalar.i);
    break;
  case CUPLUG_ARGUMENT_UINT:
    add(&text, "the integer %" PRIu64, a->scalar.u);
    break;
  case CUPLUG_ARGUMENT_HUGE_INT:
    add(&text, "an integer beyond 64 bits");
    break;
  case CUPLUG_ARGUMENT_FLOAT:
    add(&text, "the float %.9g", a->scalar.f);
    break;
  case CUPLUG_ARGUMENT_COMPLEX:
    add(&text, "the complex number %.9g%+.9gj", a->scalar.c[0], a->scalar.c[1]);
    break;
  case CUPLUG_ARGUMENT_STRING:
    add(&text, "the string \"%.80s\"", a->scalar.s);
    break;
  case CUPLUG_ARGUMENT_NONE:
    add(&text, "None");
    break;
  case CUPLUG_ARGUMENT_LIST:
    add(&text, a->list.n == 1 ? "a list of 1 item" : "a list of %" PRIu32 " items", a->list.n);
    break;
  case CUPLUG_ARGUMENT_HANDLE:
    add(&text, a->flags & CUPLUG_NEW_HANDLE ? "the place of a new handle" : "a handle");
    break;
  case CUPLUG_ARGUMENT_DTYPE:
    add(&text, "the dtype %s", cuplug__describe_dtype(cuplug__id_of(a->scalar.dtype)).s);
    break;
  case CUPLUG_ARGUMENT_OTHER:
    add(&text, "%s", a->scalar.s);
    break;
  default:
    add(&text, "an argument of unknown kind %u", a->kind);
  }
  return text;
}

static void add_dims(cuplug__text *text, const cuplug_parameter *x) {
  for (int32_t k = 0; k < x->n_dims; k++) add(text, "%s%s", k ? ", " : "[", x->dims[k].text);
  add(text, x->n_dims ? "]" : "[]");
}

static void add_choices(cuplug__text *text, const cuplug_parameter *x) {
  for (int32_t k = 0; k < x->n_choices; k++)
    add(text, "%s\"%s\"", !k ? "" : k + 1 < x->n_choices ? ", " : " or ", x->choices[k]);
}

cuplug__text cuplug__describe_parameter(const cuplug_signature *s, const cuplug_parameter *x) {
  cuplug__text text = {""};
  if (x->kind == CUPLUG_PARAMETER_STRING) {
    add(&text, "a string");
  } else if (x->kind == CUPLUG_PARAMETER_HANDLE) {
    add(&text, "handle[%s]", x->tag);
  } else if (x->kind == CUPLUG_PARAMETER_CHOICE) {
    add_choices(&text, x);
  } else if (x->kind == CUPLUG_PARAMETER_LIST) {
    const int is_int = s->variables[x->type_variable].dtypes == cuplug__dtype_bits("int64");
    add(&text, is_int ? "a list of integers" : "a list of numbers");
  } else {
    const cuplug_type_variable *t = &s->variables[x->type_variable];
    cuplug__text dtypes = cuplug__describe_dtypes(t->dtypes | t->later);
    if (x->kind == CUPLUG_PARAMETER_DTYPE) {
      add(&text, "%s", dtypes.s);
      return text;
    }
    if (x->kind == CUPLUG_PARAMETER_SCALAR) add(&text, "a scalar ");
    add(&text, "%s", *t->name ? t->name : dtypes.s);
    if (x->kind != CUPLUG_PARAMETER_SCALAR) add_dims(&text, x);
    if (*t->name) add(&text, " with %s: %s", t->name, dtypes.s);
  }
  return text;
}
