/* SPDX-License-Identifier: Apache-2.0 */
#include "signature/formula.h"

#include "base/dtype.h"
#include "base/status.h"
#include "signature/value.h"

#include <ctype.h>
#include <string.h>

#define MAX_DEPTH 16

/* ---- Parsed ---------------------------------------------------------------------------------- */

static int parse_sum(cuplug__parser *p);
static int parse_bounded(cuplug__parser *p);

static int is_of_terms(const cuplug__parser *p) { return p->scope != p->s; }

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
  if (kind == CUPLUG_ARGUMENT_UINT) return cuplug__parse_fail(p, at, "a size below 2^63");
  if (kind == CUPLUG_ARGUMENT_FLOAT && is_of_terms(p))
    return cuplug__parse_fail(p, at, "an integer");
  push(p, kind == CUPLUG_ARGUMENT_FLOAT ? CUPLUG_STEP_REAL : CUPLUG_STEP_NUMBER, 0, value.i);
  return CUPLUG_OK;
}

static int parse_least(cuplug__parser *p, int32_t kind) {
  if (parse_sum(p) || cuplug__expect(p, ",", "','") || parse_sum(p)) return CUPLUG_ERROR_VALUE;
  push(p, kind, 0, 0);
  return cuplug__expect(p, ")", "')'");
}

static int parse_measure(cuplug__parser *p, int32_t kind) {
  return push_name(p, kind) ? CUPLUG_ERROR_VALUE : cuplug__expect(p, ")", "')'");
}

/* 1 if the number of an array's dimensions is fixed. */
static int has_rank(const cuplug_parameter *x) {
  for (int32_t k = 0; k < x->n_dims; k++) {
    const int32_t kind = x->dims[k].kind;
    if (kind == CUPLUG_DIM_VARIADIC || kind == CUPLUG_DIM_LOOP || kind >= CUPLUG_DIM_SLICE)
      return 0;
  }
  return 1;
}

/* size(x), or size(x, 0). */
static int parse_size(cuplug__parser *p) {
  const char *name;
  uint32_t kind;
  cuplug_scalar at;
  cuplug__skip_space(p);
  const char *begin = p->at;
  if (cuplug__parse_name(p, &name, "an array")) return CUPLUG_ERROR_VALUE;
  const cuplug_parameter *x;
  const int32_t array = cuplug__find_parameter(p->scope, name, strlen(name), 1, &x);
  if (array < 0) return cuplug__parse_fail(p, begin, "an array");
  if (cuplug__take(p, ")")) return push(p, CUPLUG_STEP_COUNT, array, 0), CUPLUG_OK;
  if (cuplug__expect(p, ",", "',' or ')'")) return CUPLUG_ERROR_VALUE;
  cuplug__skip_space(p);
  begin = p->at;
  if (cuplug__parse_number(p, &kind, &at, "a number")) return CUPLUG_ERROR_VALUE;
  if (kind != CUPLUG_ARGUMENT_INT || (has_rank(x) && (at.i < -x->n_dims || at.i >= x->n_dims)))
    return cuplug__parse_fail(p, begin, "a dimension that the array has");
  push(p, CUPLUG_STEP_SIZE, array, at.i);
  return cuplug__expect(p, ")", "')'");
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
  return cuplug__expect(p, "]", "']'");
}

static int parse_factor(cuplug__parser *p) {
  cuplug__skip_space(p);
  if (isdigit((unsigned char)*p->at) || *p->at == '.') return parse_literal(p);
  if (take_function(p, "min")) return parse_least(p, CUPLUG_STEP_MIN);
  if (take_function(p, "max")) return parse_least(p, CUPLUG_STEP_MAX);
  if (take_function(p, "len")) return parse_measure(p, CUPLUG_STEP_NDIM);
  if (take_function(p, "prod")) return parse_measure(p, CUPLUG_STEP_PRODUCT);
  if (is_of_terms(p) && take_function(p, "size")) return parse_size(p);
  if (cuplug__take(p, "("))
    return parse_sum(p) ? CUPLUG_ERROR_VALUE : cuplug__expect(p, ")", "')'");
  if (!cuplug__take(p, "-")) return parse_named(p);
  if (parse_bounded(p)) return CUPLUG_ERROR_VALUE;
  push(p, CUPLUG_STEP_NEGATE, 0, 0);
  return CUPLUG_OK;
}

static int parse_bounded(cuplug__parser *p) {
  if (p->depth == MAX_DEPTH)
    return cuplug__parse_fail(p, p->at, "at most 16 nested brackets and signs");
  p->depth++;
  const int status = parse_factor(p);
  p->depth--;
  return status;
}

/* Operands with the marks of a level between them, from the left. */
static int parse_operations(cuplug__parser *p, int level) {
  static const struct {
    const char *mark;
    int32_t kind;
  } levels[2][4] = {
      {{"+", CUPLUG_STEP_ADD}, {"-", CUPLUG_STEP_SUBTRACT}},
      {{"*", CUPLUG_STEP_MULTIPLY}, {"//", CUPLUG_STEP_DIVIDE}, {"%", CUPLUG_STEP_REMAINDER}}};
  if (level == 2) return parse_bounded(p);
  if (parse_operations(p, level + 1)) return CUPLUG_ERROR_VALUE;
  for (int k = 0; levels[level][k].mark; k++) {
    if (!cuplug__take(p, levels[level][k].mark)) continue;
    if (parse_operations(p, level + 1)) return CUPLUG_ERROR_VALUE;
    push(p, levels[level][k].kind, 0, 0);
    k = -1;
  }
  return CUPLUG_OK;
}

static int parse_sum(cuplug__parser *p) { return parse_operations(p, 0); }

int cuplug__parse_formula(cuplug__parser *p, cuplug_formula *formula) {
  formula->steps = p->steps;
  const int status = parse_sum(p);
  formula->n_steps = (uint32_t)(p->steps - formula->steps);
  return status;
}

/* ---- Tied to the arguments ------------------------------------------------------------------- */

/* "signature: got k, expected WANTED"; the position of the name is stored. */
static int refuse_name(cuplug__parser *p, const cuplug_step *step, const char *wanted) {
  p->token = p->s->text + step->value;
  return cuplug__fail(p->error, CUPLUG_ERROR_VALUE, "%s: got %.*s, expected %s", p->what,
                      (int)step->operand, p->token, wanted);
}

/* The same in terms, which have no floats, and read a choice as its number. */
static int argument_member(const cuplug__parser *p, const cuplug_parameter *x) {
  const int member = cuplug__scalar_member(p->scope, x);
  if (!is_of_terms(p)) return member;
  return x->kind == CUPLUG_PARAMETER_CHOICE ? 0 : member == 2 ? -1 : member;
}

static int tie_scalar(cuplug__parser *p, cuplug_step *step, const cuplug_parameter *x,
                      int32_t number) {
  const int is_list = x->kind == CUPLUG_PARAMETER_LIST || x->kind == CUPLUG_PARAMETER_ARRAYS;
  if (step->kind == CUPLUG_STEP_NDIM && is_list) {
    *step = (cuplug_step){CUPLUG_STEP_LENGTH, number, 0};
    return CUPLUG_OK;
  }
  const int is_item = step->kind == CUPLUG_STEP_ITEM;
  if ((is_item || step->kind == CUPLUG_STEP_PRODUCT) && x->kind == CUPLUG_PARAMETER_LIST) {
    if (!cuplug__is_integer_list(p->scope, x))
      return refuse_name(p, step, "a list of integers in arithmetic");
    *step = (cuplug_step){is_item ? CUPLUG_STEP_LIST_ITEM : CUPLUG_STEP_LIST_PRODUCT, number, 0};
    return CUPLUG_OK;
  }
  const int member = argument_member(p, x);
  if (step->kind != CUPLUG_STEP_SCALAR || member < 0)
    return refuse_name(p, step,
                       is_of_terms(p) ? "integers in arithmetic"
                                      : "a scalar of signed integers, of unsigned integers or of "
                                        "floats in arithmetic");
  *step = (cuplug_step){CUPLUG_STEP_SCALAR, number, member};
  return CUPLUG_OK;
}

static int tie_place(cuplug__parser *p, cuplug_step *step, const cuplug_dim_source *place) {
  if (place->is_group == (step->kind == CUPLUG_STEP_SCALAR))
    return refuse_name(p, step,
                       place->is_group ? "len, prod or [] (a group of dimensions has no size)"
                                       : "a group (this is one dimension)");
  if (!place->is_group)
    *step = (cuplug_step){CUPLUG_STEP_SIZE, place->array,
                          place->n_before >= 0 ? place->n_before : -1 - place->n_after};
  else
    *step =
        (cuplug_step){step->kind, place->array, (int64_t)place->n_before << 32 | place->n_after};
  return CUPLUG_OK;
}

static int tie_element(cuplug__parser *p, cuplug_step *step, const cuplug_parameter *x,
                       int32_t array) {
  const uint64_t real =
      cuplug__dtype_bits("bool") | cuplug__dtype_bits("integer") | cuplug__dtype_bits("floating");
  if (p->scope->variables[x->type_variable].dtypes & ~real)
    return refuse_name(p, step, "array elements of a bool, integer or floating dtype in ranges");
  *step = (cuplug_step){CUPLUG_STEP_ELEMENT, array, 0};
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
  const int32_t number = cuplug__find_parameter(p->scope, text, n, 0, &x);
  if (number >= 0) return tie_scalar(p, step, x, number);
  const cuplug_dim_source *place = cuplug__find_place(p->scope, text, n);
  if (place && place->n_before + place->n_after > -2) return tie_place(p, step, place);
  if (p->is_condition && step->kind == CUPLUG_STEP_SCALAR) {
    const int32_t array = cuplug__find_parameter(p->scope, text, n, 1, &x);
    if (array >= 0 && x->kind != CUPLUG_PARAMETER_OUTPUT) return tie_element(p, step, x, array);
  }
  if (place && p->scope->each_names >> (place - p->scope->places) & 1)
    return refuse_name(p, step,
                       "a name with one value for the call (it has one for each item of a list)");
  return refuse_name(p, step,
                     is_of_terms(p)
                         ? "a parameter, or a dimension of an input that is always given"
                         : "an integer parameter, or a dimension of an input that is always given");
}

int cuplug__tie_formula(cuplug__parser *p, const cuplug_formula *formula) {
  cuplug_step *steps = (cuplug_step *)formula->steps; /* of the signature under way */
  for (uint32_t k = 0; k < formula->n_steps; k++)
    if (tie(p, &steps[k])) return CUPLUG_ERROR_VALUE;
  return CUPLUG_OK;
}
