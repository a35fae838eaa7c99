/* SPDX-License-Identifier: Apache-2.0 */
/* What the host does for an entry while it runs. */
#ifndef CUPLUG_CORE_ENTRY_SERVICES_H
#define CUPLUG_CORE_ENTRY_SERVICES_H

#include "entry/run.h"

/* What an entry may ask for; `call->host` is the run. */
extern const cuplug_services cuplug__services;
void cuplug__free_workspaces(cuplug__run *run);

#endif
