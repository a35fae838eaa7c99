/* SPDX-License-Identifier: Apache-2.0 */
/* The names of a signature: found, and shown with their values. */
#ifndef CUPLUG_CORE_SIGNATURE_NAMES_H
#define CUPLUG_CORE_SIGNATURE_NAMES_H

#include "base/describe.h"
#include "signature/parser.h"
#include "signature/value.h"

/* The number of a parameter among the scalars, or of an array among the tensors, outputs last, and
 * the parameter; -1 for another name. */
int32_t cuplug__find_scalar(const cuplug_signature *s, const char *text, size_t n,
                            const cuplug_parameter **x);
int32_t cuplug__find_array(const cuplug_signature *s, const char *text, size_t n,
                           const cuplug_parameter **x);
/* The place of a dimension, which may be none; NULL for another name. */
const cuplug_dim_source *cuplug__find_place(const cuplug_signature *s, const char *text, size_t n);

/* The kind of the numbers of a scalar parameter, as `value` of its step: 0 signed, 1 unsigned, 2
 * floating; -1 if they may be of several kinds, or are not numbers. */
int cuplug__scalar_member(const cuplug_signature *s, const cuplug_parameter *x);
/* 1 if the number of an array's dimensions is fixed. */
int cuplug__has_rank(const cuplug_parameter *x);

/* "0.5" or "3". */
cuplug__text cuplug__describe_number(cuplug__number x);

/* The values of the names in a text, for messages: "k = 5, n = 4". */
cuplug__text cuplug__describe_names(const cuplug_signature *s, const char *text,
                                    const cuplug__values *values);

#endif
