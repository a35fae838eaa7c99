/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core.h"

#include <runtime/define.h>
#include <string.h>

/* The kind of a name in a signature: an integer or a dimension, an array, another parameter. */
enum { NAME_UNKNOWN, NAME_NUMBER, NAME_OTHER };

static int kind_of(const cuplug_signature *s, const char *text, size_t n) {
  const cuplug_parameter *x;
  if (core->find_parameter(s, text, n, 1, &x) >= 0) return NAME_OTHER;
  if (core->find_parameter(s, text, n, 0, &x) >= 0)
    return x->kind == CUPLUG_PARAMETER_CHOICE || (core->scalar_member(s, x) | 1) == 1 ? NAME_NUMBER
                                                                                      : NAME_OTHER;
  return core->find_place(s, text, n) ? NAME_NUMBER : NAME_UNKNOWN;
}

/* Returns whether a word is one of those in a text, which are separated by spaces. */
static int is_among(const char *words, const char *word, size_t n) {
  for (size_t length; *words; words += length + (words[length] == ' ')) {
    length = strcspn(words, " ");
    if (length == n && !strncmp(words, word, n)) return 1;
  }
  return 0;
}

/* A single name that is not an integer is left to the caller, as a term without steps. */
static int settle_name(cuplug__parser *p, cuplug_formula *formula, const char *own) {
  const cuplug_step step = *formula->steps;
  const char *text = p->s->text + step.value;
  const size_t n = (size_t)step.operand;
  const int found = kind_of(p->scope, text, n);
  const int is_own = found == NAME_UNKNOWN && own && is_among(own, text, n);
  if (found != NAME_OTHER && !is_own) return core->tie_formula(p, formula);
  if (own) return formula->n_steps = 0, CUPLUG_OK;
  p->token = text;
  return core->fail(p->error, CUPLUG_ERROR_VALUE, "%s: got %.*s, expected a number", p->what,
                    (int)n, text);
}

static int parse_term(cuplug__parser *p, const char *own) {
  cuplug_condition *term = &p->s->conditions[p->s->n_conditions];
  cuplug_side *side = p->sides++;
  core->skip_space(p);
  const char *begin = p->at;
  *term = (cuplug_condition){.sides = side, .n_sides = 1, .at = (uint32_t)(begin - p->s->text)};
  p->token = NULL;
  p->wanted = "a name or a number";
  if (core->parse_formula(p, &side->formula)) return CUPLUG_ERROR_VALUE;
  const cuplug_step *first = side->formula.steps;
  const int is_name = side->formula.n_steps == 1 && first->kind == CUPLUG_STEP_SCALAR;
  const char *end = p->at;
  if (is_name) { /* without brackets around it */
    begin = p->s->text + first->value;
    p->at = begin + first->operand;
  }
  term->text = core->keep_text(p, begin);
  p->at = end;
  p->s->n_conditions++;
  return is_name ? settle_name(p, &side->formula, own) : core->tie_formula(p, &side->formula);
}

static int parse_all(cuplug__parser *p, const char *own) {
  core->skip_space(p);
  while (*p->at) {
    if (parse_term(p, own)) return CUPLUG_ERROR_VALUE;
    core->skip_space(p);
    if (*p->at && core->expect(p, ",", "','")) return CUPLUG_ERROR_VALUE;
    core->skip_space(p);
  }
  return CUPLUG_OK;
}

int cuplug_parse_terms(const cuplug_signature *scope, const char *text, const char *what,
                       const char *own, cuplug_signature **terms, uint32_t *position,
                       cuplug_error *error) {
  cuplug__parser p;
  cuplug__clear(error);
  *terms = NULL;
  *position = 0;
  int status = core->parser_start(&p, text, what, error);
  if (status) return status;
  p.scope = scope;
  status = parse_all(&p, own);
  if (status) {
    *position = (uint32_t)(p.token - p.s->text);
    cuplug_core->free_signature(p.s);
  } else {
    *terms = p.s;
  }
  return status;
}
