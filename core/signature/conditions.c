/* SPDX-License-Identifier: Apache-2.0 */
#include "signature/conditions.h"

#include "base/status.h"
#include "signature/formula.h"

#include <string.h>

static int32_t take_relation(cuplug__parser *p) {
  static const char *const marks[] = {"<=", "<", "==", "!=", ">=", ">"};
  static const int32_t relations[] = {CUPLUG_RELATION_AT_MOST,  CUPLUG_RELATION_LESS,
                                      CUPLUG_RELATION_EQUAL,    CUPLUG_RELATION_UNEQUAL,
                                      CUPLUG_RELATION_AT_LEAST, CUPLUG_RELATION_GREATER};
  for (int k = 0; k < 6; k++)
    if (cuplug__take(p, marks[k])) return relations[k];
  return CUPLUG_RELATION_NONE;
}

/* One side; `relation` is that to the side before it. */
static int parse_side(cuplug__parser *p, cuplug_condition *condition, int32_t relation) {
  cuplug_side *side = p->sides++;
  side->relation = relation;
  condition->n_sides++;
  p->wanted = "a number or a name is expected";
  return cuplug__parse_formula(p, &side->formula);
}

/* "{64, 128}" behind "in". */
static int parse_set(cuplug__parser *p, cuplug_condition *condition) {
  if (cuplug__expect(p, "{", "'{' and numbers are expected")) return CUPLUG_ERROR_VALUE;
  do {
    if (parse_side(p, condition, CUPLUG_RELATION_IN)) return CUPLUG_ERROR_VALUE;
  } while (cuplug__take(p, ","));
  return cuplug__expect(p, "}", "',' or '}' is expected");
}

static int parse_chain(cuplug__parser *p, cuplug_condition *condition) {
  const uint32_t first = condition->n_sides;
  int32_t relation = CUPLUG_RELATION_NONE;
  do {
    if (parse_side(p, condition, relation)) return CUPLUG_ERROR_VALUE;
  } while ((relation = take_relation(p)));
  if (cuplug__take_word(p, "in")) return parse_set(p, condition);
  if (condition->n_sides - first > 1) return CUPLUG_OK;
  return cuplug__parse_fail(p, p->at, "':' and dtypes, or a relation such as '<=', are expected");
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
