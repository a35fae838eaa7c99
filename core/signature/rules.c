/* SPDX-License-Identifier: Apache-2.0 */
#include "signature/rules.h"

#include "base/describe.h"
#include "base/dtype.h"
#include "base/status.h"
#include "signature/conditions.h"
#include "signature/formula.h"
#include "signature/value.h"

#include <string.h>

/* "signature: problem". */
#define refuse(p, ...) cuplug__fail((p)->error, CUPLUG_ERROR_VALUE, "signature: " __VA_ARGS__)

static int is_array(const cuplug_parameter *x) { return x->kind <= CUPLUG_PARAMETER_INOUT; }
/* It is present in each call, so it defines a name. (An empty list is rejected then.) */
static int binds(const cuplug_parameter *x) {
  return (is_array(x) || x->kind == CUPLUG_PARAMETER_ARRAYS) && !x->has_default;
}

static int is_group(const cuplug_dim *d) {
  return d->kind == CUPLUG_DIM_VARIADIC || d->kind == CUPLUG_DIM_LOOP;
}

static int is_identifier_reserved(const char *name) {
  return !strcmp(name, "out") || !strcmp(name, "device") || !strcmp(name, "stream") ||
         !strcmp(name, "inout");
}

/* ---- Dimensions ------------------------------------------------------------------------------ */

/* The number among the scalars of the list of integers of this name; -1 if it is not found. */
static int32_t find_list(const cuplug_signature *s, const char *name) {
  const cuplug_parameter *x;
  const int32_t number = cuplug__find_parameter(s, name, strlen(name), 0, &x);
  return number >= 0 && cuplug__is_integer_list(s, x) ? number : -1;
}

/* 1 if a formula is one name that is not a scalar parameter: the name of a dimension. */
static int is_dimension(const cuplug_signature *s, const cuplug_formula *formula) {
  const cuplug_step *step = formula->steps;
  const cuplug_parameter *x;
  return formula->n_steps == 1 && step->kind == CUPLUG_STEP_SCALAR &&
         cuplug__find_parameter(s, s->text + step->value, (size_t)step->operand, 0, &x) < 0;
}

/* The kind of a dimension when all parameters are known: a name, a size, or for *shape a list. */
static int settle_dim(cuplug__parser *p, cuplug_dim *d) {
  cuplug_signature *s = p->s;
  int64_t list;
  if (d->kind == CUPLUG_DIM_FORMULA && is_dimension(s, &d->formula)) {
    d->kind = CUPLUG_DIM_NAMED;
    d->value = cuplug__dim_number(s, d->text);
    return d->value >= 0 ? CUPLUG_OK
                         : refuse(p, "got more than 64 dimension names, expected at most 64");
  }
  if (d->kind == CUPLUG_DIM_FORMULA && d->formula.n_steps == 1 &&
      d->formula.steps->kind == CUPLUG_STEP_NUMBER) {
    d->kind = CUPLUG_DIM_FIXED;
    d->value = d->formula.steps->value;
  }
  if (d->kind == CUPLUG_DIM_VARIADIC && (list = find_list(s, s->dim_names[d->value])) >= 0) {
    d->kind = CUPLUG_DIM_LISTED;
    d->value = list;
  }
  if (d->kind >= CUPLUG_DIM_FORMULA) s->has_formulas = 1;
  return CUPLUG_OK;
}

static int settle_dims(cuplug__parser *p) {
  cuplug_signature *s = p->s;
  for (int i = 0; i < s->n_parameters + s->n_outputs; i++) {
    cuplug_dim *dims = (cuplug_dim *)s->parameters[i].dims; /* of the signature under way */
    p->token = p->parameter_at[i];
    for (int32_t k = 0; k < s->parameters[i].n_dims; k++)
      if (settle_dim(p, &dims[k])) return CUPLUG_ERROR_VALUE;
  }
  return CUPLUG_OK;
}

/* Takes parameter x, tensor or list `array`, as the place of its names that have none yet. */
static void take_places(cuplug_signature *s, const cuplug_parameter *x, int32_t array) {
  int32_t group = x->n_dims;
  while (group-- > 0 && !is_group(&x->dims[group])) continue;
  for (int32_t k = 0; k < x->n_dims; k++) {
    const cuplug_dim *d = &x->dims[k];
    if (d->kind != CUPLUG_DIM_NAMED && d->kind != CUPLUG_DIM_VARIADIC) continue;
    cuplug_dim_source *place = &s->places[d->value];
    if (place->n_before >= 0 || place->n_after >= 0) continue;
    *place = (cuplug_dim_source){array, k, x->n_dims - 1 - k, d->kind == CUPLUG_DIM_VARIADIC};
    if (place->is_group) continue;
    *(group < 0 || k < group ? &place->n_after : &place->n_before) = -1;
  }
}

static void find_places(cuplug_signature *s) {
  for (int32_t k = 0; k < s->n_dim_names; k++) s->places[k] = (cuplug_dim_source){0, -1, -1, 0};
  for (int is_list = 0; is_list < 2; is_list++) { /* arrays first: a list may be empty */
    int32_t n_arrays = 0, n_scalars = 0;
    for (int32_t i = 0; i < s->n_parameters; i++) {
      const cuplug_parameter *x = &s->parameters[i];
      const int32_t array = is_array(x) ? n_arrays++ : ~n_scalars++;
      if (binds(x) && is_array(x) != is_list && !x->is_each) take_places(s, x, array);
    }
  }
}

/* The names in one parameter. */
static uint64_t names_in(const cuplug_parameter *x) {
  uint64_t names = 0;
  for (int32_t k = 0; k < x->n_dims; k++)
    if (x->dims[k].kind == CUPLUG_DIM_NAMED || x->dims[k].kind == CUPLUG_DIM_VARIADIC)
      names |= 1ull << x->dims[k].value;
  return names;
}

/* Names that occur only in lists T[n][each] have a value for each item. */
static void find_each_names(cuplug_signature *s) {
  uint64_t in_lists = 0, elsewhere = 0;
  for (int32_t i = 0; i < s->n_parameters; i++)
    *(s->parameters[i].is_each ? &in_lists : &elsewhere) |= names_in(&s->parameters[i]);
  s->each_names = in_lists & ~elsewhere;
}

static int input_has_loop(const cuplug_signature *s) {
  for (int32_t i = 0; i < s->n_parameters; i++)
    for (int32_t k = 0; binds(&s->parameters[i]) && k < s->parameters[i].n_dims; k++)
      if (s->parameters[i].dims[k].kind == CUPLUG_DIM_LOOP) return 1;
  return 0;
}

static int is_bound(const cuplug_signature *s, const cuplug_dim *d) {
  if (d->kind == CUPLUG_DIM_LOOP) return input_has_loop(s);
  const cuplug_dim_source *place = &s->places[d->value];
  if (place->n_before < 0 && place->n_after < 0) return 0;
  return d->kind != CUPLUG_DIM_SLICE || place->is_group;
}

/* A size is an integer, computed from values that are never None. */
static int check_size(cuplug__parser *p, const char *name, const cuplug_dim *d) {
  if (cuplug__tie_formula(p, &d->formula) || cuplug__tie_formula(p, &d->end))
    return CUPLUG_ERROR_VALUE;
  if (cuplug__optional_scalars(p->s, &d->formula) || cuplug__optional_scalars(p->s, &d->end))
    return refuse(p, "%s: size '%s' would be unknown if its parameter is None", name, d->text);
  for (uint32_t k = 0; k < d->formula.n_steps + d->end.n_steps; k++) {
    const cuplug_step *step = &d->formula.steps[k]; /* `end` follows it */
    if (step->kind == CUPLUG_STEP_REAL || (step->kind == CUPLUG_STEP_SCALAR && step->value == 2))
      return refuse(p, "%s: size '%s' is not an integer", name, d->text);
  }
  return CUPLUG_OK;
}

static int check_dim(cuplug__parser *p, const cuplug_parameter *x, const cuplug_dim *d) {
  const cuplug_signature *s = p->s;
  const int is_output = x->kind == CUPLUG_PARAMETER_OUTPUT;
  const char *name = *x->name ? x->name : "output";
  if (d->kind >= CUPLUG_DIM_FORMULA && check_size(p, name, d)) return CUPLUG_ERROR_VALUE;
  if (!is_output && d->kind == CUPLUG_DIM_UNKNOWN)
    return refuse(
        p,
        "%s: got '?', expected a known size (only sizes of outputs can be unknown before the run)",
        name);
  if (!is_output && (d->kind == CUPLUG_DIM_SLICE || d->kind == CUPLUG_DIM_LISTED))
    return refuse(p, "%s: '%s' is only for outputs, as it binds no dimensions", name, d->text);
  if (x->words & CUPLUG_WORD_HOST && d->kind == CUPLUG_DIM_LOOP)
    return refuse(p,
                  "%s: got '...' in an array of the host, expected sizes or '*name' (calls are "
                  "split along '...')",
                  name);
  if (!is_output && d->kind == CUPLUG_DIM_LOOP && x->kind == CUPLUG_PARAMETER_ARRAYS)
    return refuse(p, "%s: got '...' in a list, expected '*name' ('...' is for single arrays)",
                  name);
  if (!is_output || d->kind == CUPLUG_DIM_FIXED || d->kind == CUPLUG_DIM_UNKNOWN ||
      d->kind == CUPLUG_DIM_FORMULA || d->kind == CUPLUG_DIM_LISTED || is_bound(s, d))
    return CUPLUG_OK;
  if (d->kind != CUPLUG_DIM_LOOP && s->each_names >> d->value & 1)
    return refuse(p, "%s: dimension '%s' has a value for each item of a list", name,
                  s->dim_names[d->value]);
  return refuse(p, "%s: dimension '%s' is in no input that is always given", name,
                d->kind == CUPLUG_DIM_LOOP ? "..." : s->dim_names[d->value]);
}

static int check_dims(cuplug__parser *p, const cuplug_parameter *x) {
  int n_groups = 0;
  for (int32_t k = 0; k < x->n_dims; k++) {
    n_groups += is_group(&x->dims[k]);
    if (x->kind != CUPLUG_PARAMETER_OUTPUT && n_groups > 1)
      return refuse(p,
                    "%s: got several groups of dimensions, expected at most one of '...' and "
                    "'*name' in an input",
                    x->name);
    if (check_dim(p, x, &x->dims[k])) return CUPLUG_ERROR_VALUE;
  }
  return CUPLUG_OK;
}

/* One name is a single dimension, a group of them or a parameter: one of these. (A size `k` of an
 * integer parameter is a formula by now.) */
static int check_dim_names(cuplug__parser *p) {
  const cuplug_signature *s = p->s;
  int32_t kinds[CUPLUG_MAX_ARGUMENTS];
  for (int32_t k = 0; k < s->n_dim_names; k++) kinds[k] = -1;
  for (int32_t i = 0; i < s->n_parameters + s->n_outputs; i++)
    for (int32_t k = 0; k < s->parameters[i].n_dims; k++) {
      const cuplug_dim *d = &s->parameters[i].dims[k];
      p->token = p->parameter_at[i];
      const int is_slice = d->kind == CUPLUG_DIM_SLICE;
      if (d->kind != CUPLUG_DIM_NAMED && d->kind != CUPLUG_DIM_VARIADIC && !is_slice) continue;
      const int32_t kind = is_slice ? CUPLUG_DIM_VARIADIC : d->kind;
      if (kinds[d->value] >= 0 && kinds[d->value] != kind)
        return refuse(p, "'%s' is used both as one dimension and as '*%s'", s->dim_names[d->value],
                      s->dim_names[d->value]);
      kinds[d->value] = kind;
    }
  for (int32_t i = 0; i < s->n_parameters; i++) {
    p->token = p->parameter_at[i];
    for (int32_t k = 0; k < s->n_dim_names && !is_array(&s->parameters[i]); k++)
      if (kinds[k] >= 0 && !strcmp(s->dim_names[k], s->parameters[i].name))
        return refuse(p, "'%s' is used both as a parameter and as dimensions", s->dim_names[k]);
  }
  return CUPLUG_OK;
}

/* ---- Parameters ------------------------------------------------------------------------------ */

/* An array that is always given determines the dtype of x, or a dtype before it. */
static int has_known_dtype(const cuplug_signature *s, const cuplug_parameter *x) {
  const uint64_t bits = s->variables[x->type_variable].dtypes;
  if (!(bits & (bits - 1))) return 1;
  for (int32_t i = 0; i < s->n_parameters; i++) {
    const cuplug_parameter *y = &s->parameters[i];
    const int is_before = y->kind == CUPLUG_PARAMETER_DTYPE && y <= x;
    if ((binds(y) || is_before) && y->type_variable == x->type_variable) return 1;
  }
  return 0;
}

static int check_type(cuplug__parser *p, const cuplug_parameter *x) {
  if (x->type_variable < 0) return CUPLUG_OK;
  const cuplug_type_variable *t = &p->s->variables[x->type_variable];
  if (!t->dtypes) {
    p->token = p->s->text + x->type_at;
    return refuse(p, "'%s' is neither a dtype nor bound by 'where %s: ...'%s", t->name, t->name,
                  strcmp(t->name, "list") ? cuplug__meant_dtype(t->name).s : CUPLUG__LISTS);
  }
  if (has_known_dtype(p->s, x)) return CUPLUG_OK;
  return refuse(p, "no input array that is always given has the dtype %s", t->name);
}

/* Returns the number of dimensions that are written individually; *groups: the number of groups. */
static int count_dims(const cuplug_parameter *x, int *groups, uint64_t *names) {
  int n = 0;
  for (int32_t k = *groups = 0; k < x->n_dims; k++) {
    const int32_t kind = x->dims[k].kind;
    if (kind == CUPLUG_DIM_VARIADIC) *names |= 1ull << x->dims[k].value;
    if (kind == CUPLUG_DIM_UNKNOWN || kind > CUPLUG_DIM_FORMULA) return -1;
    *groups += is_group(&x->dims[k]);
    n += !is_group(&x->dims[k]);
  }
  return n;
}

static int has_guarantee(const cuplug_parameter *x) {
  return x->has_unit_stride || x->address_mask || x->is_contiguous;
}

/* An output that is like an input has the same number of dimensions, whatever it is. An array with
 * a guarantee may be passed as a copy, in another order; an output has the input's order, which may
 * be any. */
static int check_like(cuplug__parser *p, const cuplug_parameter *x) {
  const cuplug_parameter *like = &p->s->parameters[x->like - 1];
  const char *name = *x->name ? x->name : "output";
  uint64_t names[2] = {0, 0};
  int groups[2];
  const int n = count_dims(x, &groups[0], &names[0]);
  if (n < 0 || n != count_dims(like, &groups[1], &names[1]) || groups[0] != groups[1] ||
      names[0] != names[1])
    return refuse(
        p, "%s: got dimensions that differ from %s, expected the same number (it is like %s)", name,
        like->name, like->name);
  if (has_guarantee(x))
    return refuse(p, "%s: got guarantees, expected none (it has the layout of %s, in any order)",
                  name, like->name);
  if (!has_guarantee(like)) return CUPLUG_OK;
  return refuse(p,
                "%s: got guarantees of %s, expected none (if they do not hold, the entry receives "
                "a copy in C order, whose layout the output cannot have); test strides and "
                "addresses of %s in the entry",
                name, like->name, like->name);
}

static int check_parameter(cuplug__parser *p, int i) {
  const cuplug_signature *s = p->s;
  const cuplug_parameter *x = &s->parameters[i];
  if (is_identifier_reserved(x->name) && (i < s->n_parameters || !strcmp(x->name, "inout")))
    return refuse(p, "'%s' cannot be a parameter's name, as calls use it", x->name);
  for (int k = 0; k < i; k++)
    if (*x->name && !strcmp(s->parameters[k].name, x->name))
      return refuse(p, "two parameters are called '%s'", x->name);
  if (check_type(p, x)) return CUPLUG_ERROR_VALUE;
  if (x->has_default && i >= s->n_parameters && !*x->name)
    return refuse(p, "got an optional output without a name, expected one (callers request it with "
                     "return_<name>)");
  if (x->has_default && !cuplug__fits_default(s, x))
    return refuse(p, "%s: this default does not fit its type", x->name);
  if (x->like && check_like(p, x)) return CUPLUG_ERROR_VALUE;
  if (i > 0 && i < s->n_parameters && !x->has_default && x[-1].has_default)
    return refuse(p, "%s: got no default, expected one (the parameter before it has one)", x->name);
  return check_dims(p, x);
}

/* ---- All ------------------------------------------------------------------------------------- */

static int count_all(cuplug__parser *p) {
  cuplug_signature *s = p->s;
  int n_arrays = s->n_outputs, n_single = 0;
  for (int32_t i = 0; i < s->n_parameters; i++) {
    const uint64_t is_on_host = s->parameters[i].words & CUPLUG_WORD_HOST ? 1 : 0;
    if (is_array(&s->parameters[i])) s->host_arrays |= is_on_host << (n_single++ & 63);
    n_arrays += is_array(&s->parameters[i]);
    s->n_scalars += !is_array(&s->parameters[i]);
    s->n_lists += s->parameters[i].kind == CUPLUG_PARAMETER_ARRAYS;
    s->n_each_lists += s->parameters[i].is_each;
  }
  if (n_arrays + (s->n_lists > 0) <= CUPLUG_MAX_ARGUMENTS) return CUPLUG_OK;
  return refuse(p, "got more arrays, expected at most %d, outputs included%s",
                CUPLUG_MAX_ARGUMENTS - (s->n_lists > 0),
                s->n_lists ? ", in a signature with lists of arrays" : "");
}

int cuplug__check_signature(cuplug__parser *p) {
  if (settle_dims(p)) return CUPLUG_ERROR_VALUE;
  find_places(p->s);
  find_each_names(p->s);
  for (int i = 0; i < p->s->n_parameters + p->s->n_outputs + (p->s->made != NULL); i++) {
    p->token = p->parameter_at[i];
    if (check_parameter(p, i)) return CUPLUG_ERROR_VALUE;
  }
  p->token = p->s->text;
  if (cuplug__check_conditions(p) || count_all(p)) return CUPLUG_ERROR_VALUE;
  return check_dim_names(p);
}
