/* SPDX-License-Identifier: Apache-2.0 */
/* What the host does for an entry while it runs. */
#ifndef CUPLUG_CORE_ENTRY_SERVICES_H
#define CUPLUG_CORE_ENTRY_SERVICES_H

#include "entry/run.h"

/* What an entry may ask for, and a function that makes a state. */
extern const cuplug_services cuplug__services;

void cuplug__free_workspaces(cuplug__run *run);
/* Memory from the caller for output k, whose size the entry has found. */
int cuplug__allocate_output(const cuplug__run *run, uint32_t k, cuplug_device device);

#endif
