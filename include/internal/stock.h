/* SPDX-License-Identifier: Apache-2.0 */
/* The plugins that come with cuplug. Not installed. */
#ifndef CUPLUG_INTERNAL_STOCK_H
#define CUPLUG_INTERNAL_STOCK_H

#include <cuplug/host.h>

CUPLUG__BEGIN_C

/* Finds "plugin.operator" among the stock plugins, whatever else has these names: what is built
 * from them means them. [thread-safe] [no-cuda] */
CUPLUG_API int cuplug_find_stock(const char *name, cuplug_operator **op, cuplug_error *error);

CUPLUG__END_C

#endif
