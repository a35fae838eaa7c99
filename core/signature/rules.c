/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of a signature that its grammar cannot say. */
#include "signature/rules.h"

#include "base/dtype.h"
#include "base/status.h"

#include <string.h>

static int is_array(const cuplug_parameter *x) {
  return x->kind == CUPLUG_PARAMETER_ARRAY || x->kind == CUPLUG_PARAMETER_INOUT;
}

static int is_identifier_reserved(const char *name) {
  return !strcmp(name, "out") || !strcmp(name, "device") || !strcmp(name, "stream") ||
         !strcmp(name, "inout");
}

/* Does an input array that cannot be left out have such a dimension? */
static int input_binds_dim(const cuplug_signature *s, int32_t kind, int64_t value) {
  for (int32_t i = 0; i < s->n_parameters; i++) {
    const cuplug_parameter *x = &s->parameters[i];
    if (!is_array(x) || x->has_default) continue;
    for (int32_t k = 0; k < x->n_dims; k++)
      if (x->dims[k].kind == kind && x->dims[k].value == value) return 1;
  }
  return 0;
}

static int input_binds_variable(const cuplug_signature *s, int32_t variable) {
  uint32_t bits = s->variables[variable].dtypes;
  if (!(bits & (bits - 1))) return 1;
  for (int32_t i = 0; i < s->n_parameters; i++) {
    const cuplug_parameter *x = &s->parameters[i];
    if (is_array(x) && !x->has_default && x->type_variable == variable) return 1;
  }
  return 0;
}

static int check_dims(const cuplug_signature *s, const cuplug_parameter *x, cuplug_error *error) {
  int is_output = x->kind == CUPLUG_PARAMETER_OUTPUT, n_groups = 0;
  const char *name = *x->name ? x->name : "output";
  for (int32_t k = 0; k < x->n_dims; k++) {
    const cuplug_dim *d = &x->dims[k];
    int is_group = d->kind == CUPLUG_DIM_VARIADIC || d->kind == CUPLUG_DIM_LOOP;
    n_groups += is_group;
    if (!is_output && d->kind == CUPLUG_DIM_UNKNOWN)
      return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                          "signature: %s: '?' is for outputs, whose size the run finds", name);
    if (!is_output && n_groups > 1)
      return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                          "signature: %s: at most one of '...' and '*name' can be told apart in an "
                          "input",
                          name);
    if (!is_output || d->kind == CUPLUG_DIM_FIXED || d->kind == CUPLUG_DIM_UNKNOWN) continue;
    if (!input_binds_dim(s, d->kind, d->value))
      return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                          "signature: %s: dimension '%s' stands in no input that is always given",
                          name, d->kind == CUPLUG_DIM_LOOP ? "..." : s->dim_names[d->value]);
  }
  return CUPLUG_OK;
}

/* One name is a single dimension or a group of them, not now the one, now the other. */
static int check_dim_names(const cuplug_signature *s, cuplug_error *error) {
  int32_t kinds[sizeof(s->dim_names) / sizeof(s->dim_names[0])];
  for (int32_t k = 0; k < s->n_dim_names; k++) kinds[k] = -1;
  for (int32_t i = 0; i < s->n_parameters + s->n_outputs; i++)
    for (int32_t k = 0; k < s->parameters[i].n_dims; k++) {
      const cuplug_dim *d = &s->parameters[i].dims[k];
      if (d->kind != CUPLUG_DIM_NAMED && d->kind != CUPLUG_DIM_VARIADIC) continue;
      if (kinds[d->value] >= 0 && kinds[d->value] != d->kind)
        return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                            "signature: '%s' is used both as one dimension and as '*%s'",
                            s->dim_names[d->value], s->dim_names[d->value]);
      kinds[d->value] = d->kind;
    }
  return CUPLUG_OK;
}

/* The kinds of default that a scalar of all these dtypes takes. */
static int scalar_takes(uint32_t dtypes, int32_t kind) {
  uint32_t integers = cuplug__dtype_bits("integer"), booleans = cuplug__dtype_bits("bool");
  if (kind == CUPLUG_ARGUMENT_BOOL) return 1;
  if (kind == CUPLUG_ARGUMENT_INT || kind == CUPLUG_ARGUMENT_UINT) return !(dtypes & booleans);
  return kind == CUPLUG_ARGUMENT_FLOAT && !(dtypes & (integers | booleans));
}

static int check_default(const cuplug_signature *s, const cuplug_parameter *x) {
  switch (x->kind) {
  case CUPLUG_PARAMETER_ARRAY:
    return x->default_kind == CUPLUG_ARGUMENT_NONE;
  case CUPLUG_PARAMETER_STRING:
    return x->default_kind == CUPLUG_ARGUMENT_STRING;
  case CUPLUG_PARAMETER_CHOICE:
    return x->default_kind == CUPLUG_ARGUMENT_INT;
  case CUPLUG_PARAMETER_SCALAR:
    return scalar_takes(s->variables[x->type_variable].dtypes, x->default_kind);
  default:
    return 0;
  }
}

static int check_parameter(const cuplug_signature *s, int i, cuplug_error *error) {
  const cuplug_parameter *x = &s->parameters[i];
  if (is_identifier_reserved(x->name))
    return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                        "signature: '%s' cannot be a parameter's name: calls use it", x->name);
  for (int k = 0; k < i; k++)
    if (*x->name && !strcmp(s->parameters[k].name, x->name))
      return cuplug__fail(error, CUPLUG_ERROR_VALUE, "signature: two parameters are called '%s'",
                          x->name);
  if (x->type_variable >= 0) {
    const cuplug_type_variable *t = &s->variables[x->type_variable];
    if (!t->dtypes)
      return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                          "signature: '%s' is neither a dtype nor bound by 'where %s: ...'",
                          t->name, t->name);
    if (!input_binds_variable(s, x->type_variable))
      return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                          "signature: no input array that is always given has the dtype %s",
                          t->name);
  }
  if (x->has_default && !check_default(s, x))
    return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                        "signature: %s: this default does not fit its type", x->name);
  if (i > 0 && i < s->n_parameters && !x->has_default && x[-1].has_default)
    return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                        "signature: %s needs a default too, since the parameter before it has one",
                        x->name);
  return check_dims(s, x, error);
}

int cuplug__check_signature(const cuplug_signature *s, int *parameter, cuplug_error *error) {
  int n_tensors = s->n_outputs;
  for (int i = 0; i < s->n_parameters + s->n_outputs; i++) {
    n_tensors += is_array(&s->parameters[i]);
    *parameter = i;
    if (check_parameter(s, i, error)) return CUPLUG_ERROR_VALUE;
  }
  *parameter = -1;
  if (n_tensors > CUPLUG_MAX_TENSORS)
    return cuplug__fail(error, CUPLUG_ERROR_VALUE, "signature: at most %d arrays, outputs included",
                        CUPLUG_MAX_TENSORS);
  return check_dim_names(s, error);
}
