/* SPDX-License-Identifier: Apache-2.0 */
/* The code of plugins. */
#ifndef CUPLUG_CORE_REGISTRY_LOAD_H
#define CUPLUG_CORE_REGISTRY_LOAD_H

#include "registry/operator.h"

/* Loads the code of a plugin and all its entries. Wants the registry's lock not to be held:
 * constructors of libraries may wait for those who want it. */
int cuplug__load_plugin(cuplug__plugin *plugin, cuplug_error *error);

/* What a plugin, whose code is loaded, says is one of its kernels: a CUkernel. NULL: it does not
 * say. A device has been entered. */
void *cuplug__any_kernel(const cuplug_operator *op);

#endif
