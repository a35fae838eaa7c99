/* SPDX-License-Identifier: Apache-2.0 */
/* The code of plugins. */
#ifndef CUPLUG_CORE_REGISTRY_LOAD_H
#define CUPLUG_CORE_REGISTRY_LOAD_H

#include "registry/plugin.h"

/* Loads the code of a plugin and all its entries. The caller must not hold the registry's lock:
 * constructors of libraries may wait for threads that take it. */
int cuplug__load_plugin(cuplug__plugin *plugin, cuplug_error *error);

/* One of the kernels of a plugin whose code is loaded, as the plugin reports it: a CUkernel. NULL:
 * it reports none. A device has been entered. */
void *cuplug__any_kernel(const cuplug_operator *op);

#endif
