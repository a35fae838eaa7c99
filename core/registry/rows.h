/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows of an operator may take arguments of such kinds, dtypes and ranks: sets with a bit for
 * each row, so that the first that fits is found among a thousand. */
#ifndef CUPLUG_CORE_REGISTRY_ROWS_H
#define CUPLUG_CORE_REGISTRY_ROWS_H

#include "registry/operator.h"

/* Makes the sets of an operator whose overloads are parsed; of one with a single row none. */
int cuplug__rows_make(cuplug_operator *op, cuplug_error *error);

/* The first row from `from` on that may take the arguments; op->n_overloads when there is none. An
 * operator with a single row has no sets: it is not asked for. */
uint32_t cuplug__rows_next(const cuplug_operator *op, const cuplug_argument *args, uint32_t n_args,
                           uint32_t from);

#endif
