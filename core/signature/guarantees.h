/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of an array's memory: "stride(x, -1) == 1", "align(x) >= 16", "contiguous(x)",
 * "T[n] like x". */
#ifndef CUPLUG_CORE_SIGNATURE_GUARANTEES_H
#define CUPLUG_CORE_SIGNATURE_GUARANTEES_H

#include "signature/parser.h"

/*   guarantee = "stride" "(" name "," "-1" ")" "==" "1" | "align" "(" name ")" ">=" number
 *             | "contiguous" "(" name ")"
 *
 * The bracket comes next; the name before it begins at `at`. Other names are refused. */
int cuplug__parse_guarantee(cuplug__parser *p, const char *name, const char *at);

/* ["like" name] behind an output's dimensions, or its dtype in short forms. */
int cuplug__parse_like(cuplug__parser *p, cuplug_parameter *output);

/* 1 for the functions of formulas, which begin conditions. */
int cuplug__is_function(const char *name);

#endif
