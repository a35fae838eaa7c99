/* SPDX-License-Identifier: Apache-2.0 */
#include "signature/conditions.h"

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

int cuplug__parse_condition(cuplug__parser *p) {
  cuplug_condition *condition = &p->s->conditions[p->s->n_conditions++];
  int32_t relation = CUPLUG_RELATION_NONE;
  const char *begin = p->at;
  condition->at = (uint32_t)(begin - p->s->text);
  condition->sides = p->sides;
  do {
    cuplug_side *side = p->sides++;
    side->relation = relation;
    condition->n_sides++;
    p->wanted = "a number or a name is wanted";
    if (cuplug__parse_formula(p, &side->formula)) return CUPLUG_ERROR_VALUE;
  } while ((relation = take_relation(p)));
  if (condition->n_sides < 2)
    return cuplug__parse_fail(p, p->at, "':' and dtypes, or a relation such as '<=', are wanted");
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
    const int is_list = step->kind >= CUPLUG_STEP_LENGTH;
    if (step->kind == CUPLUG_STEP_SCALAR || is_list) found |= 1ull << step->operand;
  }
  return found & may_be_none;
}

int cuplug__check_conditions(cuplug__parser *p) {
  for (int32_t k = 0; k < p->s->n_conditions; k++) {
    cuplug_condition *condition = &p->s->conditions[k];
    for (uint32_t side = 0; side < condition->n_sides; side++) {
      if (cuplug__tie_formula(p, &condition->sides[side].formula)) return CUPLUG_ERROR_VALUE;
      condition->optional |= cuplug__optional_scalars(p->s, &condition->sides[side].formula);
    }
  }
  return CUPLUG_OK;
}
