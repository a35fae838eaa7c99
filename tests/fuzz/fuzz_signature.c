/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a signature, one without brackets, or as terms: they are parsed, or rejected with a
 * reason and a position inside the text. */
#include <runtime/define.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void require(int condition) {
  if (!condition) abort();
}

static void check_formula(const cuplug_signature *s, const cuplug_formula *formula) {
  for (uint32_t k = 0; k < formula->n_steps; k++) {
    const cuplug_step *step = &formula->steps[k];
    require(step->kind >= CUPLUG_STEP_NUMBER && step->kind <= CUPLUG_STEP_ELEMENT);
    if (step->kind == CUPLUG_STEP_ELEMENT)
      require(step->operand >= 0 && step->operand < s->n_parameters - s->n_scalars);
    else if (step->kind == CUPLUG_STEP_SCALAR || step->kind >= CUPLUG_STEP_LENGTH)
      require(step->operand >= 0 && step->operand < s->n_scalars);
  }
}

static void check_parameter(const cuplug_signature *s, const cuplug_parameter *x) {
  require(strlen(x->name) < CUPLUG_MAX_NAME);
  require(x->type_variable >= -1 && x->type_variable < s->n_variables);
  require(x->n_dims >= 0 && x->n_dims <= CUPLUG_MAX_NDIM);
  for (int32_t d = 0; d < x->n_dims; d++) {
    const cuplug_dim *dim = &x->dims[d];
    int is_named = dim->kind == CUPLUG_DIM_NAMED || dim->kind == CUPLUG_DIM_VARIADIC ||
                   dim->kind == CUPLUG_DIM_SLICE;
    require(!is_named || (dim->value >= 0 && dim->value < s->n_dim_names));
    require(dim->value >= 0 && *dim->text);
    if (dim->kind < CUPLUG_DIM_FORMULA) continue;
    check_formula(s, &dim->formula);
    check_formula(s, &dim->end);
  }
  for (int32_t c = 0; c < x->n_choices; c++) require(strlen(x->choices[c]) < strlen(s->text));
}

static void check_parsed(const cuplug_signature *s, const char *text) {
  require(!strcmp(s->text, text) && *s->name);
  require(s->n_parameters <= CUPLUG_MAX_ARGUMENTS && s->n_outputs <= CUPLUG_MAX_ARGUMENTS);
  for (int32_t k = 0; k < s->n_parameters + s->n_outputs; k++)
    check_parameter(s, &s->parameters[k]);
  for (int32_t k = 0; k < s->n_variables; k++) require(s->variables[k].dtypes != 0);
  for (int32_t k = 0; k < s->n_conditions; k++)
    for (uint32_t side = 0; side < s->conditions[k].n_sides; side++)
      check_formula(s, &s->conditions[k].sides[side].formula);
}

static void check_refused(const char *text, int status, uint32_t position,
                          const cuplug_error *error) {
  require(status == CUPLUG_ERROR_VALUE && error->status == status && *error->message);
  require(position <= strlen(text));
}

static void check_terms(const char *text, const char *own) {
  cuplug_signature *scope, *terms;
  cuplug_error error;
  uint32_t position;
  require(!cuplug_parse_signature("f(x: T[n, ...], y: int8[*s], k: int, p: float, a: int[], b: "
                                  "\"a\" | \"b\", z: T[m][]) -> c: T[n] where T: any",
                                  &scope, NULL, &error));
  const int status =
      cuplug_parse_terms(scope, text, "f: arguments", own, &terms, &position, &error);
  if (status) check_refused(text, status, position, &error);
  for (int32_t k = 0; !status && k < terms->n_conditions; k++) {
    const cuplug_condition *term = &terms->conditions[k];
    require(term->n_sides == 1 && *term->text && (own || term->sides->formula.n_steps));
    check_formula(scope, &term->sides->formula);
  }
  cuplug_free_signature(terms);
  cuplug_free_signature(scope);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  cuplug_signature *signature;
  cuplug_error error;
  uint32_t position;
  char *text = malloc(bytes + 1);
  if (!text) return 0;
  memcpy(text, data, bytes);
  text[bytes] = 0;
  int status = cuplug_parse_signature(text, &signature, &position, &error);
  if (!status)
    check_parsed(signature, text);
  else
    check_refused(text, status, position, &error);
  cuplug_free_signature(signature);
  status = cuplug_parse_short(text, &signature, &position, &error);
  if (status) check_refused(text, status, position, &error);
  cuplug_free_signature(signature);
  check_terms(text, "fault call");
  check_terms(text, NULL);
  free(text);
  return 0;
}
