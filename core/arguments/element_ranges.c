/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments/element_ranges.h"

#include "base/dtype.h"
#include "base/layout.h"
#include "base/status.h"
#include "signature/names.h"

#include <cuplug/half.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_wanted(void) {
  const char *value = secure_getenv("CUPLUG_CHECK_ELEMENTS");
  return value && !strcmp(value, "1");
}

/* ---- Elements -------------------------------------------------------------------------------- */

static int64_t load_signed(const void *at, int bits) {
  int64_t value = 0;
  memcpy(&value, at, (size_t)bits / 8);
  const int unused = 64 - bits;
  return (int64_t)((uint64_t)value << unused) >> unused;
}

static cuplug__number load_unsigned(const void *at, int bits) {
  uint64_t value = 0;
  memcpy(&value, at, (size_t)bits / 8);
  if (value > INT64_MAX) return (cuplug__number){.is_float = 1, .f = (double)value};
  return (cuplug__number){.is_float = 0, .i = (int64_t)value};
}

static double load_real(const void *at, uint32_t code, int bits) {
  uint16_t half;
  float single;
  double value;
  if (bits == 64) return memcpy(&value, at, sizeof value), value;
  if (bits == 32) return memcpy(&single, at, sizeof single), (double)single;
  memcpy(&half, at, sizeof half);
  return (double)(code == 4 ? cuplug_bfloat16_load(half) : cuplug_float16_load(half));
}

/* By DLPack's type code: integers 0 and 1, floats 2 and 4, bool 6. */
static cuplug__number load(const cuplug_tensor *x, const char *at) {
  const int bits = x->dtype.bits;
  if (x->dtype.code == 0) return (cuplug__number){.is_float = 0, .i = load_signed(at, bits)};
  if (x->dtype.code == 1) return load_unsigned(at, bits);
  if (x->dtype.code == 6) return (cuplug__number){.is_float = 0, .i = *at != 0};
  return (cuplug__number){.is_float = 1, .f = load_real(at, x->dtype.code, bits)};
}

/* ---- Arrays ---------------------------------------------------------------------------------- */

static int fail(const cuplug_frame *f, const cuplug_condition *condition,
                const cuplug__values *values, const int64_t *index, cuplug_error *error) {
  const cuplug_signature *s = f->signature;
  const cuplug_tensor *x = &f->tensors[condition->array];
  const cuplug__text names = cuplug__describe_names(s, condition->text, values);
  const char *name = s->parameters[f->parameter[condition->array]].name;
  char number[32];
  if (values->element.is_float)
    snprintf(number, sizeof number, "%.9g", values->element.f);
  else
    snprintf(number, sizeof number, "%" PRId64, values->element.i);
  return cuplug__fail(error, CUPLUG_ERROR_VALUE, "%s: %s: got %s at %s, expected %s%s%s%s", s->name,
                      name, number, cuplug__describe_shape(index, x->ndim).s, condition->text,
                      *names.s ? " (" : "", names.s, *names.s ? ")" : "");
}

/* The next index in C order; 0 past the last. */
static int advance(int64_t *index, const cuplug_tensor *x) {
  for (int32_t k = x->ndim; k-- > 0; index[k] = 0)
    if (++index[k] < x->shape[k]) return 1;
  return 0;
}

static int check_array(const cuplug_frame *f, const cuplug_condition *condition,
                       cuplug_error *error) {
  const cuplug_tensor *x = &f->tensors[condition->array];
  cuplug__values values = {.tensors = f->tensors, .scalars = f->scalars};
  if (x->ndim < 0 || !cuplug__is_host(x->device) || cuplug__n_bytes(x) <= 0) return CUPLUG_OK;
  int64_t index[CUPLUG_MAX_NDIM] = {0}, own[CUPLUG_MAX_NDIM];
  const int64_t *strides = x->strides;
  if (!strides) cuplug__contiguous_strides(x->ndim, x->shape, own), strides = own;
  do {
    int64_t offset = 0;
    for (int32_t k = 0; k < x->ndim; k++) offset += index[k] * strides[k];
    const char *first = cuplug__first_element(x);
    values.element = load(x, first + offset * cuplug_element_bytes(x));
    if (!cuplug__condition_holds(condition, &values))
      return fail(f, condition, &values, index, error);
  } while (advance(index, x));
  return CUPLUG_OK;
}

int cuplug__check_elements(const cuplug_frame *f, cuplug_error *error) {
  const cuplug_signature *s = f->signature;
  int status = CUPLUG_OK;
  if (!is_wanted()) return CUPLUG_OK;
  for (int32_t k = 0; k < s->n_conditions && !status; k++)
    if (s->conditions[k].array >= 0 && !(s->conditions[k].optional & f->none_mask))
      status = check_array(f, &s->conditions[k], error);
  return status;
}
