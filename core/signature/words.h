/* SPDX-License-Identifier: Apache-2.0 */
/* The words before the name of a parameter or an output: "inout x: T[n]", "zero counts: int32[n]",
 * "host sizes: int64[g]". */
#ifndef CUPLUG_CORE_SIGNATURE_WORDS_H
#define CUPLUG_CORE_SIGNATURE_WORDS_H

#include "signature/parser.h"

/* Sets `found` to the words before the next name or dtype, CUPLUG_WORD_ZERO ... A word that nothing
 * follows is itself that name: outputs may be called "zero". Refuses words similar to an allowed
 * one; others are left to the caller, as a name. */
int cuplug__parse_words(cuplug__parser *p, uint32_t allowed, uint32_t *found);

#endif
