/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of a signature beyond its grammar. */
#ifndef CUPLUG_CORE_SIGNATURE_RULES_H
#define CUPLUG_CORE_SIGNATURE_RULES_H

#include "signature/parser.h"

/* Checks the rules beyond the grammar - names bound, defaults valid, limits kept - and ties the
 * names of formulas. On an error p->token is the position. */
int cuplug__check_signature(cuplug__parser *p);

#endif
