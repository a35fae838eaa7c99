/* SPDX-License-Identifier: Apache-2.0 */
#include "signature/names.h"

#include "base/dtype.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int is_name(const char *name, const char *text, size_t n) {
  return !strncmp(name, text, n) && !name[n];
}

int32_t cuplug__find_scalar(const cuplug_signature *s, const char *text, size_t n,
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

const cuplug_dim_source *cuplug__find_place(const cuplug_signature *s, const char *text, size_t n) {
  for (int32_t k = 0; k < s->n_dim_names; k++)
    if (is_name(s->dim_names[k], text, n)) return &s->places[k];
  return NULL;
}

int32_t cuplug__find_array(const cuplug_signature *s, const char *text, size_t n,
                           const cuplug_parameter **x) {
  int32_t number = 0;
  for (int32_t i = 0; i < s->n_parameters + s->n_outputs; i++) {
    *x = &s->parameters[i];
    if ((*x)->kind > CUPLUG_PARAMETER_INOUT && i < s->n_parameters) continue;
    if (is_name((*x)->name, text, n)) return number;
    number++;
  }
  return -1;
}

int cuplug__has_rank(const cuplug_parameter *x) {
  for (int32_t k = 0; k < x->n_dims; k++) {
    const int32_t kind = x->dims[k].kind;
    if (kind == CUPLUG_DIM_VARIADIC || kind == CUPLUG_DIM_LOOP || kind >= CUPLUG_DIM_SLICE)
      return 0;
  }
  return 1;
}

int cuplug__scalar_member(const cuplug_signature *s, const cuplug_parameter *x) {
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

/* ---- Told ------------------------------------------------------------------------------------ */

cuplug__text cuplug__describe_number(cuplug__number x) {
  cuplug__text text;
  if (x.is_float) return cuplug__describe_float(x.f);
  snprintf(text.s, sizeof text.s, "%" PRId64, x.i);
  return text;
}

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
  if (!cuplug__work_out(&formula, d->values, &number))
    tell(d, name, n, cuplug__describe_number(number).s);
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
  const int32_t number = cuplug__find_scalar(d->s, name, n, &x);
  const cuplug_dim_source *place = number < 0 ? cuplug__find_place(d->s, name, n) : NULL;
  const int member = number < 0 ? -1 : cuplug__scalar_member(d->s, x);
  if (member >= 0) tell_number(d, name, n, (cuplug_step){CUPLUG_STEP_SCALAR, number, member});
  if (number >= 0 && x->kind == CUPLUG_PARAMETER_LIST &&
      d->s->variables[x->type_variable].dtypes == cuplug__dtype_bits("int64"))
    tell_list(d, name, n, &d->values->scalars[number].list);
  if (!place) return;
  if (!place->is_group) {
    const int64_t at = place->n_before >= 0 ? place->n_before : -1 - place->n_after;
    tell_number(d, name, n, (cuplug_step){CUPLUG_STEP_SIZE, place->array, at});
    return;
  }
  const cuplug_tensor *t = cuplug__tensor_at(place->array, d->values);
  if (t && t->ndim >= place->n_before + place->n_after)
    tell(d, name, n,
         cuplug__describe_shape(t->shape + place->n_before,
                                t->ndim - place->n_before - place->n_after)
             .s);
}

/* Returns whether a name was already reported. */
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
