/* SPDX-License-Identifier: Apache-2.0 */
#include "signature/default.h"

#include "base/dtype.h"
#include "signature/names.h"

#include <string.h>

/* A dtype, or the name of a type variable, as a string. */
static int parse_dtype(cuplug__parser *p, cuplug_parameter *x) {
  static const char *const wanted = "a default is expected: a dtype, or a type variable above";
  const char *name;
  cuplug__skip_space(p);
  const char *at = p->at;
  if (cuplug__parse_name(p, &name, wanted)) return CUPLUG_ERROR_VALUE;
  x->default_kind = CUPLUG_ARGUMENT_STRING;
  x->default_value.s = name;
  if (cuplug__variable_of(p->s, name) >= 0) return CUPLUG_OK;
  const uint64_t bits = cuplug__dtype_bits(name);
  if (!bits || bits & (bits - 1)) return cuplug__parse_fail(p, at, wanted);
  x->default_value.dtype = cuplug__dtype_of(cuplug_dtype_id(cuplug__dtype_number(bits)));
  x->default_kind = CUPLUG_ARGUMENT_DTYPE;
  return CUPLUG_OK;
}

static int parse_value(cuplug__parser *p, cuplug_parameter *x) {
  uint32_t kind = CUPLUG_ARGUMENT_STRING;
  x->has_default = 1;
  if (x->kind == CUPLUG_PARAMETER_DTYPE) return parse_dtype(p, x);
  if (cuplug__at_string(p)) {
    if (cuplug__parse_string(p, &x->default_value.s)) return CUPLUG_ERROR_VALUE;
  } else if (cuplug__take_word(p, "None")) {
    kind = CUPLUG_ARGUMENT_NONE;
  } else if (cuplug__take_word(p, "True") || cuplug__take_word(p, "False")) {
    kind = CUPLUG_ARGUMENT_BOOL;
    x->default_value.i = p->at[-2] == 'u';
  } else if (cuplug__parse_number(p, &kind, &x->default_value,
                                  "a default is expected: a number, string or None")) {
    return CUPLUG_ERROR_VALUE;
  }
  x->default_kind = (int32_t)kind;
  return CUPLUG_OK;
}

/* A choice's default is kept as its number; what is no choice is left for the rules to refuse. */
static void number_choice(cuplug_parameter *x) {
  int is_string = x->default_kind == CUPLUG_ARGUMENT_STRING;
  if (x->kind != CUPLUG_PARAMETER_CHOICE || x->default_kind == CUPLUG_ARGUMENT_NONE) return;
  x->default_kind = CUPLUG_ARGUMENT_OTHER;
  for (int32_t k = 0; k < x->n_choices; k++)
    if (is_string && !strcmp(x->choices[k], x->default_value.s)) {
      x->default_kind = CUPLUG_ARGUMENT_INT;
      x->default_value.i = k;
      return;
    }
}

int cuplug__parse_default(cuplug__parser *p, cuplug_parameter *x) {
  const char *begin = p->at;
  if (parse_value(p, x)) return CUPLUG_ERROR_VALUE;
  number_choice(x);
  x->default_text = cuplug__keep_text(p, begin);
  return CUPLUG_OK;
}

/* A scalar's default is of the type, and in the range, of all its dtypes. */
static int scalar_takes(uint64_t dtypes, const cuplug_parameter *x) {
  const cuplug_argument value = {.kind = (uint32_t)x->default_kind, .scalar = x->default_value};
  cuplug_scalar converted;
  for (uint32_t k = 0; cuplug_dtype_name(k); k++)
    if (dtypes >> k & 1 && cuplug__convert_scalar(&value, cuplug_dtype_id(k), &converted)) return 0;
  return 1;
}

/* Of the variable that a default names, those that an array before it is always given. */
static uint64_t dtypes_by_default(const cuplug_signature *s, const cuplug_parameter *x) {
  if (x->default_kind == CUPLUG_ARGUMENT_DTYPE)
    return cuplug__dtype_bit(cuplug__id_of(x->default_value.dtype));
  const int32_t v = cuplug__variable_of(s, x->default_value.s);
  for (const cuplug_parameter *y = s->parameters; y < x; y++)
    if (y->type_variable == v && y->kind <= CUPLUG_PARAMETER_INOUT && !y->has_default)
      return s->variables[v].dtypes;
  return 0;
}

int cuplug__fits_default(const cuplug_signature *s, const cuplug_parameter *x) {
  const uint64_t dtypes = x->type_variable < 0 ? 0 : s->variables[x->type_variable].dtypes;
  if (x->default_kind == CUPLUG_ARGUMENT_NONE) return 1;
  switch (x->kind) {
  case CUPLUG_PARAMETER_STRING:
    return x->default_kind == CUPLUG_ARGUMENT_STRING;
  case CUPLUG_PARAMETER_CHOICE:
    return x->default_kind == CUPLUG_ARGUMENT_INT;
  case CUPLUG_PARAMETER_SCALAR:
    return scalar_takes(dtypes, x);
  case CUPLUG_PARAMETER_DTYPE:
    return (dtypes & dtypes_by_default(s, x)) != 0;
  default:
    return 0;
  }
}
