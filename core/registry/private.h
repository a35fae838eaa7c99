/* SPDX-License-Identifier: Apache-2.0 */
/* The private libraries of plugins: the dynamic linker has one library of a name, and would return
 * the other one to a plugin. */
#ifndef CUPLUG_CORE_REGISTRY_PRIVATE_H
#define CUPLUG_CORE_REGISTRY_PRIVATE_H

#include "registry/plugin.h"

/* Claims the names of the private libraries of an open plugin, whose real path is given, for its
 * files. ERROR_PLUGIN: another plugin has claimed one for a file of different content. The caller
 * does not hold the lock. */
int cuplug__claim_privates(cuplug__plugin *plugin, int fd, const char *path, cuplug_error *error);
/* Gives the names up, unless the code has been loaded. The caller does not hold the lock. */
void cuplug__unclaim_privates(cuplug__plugin *plugin);

#endif
