/* SPDX-License-Identifier: Apache-2.0 */
#include "signature/formula.h"

#include "base/dtype.h"
#include "base/status.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_DEPTH 16

/* ---- Parsed ---------------------------------------------------------------------------------- */

static int parse_sum(cuplug__parser *p);
static int parse_bounded(cuplug__parser *p);

static void push(cuplug__parser *p, int32_t kind, int32_t operand, int64_t value) {
  *p->steps++ = (cuplug_step){kind, operand, value};
}

/* A step on a name, to be tied later: its place in the text. */
static int push_name(cuplug__parser *p, int32_t kind) {
  const char *name;
  cuplug__skip_space(p);
  const char *at = p->at;
  int status = cuplug__parse_name(p, &name, p->wanted);
  if (!status) push(p, kind, (int32_t)(p->at - at), at - p->s->text);
  return status;
}

static int parse_literal(cuplug__parser *p) {
  uint32_t kind;
  cuplug_scalar value;
  const char *at = p->at;
  if (cuplug__parse_number(p, &kind, &value, p->wanted)) return CUPLUG_ERROR_VALUE;
  if (kind == CUPLUG_ARGUMENT_UINT) return cuplug__parse_fail(p, at, "a size below 2^63 is wanted");
  push(p, kind == CUPLUG_ARGUMENT_FLOAT ? CUPLUG_STEP_REAL : CUPLUG_STEP_NUMBER, 0, value.i);
  return CUPLUG_OK;
}

static int parse_least(cuplug__parser *p, int32_t kind) {
  if (parse_sum(p) || cuplug__expect(p, ",", "',' is wanted") || parse_sum(p))
    return CUPLUG_ERROR_VALUE;
  push(p, kind, 0, 0);
  return cuplug__expect(p, ")", "')' is wanted");
}

static int parse_measure(cuplug__parser *p, int32_t kind) {
  return push_name(p, kind) ? CUPLUG_ERROR_VALUE : cuplug__expect(p, ")", "')' is wanted");
}

/* A function's name and its bracket, or neither of them. */
static int take_function(cuplug__parser *p, const char *name) {
  const char *at = p->at;
  if (cuplug__take_word(p, name) && cuplug__take(p, "(")) return 1;
  p->at = at;
  return 0;
}

/* n, or s[i]: the index comes before the step that takes it. */
static int parse_named(cuplug__parser *p) {
  if (push_name(p, CUPLUG_STEP_SCALAR)) return CUPLUG_ERROR_VALUE;
  if (!cuplug__take(p, "[")) return CUPLUG_OK;
  cuplug_step item = *--p->steps;
  item.kind = CUPLUG_STEP_ITEM;
  if (parse_sum(p)) return CUPLUG_ERROR_VALUE;
  *p->steps++ = item;
  return cuplug__expect(p, "]", "']' is wanted");
}

static int parse_factor(cuplug__parser *p) {
  cuplug__skip_space(p);
  if (isdigit((unsigned char)*p->at) || *p->at == '.') return parse_literal(p);
  if (take_function(p, "min")) return parse_least(p, CUPLUG_STEP_LEAST);
  if (take_function(p, "max")) return parse_least(p, CUPLUG_STEP_GREATEST);
  if (take_function(p, "len")) return parse_measure(p, CUPLUG_STEP_NDIM);
  if (take_function(p, "prod")) return parse_measure(p, CUPLUG_STEP_PRODUCT);
  if (cuplug__take(p, "("))
    return parse_sum(p) ? CUPLUG_ERROR_VALUE : cuplug__expect(p, ")", "')' is wanted");
  if (!cuplug__take(p, "-")) return parse_named(p);
  if (parse_bounded(p)) return CUPLUG_ERROR_VALUE;
  push(p, CUPLUG_STEP_NEGATE, 0, 0);
  return CUPLUG_OK;
}

static int parse_bounded(cuplug__parser *p) {
  if (p->depth == MAX_DEPTH)
    return cuplug__parse_fail(p, p->at,
                              "at most 16 brackets and signs in each other may be written");
  p->depth++;
  const int status = parse_factor(p);
  p->depth--;
  return status;
}

static int take_operation(cuplug__parser *p, const char *const *marks, const int32_t *kinds,
                          int32_t *kind) {
  for (int k = 0; marks[k]; k++)
    if (cuplug__take(p, marks[k])) return *kind = kinds[k], 1;
  return 0;
}

static int parse_product(cuplug__parser *p) {
  static const char *const marks[] = {"*", "//", "%", NULL};
  static const int32_t kinds[] = {CUPLUG_STEP_MULTIPLY, CUPLUG_STEP_DIVIDE, CUPLUG_STEP_REST};
  int32_t kind;
  if (parse_bounded(p)) return CUPLUG_ERROR_VALUE;
  while (take_operation(p, marks, kinds, &kind)) {
    if (parse_bounded(p)) return CUPLUG_ERROR_VALUE;
    push(p, kind, 0, 0);
  }
  return CUPLUG_OK;
}

static int parse_sum(cuplug__parser *p) {
  static const char *const marks[] = {"+", "-", NULL};
  static const int32_t kinds[] = {CUPLUG_STEP_ADD, CUPLUG_STEP_SUBTRACT};
  int32_t kind;
  if (parse_product(p)) return CUPLUG_ERROR_VALUE;
  while (take_operation(p, marks, kinds, &kind)) {
    if (parse_product(p)) return CUPLUG_ERROR_VALUE;
    push(p, kind, 0, 0);
  }
  return CUPLUG_OK;
}

int cuplug__parse_formula(cuplug__parser *p, cuplug_formula *formula) {
  formula->steps = p->steps;
  const int status = parse_sum(p);
  formula->n_steps = (uint32_t)(p->steps - formula->steps);
  return status;
}

/* ---- Tied to the arguments ------------------------------------------------------------------- */

static int is_name(const char *name, const char *text, size_t n) {
  return !strncmp(name, text, n) && !name[n];
}

/* The number of a parameter among the scalars; -1 for another name. */
static int32_t find_scalar(const cuplug_signature *s, const char *text, size_t n,
                           const cuplug_parameter **x) {
  int32_t number = 0;
  for (int32_t i = 0; i < s->n_parameters; i++) {
    *x = &s->parameters[i];
    if ((*x)->kind <= CUPLUG_PARAMETER_INOUT) continue;
    if (is_name((*x)->name, text, n)) return number;
    number++;
  }
  return -1;
}

static const cuplug_place *find_place(const cuplug_signature *s, const char *text, size_t n) {
  for (int32_t k = 0; k < s->n_dim_names; k++)
    if (is_name(s->dim_names[k], text, n)) return &s->places[k];
  return NULL;
}

int cuplug__is_dimension(const cuplug_signature *s, const cuplug_formula *formula) {
  const cuplug_step *step = formula->steps;
  const cuplug_parameter *x;
  return formula->n_steps == 1 && step->kind == CUPLUG_STEP_SCALAR &&
         find_scalar(s, s->text + step->value, (size_t)step->operand, &x) < 0;
}

/* Of which kind the numbers of a scalar parameter are, as `value` of its step: 0 signed, 1
 * unsigned, 2 floating; -1 where they may be of several, or are no numbers. */
static int scalar_member(const cuplug_signature *s, const cuplug_parameter *x) {
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

/* "signature: k: what is wrong"; the place of the name is remembered. */
static int refuse_name(cuplug__parser *p, const cuplug_step *step, const char *what) {
  p->token = p->s->text + step->value;
  return cuplug__fail(p->error, CUPLUG_ERROR_VALUE, "signature: %.*s: %s", (int)step->operand,
                      p->token, what);
}

static int tie_scalar(cuplug__parser *p, cuplug_step *step, const cuplug_parameter *x,
                      int32_t number) {
  const int is_list = x->kind == CUPLUG_PARAMETER_LIST || x->kind == CUPLUG_PARAMETER_ARRAYS;
  if (step->kind == CUPLUG_STEP_NDIM && is_list) {
    *step = (cuplug_step){CUPLUG_STEP_LENGTH, number, 0};
    return CUPLUG_OK;
  }
  if (step->kind == CUPLUG_STEP_ITEM && x->kind == CUPLUG_PARAMETER_LIST) {
    const int is_float = p->s->variables[x->type_variable].dtypes != cuplug__dtype_bits("int64");
    if (is_float) return refuse_name(p, step, "a list of integers is wanted in arithmetic");
    *step = (cuplug_step){CUPLUG_STEP_LIST_ITEM, number, 0};
    return CUPLUG_OK;
  }
  const int member = scalar_member(p->s, x);
  if (step->kind != CUPLUG_STEP_SCALAR || member < 0)
    return refuse_name(p, step,
                       "arithmetic wants a scalar of signed integers, of unsigned ones, or of "
                       "floats");
  *step = (cuplug_step){CUPLUG_STEP_SCALAR, number, member};
  return CUPLUG_OK;
}

static int tie_place(cuplug__parser *p, cuplug_step *step, const cuplug_place *place) {
  if (place->is_group == (step->kind == CUPLUG_STEP_SCALAR))
    return refuse_name(p, step,
                       place->is_group ? "a group of dimensions has no size: len, prod or [] is "
                                         "wanted"
                                       : "this is one dimension, a group is wanted");
  if (!place->is_group)
    *step = (cuplug_step){CUPLUG_STEP_SIZE, place->array,
                          place->n_before >= 0 ? place->n_before : -1 - place->n_behind};
  else
    *step =
        (cuplug_step){step->kind, place->array, (int64_t)place->n_before << 32 | place->n_behind};
  return CUPLUG_OK;
}

static int is_tied_later(int32_t kind) {
  return kind == CUPLUG_STEP_SCALAR || kind == CUPLUG_STEP_NDIM || kind == CUPLUG_STEP_PRODUCT ||
         kind == CUPLUG_STEP_ITEM;
}

static int tie(cuplug__parser *p, cuplug_step *step) {
  const cuplug_parameter *x;
  if (!is_tied_later(step->kind)) return CUPLUG_OK;
  const char *text = p->s->text + step->value;
  const size_t n = (size_t)step->operand;
  const int32_t number = find_scalar(p->s, text, n, &x);
  if (number >= 0) return tie_scalar(p, step, x, number);
  const cuplug_place *place = find_place(p->s, text, n);
  if (place && place->n_before + place->n_behind > -2) return tie_place(p, step, place);
  if (place && p->s->each_names >> (place - p->s->places) & 1)
    return refuse_name(p, step, "it has a value for each item of a list, and none for the call");
  return refuse_name(p, step,
                     "neither an integer parameter nor a dimension of an input that is always "
                     "given");
}

int cuplug__tie_formula(cuplug__parser *p, const cuplug_formula *formula) {
  cuplug_step *steps = (cuplug_step *)formula->steps; /* of the signature under way */
  for (uint32_t k = 0; k < formula->n_steps; k++)
    if (tie(p, &steps[k])) return CUPLUG_ERROR_VALUE;
  return CUPLUG_OK;
}

/* ---- Told ------------------------------------------------------------------------------------ */

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
  const cuplug_formula formula = {&step, 1, 0};
  cuplug__number number;
  char value[32];
  if (cuplug__work_out(&formula, d->values, &number)) return;
  if (number.is_float)
    snprintf(value, sizeof value, "%.9g", number.f);
  else
    snprintf(value, sizeof value, "%" PRId64, number.i);
  tell(d, name, n, value);
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
  const int32_t number = find_scalar(d->s, name, n, &x);
  const cuplug_place *place = number < 0 ? find_place(d->s, name, n) : NULL;
  const int member = number < 0 ? -1 : scalar_member(d->s, x);
  if (member >= 0) tell_number(d, name, n, (cuplug_step){CUPLUG_STEP_SCALAR, number, member});
  if (number >= 0 && x->kind == CUPLUG_PARAMETER_LIST &&
      d->s->variables[x->type_variable].dtypes == cuplug__dtype_bits("int64"))
    tell_list(d, name, n, &d->values->scalars[number].list);
  if (!place) return;
  if (!place->is_group) {
    const int64_t at = place->n_before >= 0 ? place->n_before : -1 - place->n_behind;
    tell_number(d, name, n, (cuplug_step){CUPLUG_STEP_SIZE, place->array, at});
    return;
  }
  const cuplug_tensor *t = cuplug__tensor_at(place->array, d->values);
  if (t && t->ndim >= place->n_before + place->n_behind)
    tell(d, name, n,
         cuplug__describe_shape(t->shape + place->n_before,
                                t->ndim - place->n_before - place->n_behind)
             .s);
}

/* Whether a name was told already. */
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
