/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments that are no arrays. */
#ifndef CUPLUG_CORE_ARGUMENTS_SCALARS_H
#define CUPLUG_CORE_ARGUMENTS_SCALARS_H

#include "arguments/match.h"
#include "registry/operator.h"

/* Fits the scalars and lists of an overload whose arrays were matched, and checks its ranges. */
int cuplug__match_scalars(cuplug__match *m, const cuplug__overload *o);

#endif
