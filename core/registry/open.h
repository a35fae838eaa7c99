/* SPDX-License-Identifier: Apache-2.0 */
/* The library of a plugin, opened: from a copy in memory, as what writes over the file of a loaded
 * library crashes the process, and as what was checked is then what runs. */
#ifndef CUPLUG_CORE_REGISTRY_OPEN_H
#define CUPLUG_CORE_REGISTRY_OPEN_H

#include "registry/operator.h"

/* Opens the library, which must have the table that was read from the file. All threads get the
 * same. Wants the registry's lock not to be held. */
int cuplug__open_code(cuplug__plugin *plugin, void **library, cuplug_error *error);

#endif
