/* SPDX-License-Identifier: Apache-2.0 */
/* Workspaces of calls that XLA captures. Memory that the pool allocates in a capture is part of the
 * graph. XLA adds that graph to another one, which cannot have its own memory. A call therefore
 * keeps its memory as long as its program exists: one block for each request on each GPU, because
 * replays on a GPU are consecutive. */
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
/* Called when no captured work runs any more. */
void cuplug__xla_scratch_free(cuplug__xla_scratch *scratch);

/* A cuplug_keep_workspace. If the frame's stream is captured, it returns a block. */
cuplug_keep_workspace cuplug__xla_keep_scratch;

#endif
