/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs that are cleared before the entry runs: "-> zero counts: int32[n]". */
#ifndef CUPLUG_CORE_ENTRY_ZERO_H
#define CUPLUG_CORE_ENTRY_ZERO_H

#include "entry/run.h"

/* Clears tensor k where the entry sees it, on the run's stream on a GPU. It has no gaps. */
int cuplug__zero_output(const cuplug__run *run, uint32_t k);

/* Clears the outputs that the signature says; those without memory so far are skipped. */
int cuplug__zero_outputs(const cuplug__run *run);

#endif
