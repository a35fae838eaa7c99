/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic over dimensions and scalars: parsed, and tied to the arguments. */
#ifndef CUPLUG_CORE_SIGNATURE_FORMULA_H
#define CUPLUG_CORE_SIGNATURE_FORMULA_H

#include "signature/parser.h"

/*   formula  = term {("+" | "-") term}
 *   term     = factor {("*" | "//" | "%") factor}
 *   factor   = number | name | name "[" formula "]" | "-" factor | "(" formula ")"
 *            | ("min" | "max") "(" formula "," formula ")" | ("len" | "prod") "(" name ")"
 *            | "size" "(" name ["," ["-"] number] ")"      in terms, of arrays
 *
 * Names are not yet tied: their steps hold the place in the text, and its length. */
int cuplug__parse_formula(cuplug__parser *p, cuplug_formula *formula);

/* Ties the names of a formula to dimensions and scalars, when all of the signature is parsed. */
int cuplug__tie_formula(cuplug__parser *p, const cuplug_formula *formula);

#endif
