/* SPDX-License-Identifier: Apache-2.0 */
#include "jax/xla_scratch.h"

#include "base/core.h"

#include <stdlib.h>

struct cuplug__xla_block {
  cuplug__xla_block *next;
  void *pointer;
  uint64_t bytes;
  uint32_t number; /* number of the request in its call */
  int32_t device;
};

void cuplug__xla_scratch_init(cuplug__xla_scratch *scratch) {
  pthread_mutex_init(&scratch->lock, NULL);
  scratch->blocks = NULL;
}

static void free_block(cuplug__xla_block *block) {
  ENTERED context = core->cuda_enter(block->device, NULL);
  if (!context.status && !core->driver->cuCtxSynchronize())
    core->device_free(block->pointer, CUPLUG__STREAM(NULL), NULL);
  free(block);
}

void cuplug__xla_scratch_free(cuplug__xla_scratch *scratch) {
  while (scratch->blocks) {
    cuplug__xla_block *block = scratch->blocks;
    scratch->blocks = block->next;
    free_block(block);
  }
  pthread_mutex_destroy(&scratch->lock);
}

/* On the default stream, which is not captured. The memory is allocated before other streams use
 * it. */
static int allocate(int32_t device, uint64_t bytes, void **pointer, cuplug_error *error) {
  RELAXED mode = core->capture_allow_unsafe();
  void *stream = CUPLUG__STREAM(NULL);
  int status = core->device_allocate(device, bytes, stream, pointer, error);
  if (status) return status;
  status = core->stream_synchronize(stream, error);
  if (status) core->device_free(*pointer, stream, NULL);
  return status;
}

/* Blocks that are too small are not freed, since graphs may use them. */
static int add_block(cuplug__xla_scratch *scratch, int32_t device, uint32_t number, uint64_t bytes,
                     cuplug_error *error) {
  cuplug__xla_block *block = malloc(sizeof *block);
  if (!block) return core->no_memory(error, "keeping scratch memory");
  int status = allocate(device, bytes, &block->pointer, error);
  if (status) return free(block), status;
  block->bytes = bytes;
  block->number = number;
  block->device = device;
  block->next = scratch->blocks;
  scratch->blocks = block;
  return CUPLUG_OK;
}

static cuplug__xla_block *find_block(cuplug__xla_block *block, int32_t device, uint32_t number,
                                     uint64_t bytes) {
  while (block && (block->device != device || block->number != number || block->bytes < bytes))
    block = block->next;
  return block;
}

int cuplug__xla_keep_scratch(void *user, const cuplug_frame *frame, uint32_t number, uint64_t bytes,
                             void **pointer, cuplug_error *error) {
  cuplug__xla_scratch *scratch = user;
  const int32_t device = frame->device.id;
  int is_captured, status = CUPLUG_OK;
  if (core->capture_query(frame->stream, &is_captured) || !is_captured) return CUPLUG_OK;
  pthread_mutex_lock(&scratch->lock);
  cuplug__xla_block *block = find_block(scratch->blocks, device, number, bytes);
  if (!block) {
    status = add_block(scratch, device, number, bytes, error);
    block = scratch->blocks;
  }
  pthread_mutex_unlock(&scratch->lock);
  if (!status) *pointer = block->pointer;
  return status;
}
