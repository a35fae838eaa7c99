/* SPDX-License-Identifier: Apache-2.0 */
/* The defaults of parameters: parsed, and checked against their types. */
#ifndef CUPLUG_CORE_SIGNATURE_DEFAULT_H
#define CUPLUG_CORE_SIGNATURE_DEFAULT_H

#include "signature/parser.h"

/* Parses what follows "=": a number, string, True, False, None or a dtype. */
int cuplug__parse_default(cuplug__parser *p, cuplug_parameter *x);

/* Whether a default is of the type, and in the range, of its parameter. */
int cuplug__fits_default(const cuplug_signature *s, const cuplug_parameter *x);

#endif
