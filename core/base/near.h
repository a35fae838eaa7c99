/* SPDX-License-Identifier: Apache-2.0 */
/* Names that may have been meant, for messages. */
#ifndef CUPLUG_CORE_BASE_NEAR_H
#define CUPLUG_CORE_BASE_NEAR_H

/* Insertions, removals, replacements and swaps of neighbors between two names; more than `limit`
 * for names of more than 64 bytes. */
int cuplug__edit_distance(const char *a, const char *b, int limit);

/* The distance from `asked` to a name that may have been meant; -1 if `name` is not similar. A name
 * that begins with the other one counts as similar. */
int cuplug__name_distance(const char *asked, const char *name);

/* The dtype that a name may have stood for; NULL: none is near. */
const char *cuplug__near_dtype(const char *name);

#endif
