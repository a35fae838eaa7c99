/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that a signature says. */
#ifndef CUPLUG_CORE_ARGUMENTS_SHAPES_H
#define CUPLUG_CORE_ARGUMENTS_SHAPES_H

#include "arguments/match.h"

/* Keeps words of the frame for what inputs may need, when all of them are matched. */
int cuplug__reserve_words(cuplug__match *m);
/* Appends the tensor of output i (its number among all parameters), without memory. */
int cuplug__shape_output(cuplug__match *m, int32_t i);
/* Compares the sizes of inputs that are worked out, when all arguments are matched. */
int cuplug__check_formulas(cuplug__match *m);

#endif
