/* SPDX-License-Identifier: Apache-2.0 */
/* The conditions of a signature: parsed, and tied to the arguments. */
#ifndef CUPLUG_CORE_SIGNATURE_CONDITIONS_H
#define CUPLUG_CORE_SIGNATURE_CONDITIONS_H

#include "signature/parser.h"

/*   condition = chain {"or" chain}
 *   chain     = formula {relation formula} ["in" "{" formula {"," formula} "}"]
 *   relation  = "<" | "<=" | "==" | "!=" | ">=" | ">" */
int cuplug__parse_condition(cuplug__parser *p);

/* Ties the names of all conditions, when the rest of the signature is checked. */
int cuplug__check_conditions(cuplug__parser *p);

/* What may be None among the scalars of a formula: bit k for scalar k. */
uint64_t cuplug__optional_scalars(const cuplug_signature *s, const cuplug_formula *formula);

#endif
