/* SPDX-License-Identifier: Apache-2.0 */
/* The clauses of `where`, except bounds: conditions and guarantees. */
#ifndef CUPLUG_CORE_SIGNATURE_CONDITIONS_H
#define CUPLUG_CORE_SIGNATURE_CONDITIONS_H

#include "signature/parser.h"

/*   condition = chain {"or" chain}
 *   chain     = formula {relation formula} ["in" "{" formula {"," formula} "}"]
 *   relation  = "<" | "<=" | "==" | "!=" | ">=" | ">" */
int cuplug__parse_condition(cuplug__parser *p);

/* Ties the names of all conditions, when the rest of the signature is checked. */
int cuplug__check_conditions(cuplug__parser *p);

/* The scalars of a formula that may be None: bit k for scalar k. */
uint64_t cuplug__optional_scalars(const cuplug_signature *s, const cuplug_formula *formula);

/* ---- Guarantees ------------------------------------------------------------------------------ */

/* The known properties of array memory: "stride(x, -1) == 1", "align(x) >= 16", "T[n] like x". */

/*   guarantee = "stride" "(" name "," "-1" ")" "==" "1" | "align" "(" name ")" ">=" number
 *             | "contiguous" "(" name ")"
 *
 * The bracket comes next; the name before it begins at `at`. The names of functions of formulas
 * begin a condition, and others are rejected. */
int cuplug__parse_guarantee(cuplug__parser *p, const char *name, const char *at);

/* ["like" name] after an output's dimensions, or after its dtype in short forms. */
int cuplug__parse_like(cuplug__parser *p, cuplug_parameter *output);

#endif
