/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments that are not arrays, and the ranges for them. */
#include "arguments/scalars.h"

#include "arguments/lists.h"
#include "base/describe.h"
#include "base/dtype.h"
#include "base/layout.h"
#include "base/status.h"
#include "host/view.h"
#include "registry/plugin.h"
#include "signature/value.h"

#include <cuplug/half.h>
#include <stdlib.h>
#include <string.h>

static inline int match_string(cuplug__match *m, int32_t i, const cuplug_argument *a,
                               cuplug_scalar *to) {
  const cuplug_parameter *x = &m->s->parameters[i];
  if (a->kind == CUPLUG_ARGUMENT_ABSENT && x->has_default) {
    *to = x->default_value;
    return CUPLUG_OK;
  }
  if (a->kind != CUPLUG_ARGUMENT_STRING) return cuplug__report_mismatch(m, i, CUPLUG_ERROR_TYPE);
  *to = a->scalar;
  if (x->kind == CUPLUG_PARAMETER_STRING) return CUPLUG_OK;
  for (to->i = 0; to->i < x->n_choices; to->i++)
    if (!strcmp(a->scalar.s, x->choices[to->i])) return CUPLUG_OK;
  return cuplug__report_mismatch(m, i, CUPLUG_ERROR_VALUE);
}

CUPLUG__COLD static int refuse_scalar(cuplug__match *m, int32_t i, const cuplug_argument *a,
                                      uint32_t type, int status) {
  return cuplug__mismatch(m, i, status, "got %s, expected %s%s", cuplug__describe_argument(a).s,
                          status == CUPLUG_ERROR_VALUE ? "a value in the range of "
                                                       : "a scalar of dtype ",
                          cuplug__describe_dtype(type).s);
}

/* True would be axis 1: NumPy and PyTorch reject it. Other integers take bools, as in Python. */
static inline int is_bool_axis(const cuplug_parameter *x, const cuplug_argument *a) {
  return a->kind == CUPLUG_ARGUMENT_BOOL && !strcmp(x->name, "axis");
}

/* After the arrays, which determine the dtype of a type variable. */
static inline int match_scalar(cuplug__match *m, int32_t i, const cuplug_argument *a,
                               cuplug_scalar *to) {
  const cuplug_parameter *x = &m->s->parameters[i];
  cuplug_argument by_default;
  uint32_t type = cuplug__type_of(m, x->type_variable);
  if (a->kind == CUPLUG_ARGUMENT_ABSENT && x->has_default) {
    by_default.kind = (uint32_t)x->default_kind;
    by_default.scalar = x->default_value;
    a = &by_default;
  }
  int status = is_bool_axis(x, a) ? CUPLUG_ERROR_TYPE : cuplug__convert_scalar(a, type, to);
  return status ? refuse_scalar(m, i, a, type, status) : CUPLUG_OK;
}

/* A number is accepted as a list of one item. */
static int match_list(cuplug__match *m, int32_t i, const cuplug_argument *a, cuplug_scalar *to) {
  cuplug_frame *f = m->frame;
  const uint32_t type = cuplug__type_of(m, m->s->parameters[i].type_variable);
  cuplug_argument alone;
  if (a->kind >= CUPLUG_ARGUMENT_BOOL && a->kind <= CUPLUG_ARGUMENT_COMPLEX) {
    alone = cuplug_list_argument(a, 1);
    a = &alone;
  }
  if (a->kind != CUPLUG_ARGUMENT_LIST) return cuplug__report_mismatch(m, i, CUPLUG_ERROR_TYPE);
  const int has_room = a->list.n <= CUPLUG_MAX_ITEMS - f->n_items;
  int64_t *items = has_room ? f->items + f->n_items : cuplug__frame_memory(m, a->list.n * 8ull);
  if (!items) return CUPLUG_ERROR_MEMORY;
  if (has_room) f->n_items += a->list.n;
  to->list = (cuplug_items){items, a->list.n};
  for (uint32_t k = 0; k < a->list.n; k++) {
    cuplug_scalar item;
    int status = is_bool_axis(&m->s->parameters[i], &a->list.items[k])
                     ? CUPLUG_ERROR_TYPE
                     : cuplug__convert_scalar(&a->list.items[k], type, &item);
    m->item = k;
    if (status) refuse_scalar(m, i, &a->list.items[k], type, status);
    m->item = -1;
    if (status) return status;
    items[k] = item.i;
  }
  return CUPLUG_OK;
}

/* ---- All ------------------------------------------------------------------------------------- */

/* Separate from the code of each call, like the lists: few operators have them. */
static __attribute__((noinline)) int check_conditions(cuplug__match *m) {
  const cuplug__values values = {.tensors = m->frame->tensors, .scalars = m->frame->scalars};
  for (int32_t k = 0; k < m->s->n_conditions; k++) {
    const cuplug_condition *condition = &m->s->conditions[k];
    if (condition->array >= 0 || condition->optional & m->frame->none_mask) continue;
    if (cuplug__condition_holds(condition, &values)) continue;
    return cuplug__fail(m->error, CUPLUG_ERROR_VALUE, "%s: got %s, expected %s", m->s->name,
                        cuplug__describe_names(m->s, condition->text, &values).s, condition->text);
  }
  return CUPLUG_OK;
}

/* Returns whether operators are of one library. Operators created in memory have a plugin each:
 * their origin identifies them. */
static int is_of_library(const cuplug_operator *a, const cuplug_operator *b) {
  return a->plugin == b->plugin || (a->plugin->table.made && b->plugin->table.made &&
                                    !strcmp(cuplug_operator_path(a), cuplug_operator_path(b)));
}

/* Checks the tag and the library. The call checks whether the handle is open. */
static int match_handle(cuplug__match *m, int32_t i, const cuplug_argument *a, cuplug_scalar *to) {
  const cuplug_handle *given = a->scalar.handle;
  if (a->kind != CUPLUG_ARGUMENT_HANDLE || a->flags & CUPLUG_NEW_HANDLE || !given)
    return cuplug__report_mismatch(m, i, CUPLUG_ERROR_TYPE);
  const char *tag = m->s->parameters[i].tag;
  const cuplug_parameter *made = given->overload->signature->made;
  *to = a->scalar;
  const int is_own = is_of_library(given->op, m->frame->op);
  if (is_own && !strcmp(made->tag, tag)) return CUPLUG_OK;
  if (is_own)
    return cuplug__mismatch(m, i, CUPLUG_ERROR_TYPE,
                            "got handle[%s], expected handle[%s]; make one with another operator",
                            made->tag, tag);
  const char *of = cuplug_operator_path(given->op), *own = cuplug_operator_path(m->frame->op);
  return cuplug__mismatch(m, i, CUPLUG_ERROR_TYPE,
                          "got handle[%s] of %s%s, expected handle[%s] of %s; make one with an "
                          "operator of that library",
                          made->tag, of, strcmp(of, own) ? "" : " before it was reloaded", tag,
                          own);
}

CUPLUG__COLD static int refuse_dtype(cuplug__match *m, int32_t i, const cuplug_argument *a) {
  const int32_t v = m->s->parameters[i].type_variable;
  if (m->known_types >> v & 1)
    return cuplug__mismatch(m, i, CUPLUG_ERROR_TYPE, "got %s, expected %s (as in %s)",
                            cuplug__describe_argument(a).s, cuplug__describe_dtype(m->types[v]).s,
                            m->s->parameters[m->type_from[v]].name);
  const int is_text = a->kind == CUPLUG_ARGUMENT_STRING && !cuplug__dtype_bits(a->scalar.s);
  return cuplug__mismatch(m, i, CUPLUG_ERROR_TYPE, "got %s, expected %s%s",
                          cuplug__describe_argument(a).s,
                          cuplug__describe_parameter(m->s, &m->s->parameters[i]).s,
                          is_text ? cuplug__meant_dtype(a->scalar.s).s : "");
}

/* Returns whether a string names a type variable with a known dtype, which it stores in `to`. */
static int is_variable(const cuplug__match *m, const char *name, cuplug_argument *to) {
  const int32_t v = cuplug__variable_of(m->s, name);
  if (v < 0 || !(m->known_types >> v & 1)) return 0;
  to->kind = CUPLUG_ARGUMENT_DTYPE;
  to->scalar.dtype = cuplug__dtype_of(m->types[v]);
  return 1;
}

/* The bit of the dtype that an argument names; 0: it names none, or several. */
static uint64_t bit_of_dtype(const cuplug_argument *a) {
  if (a->kind == CUPLUG_ARGUMENT_DTYPE) return cuplug__dtype_bit(cuplug__id_of(a->scalar.dtype));
  const uint64_t bits = a->kind == CUPLUG_ARGUMENT_STRING ? cuplug__dtype_bits(a->scalar.s) : 0;
  return bits & (bits - 1) ? 0 : bits;
}

/* Binds the type variable of its name, unless an array has. */
static int match_dtype(cuplug__match *m, int32_t i, const cuplug_argument *a, cuplug_scalar *to) {
  const cuplug_parameter *x = &m->s->parameters[i];
  const int32_t v = x->type_variable;
  cuplug_argument by_default = {.kind = (uint32_t)x->default_kind, .scalar = x->default_value};
  if (a->kind == CUPLUG_ARGUMENT_ABSENT && x->has_default) a = &by_default;
  if (a->kind == CUPLUG_ARGUMENT_STRING && is_variable(m, a->scalar.s, &by_default))
    a = &by_default;
  const uint64_t bit = bit_of_dtype(a);
  if (!(bit & m->s->variables[v].dtypes)) return refuse_dtype(m, i, a);
  const uint32_t type = cuplug_dtype_id(cuplug__dtype_number(bit));
  if (m->known_types >> v & 1 && m->types[v] != type) return refuse_dtype(m, i, a);
  if (!(m->known_types >> v & 1)) m->type_from[v] = (int8_t)i;
  m->types[v] = type;
  m->known_types |= 1ull << v;
  to->u = 0;
  to->dtype = cuplug__dtype_of(type);
  return CUPLUG_OK;
}

static __attribute__((noinline)) int match_other(cuplug__match *m, int32_t i, cuplug_scalar *to,
                                                 uint32_t *first_item) {
  const cuplug_parameter *x = &m->s->parameters[i];
  const cuplug_argument *a = cuplug__argument(m, i);
  if (cuplug__is_left_out(x, a)) {
    *to = (cuplug_scalar){.list = {NULL, 0}};
    m->frame->none_mask |= 1ull << (to - m->frame->scalars);
    return CUPLUG_OK;
  }
  if (x->kind == CUPLUG_PARAMETER_LIST) return match_list(m, i, a, to);
  if (x->kind == CUPLUG_PARAMETER_SCALAR) return match_scalar(m, i, a, to);
  if (x->kind == CUPLUG_PARAMETER_HANDLE) return match_handle(m, i, a, to);
  if (x->kind == CUPLUG_PARAMETER_DTYPE) return match_dtype(m, i, a, to);
  if (x->kind != CUPLUG_PARAMETER_ARRAYS) return match_string(m, i, a, to);
  const cuplug_frame *f = m->frame;
  to->list = (cuplug_items){(f->apart ? f->apart : f->tensors) + *first_item, a->list.n};
  *first_item += a->list.n;
  return CUPLUG_OK;
}

int cuplug__match_scalars(cuplug__match *m, const cuplug__callable *o) {
  cuplug_frame *f = m->frame;
  uint32_t first_item = f->apart ? 0 : o->n_arrays;
  for (uint32_t k = 0; k < o->n_scalars; k++) {
    const int32_t i = o->scalars[k];
    const cuplug_parameter *x = &m->s->parameters[i];
    const cuplug_argument *a = cuplug__argument(m, i);
    cuplug_scalar *to = &f->scalars[f->n_scalars++];
    int status = CUPLUG_OK;
    m->n_matched++;
    if (x->default_kind == CUPLUG_ARGUMENT_NONE || x->kind >= CUPLUG_PARAMETER_LIST)
      status = match_other(m, i, to, &first_item);
    else if (x->kind == CUPLUG_PARAMETER_SCALAR)
      status = match_scalar(m, i, a, to);
    else
      status = match_string(m, i, a, to);
    if (status) return m->n_matched--, status;
  }
  return m->s->n_conditions ? check_conditions(m) : CUPLUG_OK;
}

/* ---- Ranges of elements ---------------------------------------------------------------------- */

/* Element k in C order, by DLPack's type code: integers 0 and 1, floats 2 and 4, bool 6. */
static cuplug__number load(const cuplug_tensor *x, const cuplug__view *view, int64_t k) {
  const int bits = x->dtype.bits, code = x->dtype.code, unused = 64 - bits;
  union {
    uint64_t u;
    double f;
    float single;
    uint16_t half;
  } value = {.u = 0};
  const uint64_t bytes = (uint64_t)bits / 8;
  cuplug__view_copy(view, 0, (uint64_t)k * bytes, bytes, &value);
  if (code == 0) return (cuplug__number){.i = (int64_t)(value.u << unused) >> unused};
  if (code == 6) return (cuplug__number){.i = value.u != 0};
  if (code == 1 && value.u <= INT64_MAX) return (cuplug__number){.i = (int64_t)value.u};
  const double real = code == 1    ? (double)value.u
                      : bits == 64 ? value.f
                      : bits == 32 ? (double)value.single
                      : code == 4  ? (double)cuplug_bfloat16_load(value.half)
                                   : (double)cuplug_float16_load(value.half);
  return (cuplug__number){.is_float = 1, .f = real};
}

static int fail(const cuplug_frame *f, const cuplug_condition *condition,
                const cuplug__values *values, int64_t k, cuplug_error *error) {
  const cuplug_signature *s = f->signature;
  const cuplug_tensor *x = &f->tensors[condition->array];
  int64_t index[CUPLUG_MAX_NDIM];
  for (int32_t d = x->ndim; d-- > 0; k /= x->shape[d]) index[d] = k % x->shape[d];
  const cuplug__text names = cuplug__describe_names(s, condition->text, values);
  const char *name = s->parameters[f->parameter[condition->array]].name;
  return cuplug__fail(error, CUPLUG_ERROR_VALUE, "%s: %s: got %s at %s, expected %s%s%s%s", s->name,
                      name, cuplug__describe_number(values->element).s,
                      cuplug__describe_tuple(index, x->ndim).s, condition->text,
                      *names.s ? " (" : "", names.s, *names.s ? ")" : "");
}

static int check_array(const cuplug_frame *f, const cuplug_condition *condition,
                       cuplug_error *error) {
  const cuplug_tensor *x = &f->tensors[condition->array];
  cuplug__values values = {.tensors = f->tensors, .scalars = f->scalars};
  cuplug__view view;
  if (x->ndim < 0 || !cuplug__is_host(x->device)) return CUPLUG_OK;
  cuplug__view_array(&view, x);
  for (int64_t k = 0; k < cuplug_n_elements(x); k++) {
    values.element = load(x, &view, k);
    if (!cuplug__condition_holds(condition, &values)) return fail(f, condition, &values, k, error);
  }
  return CUPLUG_OK;
}

int cuplug__check_elements(const cuplug_frame *f, cuplug_error *error) {
  const cuplug_signature *s = f->signature;
  const char *wanted = secure_getenv("CUPLUG_CHECK_ELEMENTS");
  int status = CUPLUG_OK;
  if (!wanted || strcmp(wanted, "1") != 0) return CUPLUG_OK;
  for (int32_t k = 0; k < s->n_conditions && !status; k++)
    if (s->conditions[k].array >= 0 && !(s->conditions[k].optional & f->none_mask))
      status = check_array(f, &s->conditions[k], error);
  return status;
}
