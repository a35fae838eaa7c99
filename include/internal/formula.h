/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that are computed from a call: sizes in signatures, ranges, arguments of kernels. Not
 * installed. */
#ifndef CUPLUG_INTERNAL_FORMULA_H
#define CUPLUG_INTERNAL_FORMULA_H

#include <stdint.h>

/* Steps on a stack of 64-bit integers. `operand`: an array (its number among the tensors; ~k: the
 * first one of list k among the scalars), or a scalar. */
typedef enum cuplug_step_kind {
  CUPLUG_STEP_NUMBER, /* push `value` */
  CUPLUG_STEP_SIZE,   /* push the size of dimension `value` of an array; from its end: < 0 */
  CUPLUG_STEP_COUNT,  /* push the number of elements of an array */
  CUPLUG_STEP_SCALAR, /* push scalar `operand` */
  CUPLUG_STEP_ADD,    /* of the two numbers on top, like the following */
  CUPLUG_STEP_SUBTRACT,
  CUPLUG_STEP_MULTIPLY,
  CUPLUG_STEP_DIVIDE, /* rounds down, like the next */
  CUPLUG_STEP_REMAINDER,
  CUPLUG_STEP_MIN,
  CUPLUG_STEP_MAX,
  CUPLUG_STEP_NEGATE, /* of the number on top */
  CUPLUG_STEP_REAL,   /* push the double whose bits are `value`; conditions only */
  /* For a group: the dimensions of an array except `value` >> 32 before and the rest after it. */
  CUPLUG_STEP_NDIM,    /* push how many */
  CUPLUG_STEP_PRODUCT, /* push the product of their sizes */
  CUPLUG_STEP_ITEM,    /* the size with the number on top; from the end: < 0 */
  /* Of a list among the scalars. */
  CUPLUG_STEP_LENGTH,
  CUPLUG_STEP_LIST_ITEM,
  CUPLUG_STEP_LIST_PRODUCT,
  CUPLUG_STEP_ELEMENT /* push the element at hand of array `operand`; conditions only */
} cuplug_step_kind;

typedef struct cuplug_step {
  int32_t kind; /* a cuplug_step_kind */
  int32_t operand;
  int64_t value;
} cuplug_step;

typedef struct cuplug_formula {
  const cuplug_step *steps;
  uint32_t n_steps;
} cuplug_formula;

/* A formula of an operator without a plugin. */
typedef struct cuplug_term {
  cuplug_formula formula;
  const char *text; /* as in the source: "n // k" */
} cuplug_term;

#endif
