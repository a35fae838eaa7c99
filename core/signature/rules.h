/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of a signature that its grammar cannot say. */
#ifndef CUPLUG_CORE_SIGNATURE_RULES_H
#define CUPLUG_CORE_SIGNATURE_RULES_H

#include <internal/signature.h>

/* Checks what the grammar cannot say: names bound, defaults sensible, limits kept. On an error
 * *parameter is the number of the parameter at fault, or -1. */
int cuplug__check_signature(const cuplug_signature *signature, int *parameter, cuplug_error *error);

#endif
