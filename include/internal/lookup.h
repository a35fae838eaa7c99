/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups for cuplug's own layers above the core. Not installed. */
#ifndef CUPLUG_INTERNAL_LOOKUP_H
#define CUPLUG_INTERNAL_LOOKUP_H

#include <cuplug/host.h>

CUPLUG__BEGIN_C

/* Finds "plugin.operator" among the stock plugins, whatever else has these names: what is built
 * from them means them. [thread-safe] [no-cuda] */
int cuplug_find_stock(const char *name, cuplug_operator **op, cuplug_error *error);

/* What cuplug_find would return, if that needs no search and its code is loaded; else NULL. Reads
 * no file and takes no lock. [thread-safe] [no-cuda] */
cuplug_operator *cuplug_find_loaded(const char *name);

CUPLUG__END_C

#endif
