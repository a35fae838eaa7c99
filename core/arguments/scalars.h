/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments that are not arrays, and the ranges of elements. */
#ifndef CUPLUG_CORE_ARGUMENTS_SCALARS_H
#define CUPLUG_CORE_ARGUMENTS_SCALARS_H

#include "arguments/match.h"
#include "registry/plugin.h"

#include <internal/frame.h>

/* Fits the scalars and lists of an overload whose arrays were matched, and checks its ranges. */
int cuplug__match_scalars(cuplug__match *m, const cuplug__callable *o);

/* ---- Ranges of elements ---------------------------------------------------------------------- */

/* With CUPLUG_CHECK_ELEMENTS=1, checks the elements of arrays on the host. Returns ERROR_VALUE with
 * the position of an element out of its range. */
int cuplug__check_elements(const cuplug_frame *frame, cuplug_error *error);

#endif
