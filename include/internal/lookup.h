/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups for cuplug's own layers above the core. Not installed. */
#ifndef CUPLUG_INTERNAL_LOOKUP_H
#define CUPLUG_INTERNAL_LOOKUP_H

#include <cuplug/host.h>

CUPLUG__BEGIN_C

/* Finds "plugin.operator" among the stock plugins, also if others have these names: code that is
 * built from the stock operators depends on them. [thread-safe] [no-cuda] */
int cuplug_find_stock(const char *name, cuplug_operator **op, cuplug_error *error);

/* The result of cuplug_find, if that needs no search and its code is loaded; else NULL. Reads no
 * file and takes no lock. [thread-safe] [no-cuda] */
cuplug_operator *cuplug_find_loaded(const char *name);

CUPLUG__END_C

#endif
