/* SPDX-License-Identifier: Apache-2.0 */
/* Formulas and conditions, evaluated with a call's arguments; the names of a signature, found and
 * shown with their values. */
#ifndef CUPLUG_CORE_SIGNATURE_VALUE_H
#define CUPLUG_CORE_SIGNATURE_VALUE_H

#include "base/describe.h"
#include "signature/parser.h"

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

/* Evaluates a formula. Returns NULL, or the reason why it is not an integer: "its value exceeds 64
 * bits". */
const char *cuplug__work_out_integer(const cuplug_formula *formula, const cuplug__values *values,
                                     int64_t *result);

/* 1 if all sides of a condition are related as required; 0 also if one has no value. */
int cuplug__condition_holds(const cuplug_condition *condition, const cuplug__values *values);

/* ---- Names ----------------------------------------------------------------------------------- */

/* The number of a parameter among the scalars, or of an array among the tensors, outputs last, and
 * the parameter; -1 for another name. */
int32_t cuplug__find_parameter(const cuplug_signature *s, const char *text, size_t n, int is_array,
                               const cuplug_parameter **x);
/* The place of a dimension, which may be none; NULL for another name. */
const cuplug_dim_source *cuplug__find_place(const cuplug_signature *s, const char *text, size_t n);

/* The kind of the numbers of a scalar parameter, as `value` of its step: 0 signed, 1 unsigned, 2
 * floating; -1 if they may be of several kinds, or are not numbers. */
int cuplug__scalar_member(const cuplug_signature *s, const cuplug_parameter *x);
/* 1 for lists of integers, whose items are numbers of formulas and sizes. */
int cuplug__is_integer_list(const cuplug_signature *s, const cuplug_parameter *x);

/* "0.5" or "3". */
cuplug__text cuplug__describe_number(cuplug__number x);

/* The values of the names in a text, for messages: "k = 5, n = 4". */
cuplug__text cuplug__describe_names(const cuplug_signature *s, const char *text,
                                    const cuplug__values *values);

#endif
