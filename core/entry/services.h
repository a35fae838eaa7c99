/* SPDX-License-Identifier: Apache-2.0 */
/* The services of the host for a running entry. */
#ifndef CUPLUG_CORE_ENTRY_SERVICES_H
#define CUPLUG_CORE_ENTRY_SERVICES_H

#include "entry/run.h"

/* The services for an entry, and for a function that makes a state or closes a handle. */
extern const cuplug_services cuplug__services;
/* A call of a function that is not an entry, but makes a state or closes a handle: it has a device,
 * and no arrays. */
cuplug_call cuplug__bare_call(cuplug__run *run);

void cuplug__free_workspaces(cuplug__run *run);
/* Memory from the caller for output k, whose size the entry has found. */
int cuplug__allocate_output(const cuplug__run *run, uint32_t k, cuplug_device device);

/* Clears the outputs that the signature marks; outputs without memory so far are skipped. */
int cuplug__zero_outputs(const cuplug__run *run);

#endif
