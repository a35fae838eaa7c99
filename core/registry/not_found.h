/* SPDX-License-Identifier: Apache-2.0 */
/* The message for a name that leads to no operator. */
#ifndef CUPLUG_CORE_REGISTRY_NOT_FOUND_H
#define CUPLUG_CORE_REGISTRY_NOT_FOUND_H

#include <cuplug/host.h>

/* A name from the user, "operator" or "plugin.operator", split. */
typedef struct cuplug__operator_name_query {
  const char *text;
  char plugin[CUPLUG_MAX_NAME]; /* "" when only the operator was named */
  char op[CUPLUG_MAX_NAME];
} cuplug__operator_name_query;

/* ERROR_NOT_FOUND with near names, rejected files that have the operator or may have it, the
 * directories, and the variable that adds some. */
int cuplug__fail_not_found(const cuplug__operator_name_query *query, const cuplug_listing *listing,
                           cuplug_error *error);

#endif
