/* SPDX-License-Identifier: Apache-2.0 */
/* The code of plugins. */
#ifndef CUPLUG_CORE_LOAD_H
#define CUPLUG_CORE_LOAD_H

#include "registry.h"

/* Loads the code of a plugin from `name`, another spelling of its path, and all its entries. Wants
 * the registry's lock. */
int cuplug__load_plugin(cuplug__plugin *plugin, const char *name, cuplug_error *error);

#endif
