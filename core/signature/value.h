/* SPDX-License-Identifier: Apache-2.0 */
/* Formulas and conditions, evaluated with a call's arguments. */
#ifndef CUPLUG_CORE_SIGNATURE_VALUE_H
#define CUPLUG_CORE_SIGNATURE_VALUE_H

#include <internal/signature.h>

/* A number: an integer, or in conditions a float. */
typedef struct cuplug__number {
  int32_t is_float;
  union {
    int64_t i;
    double f;
  };
} cuplug__number;

/* The arguments for a formula, and the element of an array. */
typedef struct cuplug__values {
  const cuplug_tensor *tensors;
  const cuplug_scalar *scalars;
  cuplug__number element;
} cuplug__values;

/* The array of a step; NULL for the first of an empty list, and an omitted one. */
const cuplug_tensor *cuplug__tensor_at(int32_t array, const cuplug__values *values);

/* Works a formula out. Returns NULL, or why it has no value: "its value passes 64 bits". */
const char *cuplug__work_out(const cuplug_formula *formula, const cuplug__values *values,
                             cuplug__number *result);

/* As an integer: also NULL, or "it is not an integer". */
const char *cuplug__work_out_integer(const cuplug_formula *formula, const cuplug__values *values,
                                     int64_t *result);

/* 1 if all sides of a condition are related as required; 0 also if one has no value. */
int cuplug__condition_holds(const cuplug_condition *condition, const cuplug__values *values);

#endif
