/* SPDX-License-Identifier: Apache-2.0 */
/* The private libraries of plugins: the dynamic linker has one library of a name, and would give a
 * plugin that of another one. */
#ifndef CUPLUG_CORE_REGISTRY_CLAIMS_H
#define CUPLUG_CORE_REGISTRY_CLAIMS_H

#include "registry/registry.h"

/* Claims the names of the private libraries of an open plugin, whose real path is given, for its
 * files. ERROR_PLUGIN: another plugin has claimed one for a file of different content. The caller
 * does not hold the registry's lock. */
int cuplug__claim_privates(cuplug__plugin *plugin, int fd, const char *path, cuplug_error *error);

/* Gives the names up, unless the code has been loaded. */
void cuplug__unclaim_privates(cuplug__plugin *plugin);

#endif
