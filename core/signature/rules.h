/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of a signature that its grammar cannot say. */
#ifndef CUPLUG_CORE_SIGNATURE_RULES_H
#define CUPLUG_CORE_SIGNATURE_RULES_H

#include "signature/parser.h"

/* Checks what the grammar cannot say - names bound, defaults sensible, limits kept - and ties the
 * names of formulas. On an error *parameter is the number of the parameter at fault, or -1, unless
 * p->token says the place. */
int cuplug__check_signature(cuplug__parser *p, int *parameter);

#endif
