/* SPDX-License-Identifier: Apache-2.0 */
/* The parser of signatures: recursive descent, one function for each rule of the grammar.
 *
 *   signature  = name "(" [parameter {"," parameter}] ")" ["->" outputs] ["where" clauses]
 *   parameter  = {word} name ":" type ["=" default]
 *   type       = dtype "[" dims "]" ["[]" | "[each]"] | dtype | ("int" | "float") "[]" | "str"
 *              | "dtype" | string {"|" string} | handle
 *   handle     = "handle" "[" name "]"
 *   outputs    = output | "(" output {"," output} ")" | [name ":"] handle
 *   output     = {word} [name ":"] dtype "[" dims "]" ["like" name] ["=" "None"]
 *   dims       = [dim {"," dim}]
 *   dim        = "..." | "?" | "*" name ["[" [formula] ":" [formula] "]"] | formula
 *   clauses    = clause {"," clause}
 *   clause     = name ":" dtype {"|" dtype} | condition | guarantee
 *   default    = number | string | dtype | "True" | "False" | "None"
 *
 * formula.h has the grammar of formulas, conditions.h of conditions and guarantees, parser.h of
 * words.
 */
#include "base/describe.h"
#include "base/dtype.h"
#include "base/status.h"
#include "signature/conditions.h"
#include "signature/formula.h"
#include "signature/parser.h"
#include "signature/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef cuplug__parser parser;

static const char *const a_dimension = "a dimension (a size, a name, *name, ... or ?)";

static int fail(parser *p, const char *at, const char *wanted) {
  return cuplug__parse_fail(p, at, wanted);
}

/* The number of a type variable, or of a plain dtype; added if it is new. */
static int type_variable(parser *p, const char *name, int32_t *number) {
  cuplug_signature *s = p->s;
  const uint64_t bits = cuplug__dtype_bits(name);
  if (bits & (bits - 1)) return fail(p, p->token, "a dtype or a type variable");
  const char *own_name = bits ? "" : name;
  for (int32_t k = 0; k < s->n_variables; k++) {
    *number = k;
    if (!strcmp(s->variables[k].name, own_name) && (!bits || s->variables[k].dtypes == bits))
      return CUPLUG_OK;
  }
  if (s->n_variables == CUPLUG_MAX_ARGUMENTS)
    return fail(p, p->token, "at most 64 dtypes and type variables");
  *number = s->n_variables++;
  s->variables[*number].name = own_name;
  s->variables[*number].dtypes = bits;
  return CUPLUG_OK;
}

/* "a:b]" of *s[a:b]. */
static int parse_slice(parser *p, cuplug_dim *dim) {
  static const char *const an_end = "':' or ']'";
  dim->kind = CUPLUG_DIM_SLICE;
  dim->formula.steps = dim->end.steps = p->steps;
  if (!cuplug__take(p, ":")) {
    if (cuplug__parse_formula(p, &dim->formula) || cuplug__expect(p, ":", an_end))
      return CUPLUG_ERROR_VALUE;
  }
  if (cuplug__take(p, "]")) return CUPLUG_OK;
  return cuplug__parse_formula(p, &dim->end) ? CUPLUG_ERROR_VALUE : cuplug__expect(p, "]", an_end);
}

static int parse_group(parser *p, cuplug_dim *dim) {
  const char *name, *at = p->at;
  dim->kind = CUPLUG_DIM_VARIADIC;
  if (cuplug__parse_name(p, &name, a_dimension)) return CUPLUG_ERROR_VALUE;
  dim->value = cuplug__dim_number(p->s, name);
  if (dim->value < 0) return fail(p, at, "at most 64 dimension names");
  return cuplug__take(p, "[") ? parse_slice(p, dim) : CUPLUG_OK;
}

static int parse_dim(parser *p, cuplug_dim *dim) {
  cuplug__skip_space(p);
  if (cuplug__take(p, "...")) {
    dim->kind = CUPLUG_DIM_LOOP;
  } else if (cuplug__take(p, "?")) {
    dim->kind = CUPLUG_DIM_UNKNOWN;
  } else if (cuplug__take(p, "*")) {
    return parse_group(p, dim);
  } else {
    dim->kind = CUPLUG_DIM_FORMULA;
    p->wanted = a_dimension;
    return cuplug__parse_formula(p, &dim->formula);
  }
  return CUPLUG_OK;
}

/* Dimensions after "[", up to and with "]". */
static int parse_dims(parser *p, cuplug_parameter *x) {
  x->dims = p->dims;
  if (cuplug__take(p, "]")) return CUPLUG_OK;
  do {
    cuplug__skip_space(p);
    const char *begin = p->at;
    if (x->n_dims == CUPLUG_MAX_NDIM) return fail(p, p->at, "at most 64 dimensions");
    cuplug_dim *dim = p->dims++;
    dim->at = (uint32_t)(begin - p->s->text);
    x->n_dims++;
    if (parse_dim(p, dim)) return CUPLUG_ERROR_VALUE;
    dim->text = cuplug__keep_text(p, begin);
  } while (cuplug__take(p, ","));
  return cuplug__expect(p, "]", "',' or ']'");
}

static int parse_choices(parser *p, cuplug_parameter *x) {
  x->kind = CUPLUG_PARAMETER_CHOICE;
  x->choices = p->choices;
  do {
    if (!cuplug__at_string(p)) return fail(p, p->at, "a quoted string");
    if (cuplug__parse_string(p, p->choices++)) return CUPLUG_ERROR_VALUE;
    x->n_choices++;
  } while (cuplug__take(p, "|"));
  return CUPLUG_OK;
}

/* For "int", "float" and "complex", which are scalars and, except the last, lists with "[]". */
static int parse_python_type(parser *p, cuplug_parameter *x, const char *dtype) {
  x->kind = CUPLUG_PARAMETER_SCALAR;
  if (cuplug__take(p, "[")) {
    x->kind = CUPLUG_PARAMETER_LIST;
    if (!strcmp(dtype, "complex128")) return fail(p, p->token, "a list of int or float");
    if (cuplug__expect(p, "]", "']' (lists have no dimensions)")) return CUPLUG_ERROR_VALUE;
  }
  return type_variable(p, dtype, &x->type_variable);
}

/* "[tag]" of handle[tag]. */
static int parse_tag(parser *p, cuplug_parameter *x) {
  x->kind = CUPLUG_PARAMETER_HANDLE;
  if (cuplug__expect(p, "[", "'[' and a tag (handle[plan])") ||
      cuplug__parse_name(p, &x->tag, "a tag (handle[plan])"))
    return CUPLUG_ERROR_VALUE;
  return cuplug__expect(p, "]", "']' (a handle has one tag)");
}

/* The place of the type's name, which begins at `token`. */
static void mark_type(const parser *p, cuplug_parameter *x, const char *name) {
  x->type_at = (uint32_t)(p->token - p->s->text);
  x->type_end = x->type_at + (uint32_t)strlen(name);
}

/* "to: dtype" is a type variable of its name, which the call sets. */
static int parse_dtype(parser *p, cuplug_parameter *x) {
  x->kind = CUPLUG_PARAMETER_DTYPE;
  if (cuplug__dtype_bits(x->name))
    return fail(p, p->parameter_at[p->s->n_parameters], "a name that is not a dtype");
  return type_variable(p, x->name, &x->type_variable);
}

static int parse_type(parser *p, cuplug_parameter *x) {
  static const char *const python_names[][2] = {
      {"int", "int64"}, {"float", "float64"}, {"complex", "complex128"}};
  const char *name;
  if (cuplug__at_string(p)) return parse_choices(p, x);
  p->token = p->at;
  if (cuplug__parse_name(p, &name, "a type")) return CUPLUG_ERROR_VALUE;
  mark_type(p, x, name);
  if (!strcmp(name, "str")) {
    x->kind = CUPLUG_PARAMETER_STRING;
    return CUPLUG_OK;
  }
  cuplug__skip_space(p);
  if (!strcmp(name, "dtype") && *p->at != '[') return parse_dtype(p, x);
  if (!strcmp(name, "handle")) return p->s->n_handles++, parse_tag(p, x);
  for (int k = 0; k < 3; k++)
    if (!strcmp(name, python_names[k][0])) return parse_python_type(p, x, python_names[k][1]);
  if (type_variable(p, name, &x->type_variable)) return CUPLUG_ERROR_VALUE;
  x->kind = CUPLUG_PARAMETER_SCALAR;
  if (!cuplug__take(p, "[")) return CUPLUG_OK;
  x->kind = CUPLUG_PARAMETER_ARRAY;
  if (parse_dims(p, x))
    return strcmp(name, "list") ? CUPLUG_ERROR_VALUE
                                : fail(p, p->s->text + x->type_at, "a dtype" CUPLUG__LISTS);
  if (!cuplug__take(p, "[")) return CUPLUG_OK;
  x->kind = CUPLUG_PARAMETER_ARRAYS;
  x->is_each = cuplug__take_word(p, "each");
  return cuplug__expect(p, "]", "']' (a list of arrays is T[n][] or T[n][each])");
}

/* The next parameter or output, or NULL if there are too many. */
static cuplug_parameter *new_parameter(parser *p, int n) {
  cuplug__skip_space(p);
  if (n == CUPLUG_MAX_ARGUMENTS) {
    fail(p, p->at, "at most 64 parameters and 64 outputs");
    return NULL;
  }
  int k = p->s->n_parameters + p->s->n_outputs;
  p->parameter_at[k] = p->at;
  p->s->parameters[k].name = "";
  p->s->parameters[k].type_variable = -1;
  return &p->s->parameters[k];
}

static int parse_parameter(parser *p) {
  cuplug_parameter *x = new_parameter(p, p->s->n_parameters);
  if (!x) return CUPLUG_ERROR_VALUE;
  if (cuplug__parse_words(p, CUPLUG_WORD_INOUT | CUPLUG_WORD_HOST, &x->words))
    return CUPLUG_ERROR_VALUE;
  const int inout = x->words & CUPLUG_WORD_INOUT ? 1 : 0;
  if (cuplug__parse_name(p, &x->name, "a parameter's name")) return CUPLUG_ERROR_VALUE;
  if (cuplug__expect(p, ":", "':' and a type")) return CUPLUG_ERROR_VALUE;
  if (parse_type(p, x)) return CUPLUG_ERROR_VALUE;
  const int is_list = x->kind == CUPLUG_PARAMETER_ARRAYS;
  const int is_array = is_list || x->kind == CUPLUG_PARAMETER_ARRAY;
  if (inout && !is_array && !(p->is_short && x->kind == CUPLUG_PARAMETER_SCALAR))
    return fail(p, p->parameter_at[p->s->n_parameters], "inout only for arrays and lists of them");
  if (x->words & CUPLUG_WORD_HOST && x->kind != CUPLUG_PARAMETER_ARRAY)
    return fail(p, p->parameter_at[p->s->n_parameters], "host only for single arrays");
  if (inout && !is_list) x->kind = CUPLUG_PARAMETER_INOUT;
  x->is_inout = inout;
  p->s->n_parameters++;
  return cuplug__take(p, "=") ? cuplug__parse_default(p, x) : CUPLUG_OK;
}

static const char *const only_output = "a handle as the only output";

static int parse_output(parser *p) {
  cuplug_parameter *x = new_parameter(p, p->s->n_outputs);
  const char *name;
  if (!x) return CUPLUG_ERROR_VALUE;
  if (p->s->made) return fail(p, p->at, only_output);
  if (cuplug__parse_words(p, CUPLUG_WORD_ZERO | CUPLUG_WORD_DETACHED, &x->words))
    return CUPLUG_ERROR_VALUE;
  p->token = p->at;
  if (cuplug__parse_name(p, &name, "an output's dtype")) return CUPLUG_ERROR_VALUE;
  if (cuplug__take(p, ":")) {
    x->name = name;
    cuplug__skip_space(p);
    p->token = p->at;
    if (cuplug__parse_name(p, &name, "an output's dtype")) return CUPLUG_ERROR_VALUE;
  }
  if (!strcmp(name, "handle")) {
    if (p->s->n_outputs) return fail(p, p->token, only_output);
    p->s->made = x;
    return parse_tag(p, x);
  }
  x->kind = CUPLUG_PARAMETER_OUTPUT;
  mark_type(p, x, name);
  if (x->words & CUPLUG_WORD_ZERO) p->s->zero_outputs |= 1ull << p->s->n_outputs;
  p->s->n_outputs++;
  if (type_variable(p, name, &x->type_variable)) return CUPLUG_ERROR_VALUE;
  if (p->is_short && *p->at != '[') return cuplug__parse_like(p, x);
  if (cuplug__expect(p, "[", "'[' (outputs are arrays)") || parse_dims(p, x) ||
      cuplug__parse_like(p, x))
    return CUPLUG_ERROR_VALUE;
  if (!cuplug__take(p, "=")) return CUPLUG_OK;
  if (!cuplug__take_word(p, "None"))
    return fail(p, p->at, "None (an optional output has no other default)");
  x->has_default = 1;
  x->default_kind = CUPLUG_ARGUMENT_NONE;
  x->default_text = "None";
  p->s->optional_outputs |= 1ull << (p->s->n_outputs - 1);
  return CUPLUG_OK;
}

static int parse_outputs(parser *p) {
  if (!cuplug__take(p, "(")) return parse_output(p);
  do {
    if (parse_output(p)) return CUPLUG_ERROR_VALUE;
  } while (cuplug__take(p, ","));
  return cuplug__expect(p, ")", "',' or ')'");
}

/* The dtypes of one bound, "T: float32 | float64", after the colon. */
static int parse_bound(parser *p, const char *name, const char *at) {
  const int32_t k = cuplug__variable_of(p->s, name);
  if (k < 0) return fail(p, at, "a type variable used above");
  if (p->s->variables[k].dtypes) return fail(p, at, "dtypes only once for each type variable");
  do {
    cuplug__skip_space(p);
    at = p->at;
    if (cuplug__parse_name(p, &name, "a dtype")) return CUPLUG_ERROR_VALUE;
    const uint64_t bits = cuplug__dtype_bits(name), is_group = bits & (bits - 1);
    if (!bits) {
      char wanted[sizeof(cuplug__text) + 20];
      snprintf(wanted, sizeof wanted, "a dtype%s", cuplug__meant_dtype(name).s);
      return fail(p, at, wanted);
    }
    p->s->variables[k].dtypes |= is_group ? bits & p->known : bits;
    p->s->variables[k].later |= is_group ? bits & ~p->known : 0;
  } while (cuplug__take(p, "|"));
  return CUPLUG_OK;
}

static int parse_clause(parser *p) {
  cuplug__skip_space(p);
  const char *name, *begin = p->at;
  if (!*begin || !strchr("0123456789-(.", *begin)) {
    if (cuplug__parse_name(p, &name, "a type variable or a range")) return CUPLUG_ERROR_VALUE;
    if (cuplug__take(p, ":")) return parse_bound(p, name, begin);
    if (*p->at == '(') return cuplug__parse_guarantee(p, name, begin);
    p->at = begin;
  }
  return cuplug__parse_condition(p);
}

static int parse_all(parser *p) {
  if (cuplug__parse_name(p, &p->s->name, "the operator's name")) return CUPLUG_ERROR_VALUE;
  if (cuplug__expect(p, "(", "'('")) return CUPLUG_ERROR_VALUE;
  if (!cuplug__take(p, ")")) {
    do {
      if (parse_parameter(p)) return CUPLUG_ERROR_VALUE;
    } while (cuplug__take(p, ","));
    p->s->parameters_end = (uint32_t)(p->at - p->s->text);
    if (cuplug__expect(p, ")", "',' or ')'")) return CUPLUG_ERROR_VALUE;
  }
  if (cuplug__take(p, "->") && parse_outputs(p)) return CUPLUG_ERROR_VALUE;
  if (cuplug__take_word(p, "where")) {
    do {
      if (parse_clause(p)) return CUPLUG_ERROR_VALUE;
    } while (cuplug__take(p, ","));
  }
  cuplug__skip_space(p);
  return *p->at ? fail(p, p->at, "the signature's end") : CUPLUG_OK;
}

static int parse_text(const char *text, uint64_t known, int is_short, cuplug_signature **signature,
                      uint32_t *position, cuplug_error *error) {
  parser p;
  cuplug__clear(error);
  *signature = NULL;
  if (position) *position = 0;
  int status = cuplug__parser_start(&p, text, "signature", error);
  if (status) return status;
  p.known = known;
  p.is_short = is_short;
  status = parse_all(&p);
  if (!status && !is_short) status = cuplug__check_signature(&p);
  if (!status) return *signature = p.s, CUPLUG_OK;
  if (position) *position = (uint32_t)(p.token - p.s->text);
  cuplug_free_signature(p.s);
  return status;
}

int cuplug__parse_of_abi(const char *text, uint32_t abi_version, cuplug_signature **signature,
                         uint32_t *position, cuplug_error *error) {
  return parse_text(text, cuplug__dtypes_of_abi(abi_version), 0, signature, position, error);
}

int cuplug_parse_signature(const char *text, cuplug_signature **signature, uint32_t *position,
                           cuplug_error *error) {
  return cuplug__parse_of_abi(text, CUPLUG_ABI_VERSION, signature, position, error);
}

int cuplug_parse_short(const char *text, cuplug_signature **signature, uint32_t *position,
                       cuplug_error *error) {
  return parse_text(text, cuplug__dtypes_of_abi(CUPLUG_ABI_VERSION), 1, signature, position, error);
}

void cuplug_free_signature(cuplug_signature *signature) { free(signature); }
