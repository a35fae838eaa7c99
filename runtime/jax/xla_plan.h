/* SPDX-License-Identifier: Apache-2.0 */
/* A call of an operator in an XLA program: its attributes, read once. */
#ifndef CUPLUG_RUNTIME_FRAMEWORKS_XLA_PLAN_H
#define CUPLUG_RUNTIME_FRAMEWORKS_XLA_PLAN_H

#include "jax/xla.h"
#include "jax/xla_scratch.h"

#include <internal/frame.h>

/* The destination of an operand: an argument, or an item of a list. */
typedef struct cuplug__xla_place {
  uint8_t is_item, is_scalar, number;
} cuplug__xla_place;

typedef struct cuplug__xla_plan {
  cuplug_operator *op;
  uint32_t row; /* 1 + the number of the only overload that may be used; 0: any */
  uint32_t n_args, n_operands, n_items;
  cuplug_argument args[CUPLUG_MAX_ARGUMENTS];     /* arrays without their tensors */
  uint32_t first_items[CUPLUG_MAX_ARGUMENTS];     /* items of those that are lists of arrays */
  uint64_t lists;                                 /* bit k: argument k is one */
  cuplug__xla_place places[CUPLUG_MAX_ARGUMENTS]; /* of the operands */
  cuplug_argument numbers[CUPLUG_MAX_ITEMS];      /* the items of lists of numbers */
  cuplug__xla_scratch scratch;
  char texts[]; /* strings, each zero-terminated */
} cuplug__xla_plan;

/* Reads the attributes of a call; the plan is freed by cuplug__xla_free_plan. */
int cuplug__xla_make_plan(const cuplug__xla_attributes *attributes, cuplug__xla_plan **plan,
                          cuplug_error *error);

void cuplug__xla_free_plan(void *plan);

/* Returns our dtype for XLA's number of one; 0 if operators accept no such arrays. */
uint32_t cuplug__xla_dtype(int32_t number);

/* Reads one number, of an XLA dtype, as an argument. ERROR_TYPE: operators accept no such dtype. */
int cuplug__xla_read_number(int32_t dtype, const void *value, cuplug_argument *argument,
                            cuplug_error *error);

#endif
