/* SPDX-License-Identifier: Apache-2.0 */
/* Scratch memory of calls that XLA captures. What the pool gives in a capture is part of the graph,
 * and XLA makes that a part of another one, which cannot have memory of its own. So a call keeps
 * its memory for as long as its program lives: one block for each request on each GPU, as replays
 * on a GPU come one after the other. */
#ifndef CUPLUG_RUNTIME_FRAMEWORKS_XLA_SCRATCH_H
#define CUPLUG_RUNTIME_FRAMEWORKS_XLA_SCRATCH_H

#include <internal/frame.h>
#include <pthread.h>

typedef struct cuplug__xla_block cuplug__xla_block;

typedef struct cuplug__xla_scratch {
  pthread_mutex_t lock;
  cuplug__xla_block *blocks; /* the newest first */
} cuplug__xla_scratch;

void cuplug__xla_scratch_init(cuplug__xla_scratch *scratch);
/* Nothing that was captured runs any more. */
void cuplug__xla_scratch_free(cuplug__xla_scratch *scratch);

/* A cuplug_keep_workspace, of whose frame the stream may be captured: then it gives a block. */
cuplug_keep_workspace cuplug__xla_keep_scratch;

#endif
