/* SPDX-License-Identifier: Apache-2.0 */
#include "signature/value.h"

#include "base/dtype.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_STACK 64 /* 16 brackets in each other leave at most three numbers below each */

typedef cuplug__number number;

static number integer(int64_t value) { return (number){.is_float = 0, .i = value}; }
static number real(double value) { return (number){.is_float = 1, .f = value}; }
static double as_real(number x) { return x.is_float ? x.f : (double)x.i; }

/* The array of a step; NULL for the first of an empty list, and an omitted one. */
static const cuplug_tensor *tensor_at(int32_t array, const cuplug__values *values) {
  const cuplug_tensor *t = &values->tensors[array];
  if (array < 0) {
    const cuplug_items *list = &values->scalars[~array].list;
    t = list->n ? list->items : NULL;
  }
  return t && t->ndim >= 0 ? t : NULL;
}

/* ---- The value of a step in the arguments ---------------------------------------------------- */

static const char *const too_large = "its value exceeds 64 bits";
static const char *const out_of_range = "its index is out of range";

static const char *product(const int64_t *sizes, int32_t n, number *result) {
  int64_t value = 1;
  int overflows = 0;
  *result = integer(0);
  for (int32_t k = 0; k < n; k++) {
    if (!sizes[k]) return NULL;
    overflows |= __builtin_mul_overflow(value, sizes[k], &value);
  }
  *result = integer(value);
  return overflows ? too_large : NULL;
}

static const char *item(const int64_t *items, int64_t n, number index, number *result) {
  if (index.is_float) return "its index is not an integer";
  const int64_t at = index.i < 0 ? index.i + n : index.i;
  if (at < 0 || at >= n) return out_of_range;
  *result = integer(items[at]);
  return NULL;
}

static number scalar(const cuplug_scalar *x, int64_t member) {
  if (member == 2) return real(x->f);
  return member == 1 && x->u > INT64_MAX ? real((double)x->u) : integer(x->i);
}

static const char *from_array(const cuplug_step *step, const cuplug__values *values, number *top) {
  const cuplug_tensor *t = tensor_at(step->operand, values);
  const int32_t before = (int32_t)(step->value >> 32), behind = (int32_t)step->value;
  if (!t && step->operand < 0) return "its list is empty";
  *top = step->kind == CUPLUG_STEP_ITEM ? *top : integer(0);
  if (!t) return NULL; /* an omitted array has no elements */
  switch (step->kind) {
  case CUPLUG_STEP_SIZE:
    return item(t->shape, t->ndim, integer(step->value), top);
  case CUPLUG_STEP_COUNT:
    return product(t->shape, t->ndim, top);
  case CUPLUG_STEP_NDIM:
    *top = integer(t->ndim - before - behind);
    return NULL;
  case CUPLUG_STEP_PRODUCT:
    return product(t->shape + before, t->ndim - before - behind, top);
  default:
    return item(t->shape + before, t->ndim - before - behind, *top, top);
  }
}

/* ---- Arithmetic ------------------------------------------------------------------------------ */

static int is_above(number a, number b) {
  return a.is_float || b.is_float ? as_real(a) > as_real(b) : a.i > b.i;
}

static const char *combine_reals(int32_t kind, double a, double b, number *result) {
  if (kind == CUPLUG_STEP_DIVIDE || kind == CUPLUG_STEP_REMAINDER)
    return "// and % require integers";
  *result = real(kind == CUPLUG_STEP_ADD ? a + b : kind == CUPLUG_STEP_SUBTRACT ? a - b : a * b);
  return NULL;
}

static const char *combine(int32_t kind, number a, number b, number *result) {
  int overflows = 0;
  if (kind == CUPLUG_STEP_MIN || kind == CUPLUG_STEP_MAX) {
    *result = is_above(a, b) == (kind == CUPLUG_STEP_MAX) ? a : b;
    return NULL;
  }
  if (a.is_float || b.is_float) return combine_reals(kind, as_real(a), as_real(b), result);
  *result = integer(0);
  if (kind == CUPLUG_STEP_ADD) {
    overflows = __builtin_add_overflow(a.i, b.i, &result->i);
  } else if (kind == CUPLUG_STEP_SUBTRACT) {
    overflows = __builtin_sub_overflow(a.i, b.i, &result->i);
  } else if (kind == CUPLUG_STEP_MULTIPLY) {
    overflows = __builtin_mul_overflow(a.i, b.i, &result->i);
  } else {
    if (!b.i) return "it divides by zero";
    if (b.i == -1) { /* the one quotient that may pass 64 bits */
      const int is_rest = kind == CUPLUG_STEP_REMAINDER;
      return combine(CUPLUG_STEP_SUBTRACT, integer(0), is_rest ? integer(0) : a, result);
    }
    const int64_t rest = a.i % b.i, is_rounded_up = rest && (rest < 0) != (b.i < 0);
    result->i = kind == CUPLUG_STEP_DIVIDE ? a.i / b.i - is_rounded_up : rest + is_rounded_up * b.i;
  }
  return overflows ? too_large : NULL;
}

/* ---- Formulas -------------------------------------------------------------------------------- */

/* One step that pushes, or changes the number on top. */
static const char *take(const cuplug_step *step, const cuplug__values *values, number *top) {
  const cuplug_scalar *x = &values->scalars[step->operand];
  switch (step->kind) {
  case CUPLUG_STEP_NUMBER:
    *top = integer(step->value);
    return NULL;
  case CUPLUG_STEP_REAL:
    top->is_float = 1;
    memcpy(&top->f, &step->value, sizeof top->f);
    return NULL;
  case CUPLUG_STEP_SCALAR:
    *top = scalar(x, step->value);
    return NULL;
  case CUPLUG_STEP_NEGATE:
    return top->is_float ? combine_reals(CUPLUG_STEP_SUBTRACT, 0, top->f, top)
                         : combine(CUPLUG_STEP_SUBTRACT, integer(0), *top, top);
  case CUPLUG_STEP_LENGTH:
    *top = integer(x->list.n);
    return NULL;
  case CUPLUG_STEP_LIST_ITEM:
    return item(x->list.items, x->list.n, *top, top);
  case CUPLUG_STEP_LIST_PRODUCT:
    return product(x->list.items, (int32_t)x->list.n, top);
  case CUPLUG_STEP_ELEMENT:
    *top = values->element;
    return NULL;
  default:
    return from_array(step, values, top);
  }
}

static int changes_top(int32_t kind) {
  return kind == CUPLUG_STEP_NEGATE || kind == CUPLUG_STEP_ITEM || kind == CUPLUG_STEP_LIST_ITEM;
}

/* Works a formula out. Returns NULL, or why it has no value: "its value exceeds 64 bits". */
static const char *work_out(const cuplug_formula *formula, const cuplug__values *values,
                            number *result) {
  number stack[MAX_STACK];
  uint32_t n = 0;
  const char *wrong = NULL;
  for (uint32_t k = 0; k < formula->n_steps && !wrong; k++) {
    const cuplug_step *step = &formula->steps[k];
    const int combines = step->kind >= CUPLUG_STEP_ADD && step->kind <= CUPLUG_STEP_MAX;
    const uint32_t taken = combines ? 2 : (uint32_t)changes_top(step->kind);
    if (n < taken || n - taken == MAX_STACK) return "it is too deep";
    n -= taken;
    wrong = combines ? combine(step->kind, stack[n], stack[n + 1], &stack[n])
                     : take(step, values, &stack[n]);
    n++;
  }
  if (!wrong && n != 1) wrong = "it is not a formula";
  if (!wrong) *result = stack[0];
  return wrong;
}

const char *cuplug__work_out_integer(const cuplug_formula *formula, const cuplug__values *values,
                                     int64_t *result) {
  number value;
  const char *wrong = work_out(formula, values, &value);
  if (!wrong && value.is_float) wrong = "it is not an integer";
  if (!wrong) *result = value.i;
  return wrong;
}

/* ---- Conditions ------------------------------------------------------------------------------ */

static int is_related(int32_t relation, number a, number b) {
  enum { BELOW = 1, EQUAL = 2, ABOVE = 4, UNORDERED = 8 };
  static const int allowed[] = {[CUPLUG_RELATION_LESS] = BELOW,
                                [CUPLUG_RELATION_LESS_EQUAL] = BELOW | EQUAL,
                                [CUPLUG_RELATION_EQUAL] = EQUAL,
                                [CUPLUG_RELATION_NOT_EQUAL] = BELOW | ABOVE | UNORDERED,
                                [CUPLUG_RELATION_GREATER_EQUAL] = ABOVE | EQUAL,
                                [CUPLUG_RELATION_GREATER] = ABOVE,
                                [CUPLUG_RELATION_IN] = EQUAL};
  const int is_nan = as_real(a) != as_real(a) || as_real(b) != as_real(b);
  const int found = is_nan ? UNORDERED : is_above(a, b) ? ABOVE : is_above(b, a) ? BELOW : EQUAL;
  return (allowed[relation] & found) != 0;
}

int cuplug__condition_holds(const cuplug_condition *condition, const cuplug__values *values) {
  number before = integer(0), side;
  int holds = 0, is_open = 0; /* the alternative so far; the same before its set */
  for (uint32_t k = 0; k < condition->n_sides; k++) {
    const cuplug_side *x = &condition->sides[k];
    const int is_member = x->relation == CUPLUG_RELATION_IN;
    if (is_member && x[-1].relation != CUPLUG_RELATION_IN) is_open = holds, holds = 0;
    if (x->relation == CUPLUG_RELATION_NONE) {
      if (holds) return 1;
      holds = 1;
    }
    if (is_member ? holds || !is_open : !holds) continue;
    if (work_out(&x->formula, values, &side)) {
      holds = 0;
    } else {
      holds = x->relation == CUPLUG_RELATION_NONE || is_related(x->relation, before, side);
      if (!is_member) before = side;
    }
  }
  return holds;
}

/* ---- Names ----------------------------------------------------------------------------------- */

int32_t cuplug__find_parameter(const cuplug_signature *s, const char *text, size_t n, int is_array,
                               const cuplug_parameter **x) {
  const int32_t end = s->n_parameters + (is_array ? s->n_outputs : 0);
  for (int32_t i = 0, number = 0; i < end; i++) {
    *x = &s->parameters[i];
    const int is_other = i < s->n_parameters && ((*x)->kind <= CUPLUG_PARAMETER_INOUT) != is_array;
    if (!is_other && cuplug__is_name((*x)->name, text, n)) return number;
    number += !is_other;
  }
  return -1;
}

const cuplug_dim_source *cuplug__find_place(const cuplug_signature *s, const char *text, size_t n) {
  for (int32_t k = 0; k < s->n_dim_names; k++)
    if (cuplug__is_name(s->dim_names[k], text, n)) return &s->places[k];
  return NULL;
}

int cuplug__scalar_member(const cuplug_signature *s, const cuplug_parameter *x) {
  int seen = -1;
  if (x->kind != CUPLUG_PARAMETER_SCALAR) return -1;
  const uint64_t dtypes = s->variables[x->type_variable].dtypes;
  for (uint32_t k = 0; cuplug_dtype_name(k); k++) {
    static const int members[] = {0, 1, 2, -1, 2, -1, 0}; /* by DLPack's type code */
    const uint32_t code = cuplug_dtype_id(k) >> 24;
    if (!(dtypes >> k & 1)) continue;
    const int member = code < 7 ? members[code] : 2;
    if (member < 0 || (seen >= 0 && seen != member)) return -1;
    seen = member;
  }
  return seen;
}

int cuplug__is_integer_list(const cuplug_signature *s, const cuplug_parameter *x) {
  return x->kind == CUPLUG_PARAMETER_LIST &&
         s->variables[x->type_variable].dtypes == cuplug__dtype_bits("int64");
}

/* ---- Texts ----------------------------------------------------------------------------------- */

cuplug__text cuplug__describe_number(cuplug__number x) {
  cuplug__text text;
  if (x.is_float) return cuplug__describe_float(x.f);
  snprintf(text.s, sizeof text.s, "%" PRId64, x.i);
  return text;
}

typedef struct description {
  const cuplug_signature *s;
  const cuplug__values *values;
  cuplug__text text;
} description;

static void tell(description *d, const char *name, size_t n, const char *value) {
  const size_t used = strlen(d->text.s);
  snprintf(d->text.s + used, sizeof d->text.s - used, "%s%.*s = %.200s", used ? ", " : "", (int)n,
           name, value);
}

static void tell_number(description *d, const char *name, size_t n, cuplug_step step) {
  const cuplug_formula formula = {&step, 1};
  cuplug__number number;
  if (!work_out(&formula, d->values, &number)) tell(d, name, n, cuplug__describe_number(number).s);
}

/* "[2, -3]"; long ones by their first items. */
static void tell_list(description *d, const char *name, size_t n, const cuplug_items *list) {
  const int64_t *items = list->items;
  char value[200] = "[";
  for (int64_t k = 0; k < list->n; k++) {
    const size_t used = strlen(value);
    snprintf(value + used, sizeof value - used, k < 6 ? "%s%" PRId64 : "%s...", k ? ", " : "",
             items[k]);
    if (k == 6) break;
  }
  strcat(value, "]");
  tell(d, name, n, value);
}

static void tell_name(description *d, const char *name, size_t n) {
  const cuplug_parameter *x;
  const int32_t number = cuplug__find_parameter(d->s, name, n, 0, &x);
  const cuplug_dim_source *place = number < 0 ? cuplug__find_place(d->s, name, n) : NULL;
  const int member = number < 0 ? -1 : cuplug__scalar_member(d->s, x);
  if (member >= 0) tell_number(d, name, n, (cuplug_step){CUPLUG_STEP_SCALAR, number, member});
  if (number >= 0 && cuplug__is_integer_list(d->s, x))
    tell_list(d, name, n, &d->values->scalars[number].list);
  if (!place) return;
  if (!place->is_group) {
    const int64_t at = place->n_before >= 0 ? place->n_before : -1 - place->n_after;
    tell_number(d, name, n, (cuplug_step){CUPLUG_STEP_SIZE, place->array, at});
    return;
  }
  const cuplug_tensor *t = tensor_at(place->array, d->values);
  if (t && t->ndim >= place->n_before + place->n_after)
    tell(d, name, n,
         cuplug__describe_tuple(t->shape + place->n_before,
                                t->ndim - place->n_before - place->n_after)
             .s);
}

/* Returns whether a name was already reported. */
static int stands_before(const char *text, const char *at, size_t n) {
  for (const char *before = text; before < at; before++)
    if (!strncmp(before, at, n) && before + n < at && !cuplug__is_word(before[n]) &&
        (before == text || !cuplug__is_word(before[-1])))
      return 1;
  return 0;
}

cuplug__text cuplug__describe_names(const cuplug_signature *s, const char *text,
                                    const cuplug__values *values) {
  description d = {s, values, {""}};
  for (const char *at = text; *at;) {
    size_t n = 0;
    while (cuplug__is_word(at[n])) n++;
    if (n && !isdigit((unsigned char)*at) && !stands_before(text, at, n)) tell_name(&d, at, n);
    at += n ? n : 1;
  }
  return d.text;
}
