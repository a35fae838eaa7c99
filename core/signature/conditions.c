/* SPDX-License-Identifier: Apache-2.0 */
#include "signature/conditions.h"

#include "base/describe.h"
#include "base/status.h"
#include "signature/formula.h"

#include <string.h>

static int32_t take_relation(cuplug__parser *p) {
  static const char *const marks[] = {"<=", "<", "==", "!=", ">=", ">"};
  static const int32_t relations[] = {CUPLUG_RELATION_LESS_EQUAL,    CUPLUG_RELATION_LESS,
                                      CUPLUG_RELATION_EQUAL,         CUPLUG_RELATION_NOT_EQUAL,
                                      CUPLUG_RELATION_GREATER_EQUAL, CUPLUG_RELATION_GREATER};
  for (int k = 0; k < 6; k++)
    if (cuplug__take(p, marks[k])) return relations[k];
  return CUPLUG_RELATION_NONE;
}

/* One side; `relation` is that to the side before it. */
static int parse_side(cuplug__parser *p, cuplug_condition *condition, int32_t relation) {
  cuplug_side *side = p->sides++;
  side->relation = relation;
  condition->n_sides++;
  p->wanted = "a number or a name";
  return cuplug__parse_formula(p, &side->formula);
}

/* "{64, 128}" after "in". */
static int parse_set(cuplug__parser *p, cuplug_condition *condition) {
  if (cuplug__expect(p, "{", "'{' and numbers")) return CUPLUG_ERROR_VALUE;
  do {
    if (parse_side(p, condition, CUPLUG_RELATION_IN)) return CUPLUG_ERROR_VALUE;
  } while (cuplug__take(p, ","));
  return cuplug__expect(p, "}", "',' or '}'");
}

static int parse_chain(cuplug__parser *p, cuplug_condition *condition) {
  const uint32_t first = condition->n_sides;
  int32_t relation = CUPLUG_RELATION_NONE;
  do {
    if (parse_side(p, condition, relation)) return CUPLUG_ERROR_VALUE;
  } while ((relation = take_relation(p)));
  if (cuplug__take_word(p, "in")) return parse_set(p, condition);
  if (condition->n_sides - first > 1) return CUPLUG_OK;
  return cuplug__parse_fail(p, p->at, "':' and dtypes, or a relation such as '<='");
}

int cuplug__parse_condition(cuplug__parser *p) {
  cuplug_condition *condition = &p->s->conditions[p->s->n_conditions++];
  const char *begin = p->at;
  condition->at = (uint32_t)(begin - p->s->text);
  condition->array = -1;
  condition->sides = p->sides;
  do {
    if (parse_chain(p, condition)) return CUPLUG_ERROR_VALUE;
  } while (cuplug__take_word(p, "or"));
  condition->text = cuplug__keep_text(p, begin);
  return CUPLUG_OK;
}

uint64_t cuplug__optional_scalars(const cuplug_signature *s, const cuplug_formula *formula) {
  uint64_t may_be_none = 0, found = 0;
  int32_t number = 0;
  for (int32_t i = 0; i < s->n_parameters; i++) {
    const cuplug_parameter *x = &s->parameters[i];
    if (x->kind <= CUPLUG_PARAMETER_INOUT) continue;
    const uint64_t is_optional = x->has_default && x->default_kind == CUPLUG_ARGUMENT_NONE;
    may_be_none |= is_optional << number++;
  }
  for (uint32_t k = 0; k < formula->n_steps; k++) {
    const cuplug_step *step = &formula->steps[k];
    const int is_list = step->kind >= CUPLUG_STEP_LENGTH && step->kind < CUPLUG_STEP_ELEMENT;
    if (step->kind == CUPLUG_STEP_SCALAR || is_list) found |= 1ull << step->operand;
  }
  return found & may_be_none;
}

/* Finds the array whose elements a condition is of. */
static int find_elements(cuplug__parser *p, cuplug_condition *condition,
                         const cuplug_formula *formula) {
  for (uint32_t k = 0; k < formula->n_steps; k++) {
    const cuplug_step *step = &formula->steps[k];
    if (step->kind != CUPLUG_STEP_ELEMENT || step->operand == condition->array) continue;
    if (condition->array >= 0) {
      p->token = p->s->text + condition->at;
      return cuplug__fail(p->error, CUPLUG_ERROR_VALUE,
                          "%s: %.80s: got two arrays, expected the elements of one", p->what,
                          condition->text);
    }
    condition->array = step->operand;
    p->s->n_element_ranges++;
  }
  return CUPLUG_OK;
}

int cuplug__check_conditions(cuplug__parser *p) {
  p->is_condition = 1;
  for (int32_t k = 0; k < p->s->n_conditions; k++) {
    cuplug_condition *condition = &p->s->conditions[k];
    for (uint32_t side = 0; side < condition->n_sides; side++) {
      const cuplug_formula *formula = &condition->sides[side].formula;
      if (cuplug__tie_formula(p, formula) || find_elements(p, condition, formula))
        return CUPLUG_ERROR_VALUE;
      condition->optional |= cuplug__optional_scalars(p->s, formula);
    }
  }
  return CUPLUG_OK;
}

/* ---- Guarantees ------------------------------------------------------------------------------ */

#define MAX_ALIGNMENT 16 /* bytes: all allocators align to at least this */

/* The guarantees, then the functions of formulas, which begin conditions. */
static const char *const functions[] = {"stride", "align", "contiguous", "len",
                                        "prod",   "min",   "max"};
enum {
  STRIDE,
  ALIGN,
  CONTIGUOUS,
  N_GUARANTEES,
  N_FUNCTIONS = sizeof functions / sizeof *functions
};

/* The name of an array parameter, of an output or of a list of arrays; without brackets in short
 * signatures. */
static int parse_array(cuplug__parser *p, const char *wanted, cuplug_parameter **x) {
  const char *name;
  cuplug__skip_space(p);
  p->token = p->at;
  if (cuplug__parse_name(p, &name, wanted)) return CUPLUG_ERROR_VALUE;
  for (int32_t k = 0; k < p->s->n_parameters + p->s->n_outputs; k++) {
    *x = &p->s->parameters[k];
    const int is_array = (*x)->n_dims || (p->is_short && (*x)->kind == CUPLUG_PARAMETER_SCALAR);
    if (is_array && !strcmp((*x)->name, name)) return CUPLUG_OK;
  }
  return cuplug__parse_fail(p, p->token, wanted);
}

int cuplug__parse_like(cuplug__parser *p, cuplug_parameter *output) {
  static const char *const an_array = "an array parameter that is always given";
  cuplug_parameter *x;
  if (!cuplug__take_word(p, "like")) return CUPLUG_OK;
  if (parse_array(p, an_array, &x)) return CUPLUG_ERROR_VALUE;
  output->like = (int32_t)(x - p->s->parameters) + 1;
  const int is_one = x->kind != CUPLUG_PARAMETER_ARRAYS && output->like <= p->s->n_parameters;
  return is_one && !x->has_default ? CUPLUG_OK : cuplug__parse_fail(p, p->token, an_array);
}

/* "(x) >= 16", "(x, -1) == 1" or "(x)" after the name of guarantee k. */
static int parse_property(cuplug__parser *p, int k) {
  static const char *const last = "', -1' (the last dimension)";
  static const char *const one = "'== 1' (adjacent elements)";
  static const char *const an_alignment = "'>=' and 1, 2, 4, 8 or 16 bytes";
  cuplug_parameter *x;
  cuplug_scalar number;
  uint32_t kind;
  if (cuplug__expect(p, "(", "'('") || parse_array(p, "an array with dimensions", &x) ||
      (k == STRIDE && (cuplug__expect(p, ",", last) || cuplug__expect(p, "-1", last))) ||
      cuplug__expect(p, ")", "')'"))
    return CUPLUG_ERROR_VALUE;
  x->has_unit_stride |= k == STRIDE;
  x->is_contiguous |= k == CONTIGUOUS;
  if (k == CONTIGUOUS) return CUPLUG_OK;
  if (k == STRIDE)
    return cuplug__expect(p, "==", one) ? CUPLUG_ERROR_VALUE : cuplug__expect(p, "1", one);
  if (cuplug__expect(p, ">=", an_alignment)) return CUPLUG_ERROR_VALUE;
  cuplug__skip_space(p);
  const char *at = p->at;
  if (cuplug__parse_number(p, &kind, &number, an_alignment)) return CUPLUG_ERROR_VALUE;
  if (kind != CUPLUG_ARGUMENT_INT || number.i < 1 || number.i > MAX_ALIGNMENT ||
      number.i & (number.i - 1))
    return cuplug__parse_fail(p, at, an_alignment);
  x->address_mask = (uint32_t)number.i - 1;
  return CUPLUG_OK;
}

int cuplug__parse_guarantee(cuplug__parser *p, const char *name, const char *at) {
  int k = 0;
  while (k < N_FUNCTIONS && strcmp(name, functions[k])) k++;
  if (k == N_FUNCTIONS) {
    const uint32_t all = (1u << N_FUNCTIONS) - 1;
    if (cuplug__refuse_similar(p, at, "a bracket", functions, all)) return CUPLUG_ERROR_VALUE;
    return cuplug__parse_fail(p, at, "stride, align, contiguous, len, prod, min or max before '('");
  }
  if (k >= N_GUARANTEES) {
    p->at = at;
    return cuplug__parse_condition(p);
  }
  p->s->has_guarantees = 1;
  if (parse_property(p, k)) return CUPLUG_ERROR_VALUE;
  at = p->at;
  if (!cuplug__take_word(p, "or")) return CUPLUG_OK;
  return cuplug__parse_fail(p, at, "',' (a guarantee has no alternatives)");
}
