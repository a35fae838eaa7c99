/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of device memory, and which memory of the host is pinned. The device has been entered in
 * every call. */
#ifndef CUPLUG_CORE_CUDA_MEMORY_H
#define CUPLUG_CORE_CUDA_MEMORY_H

#include <cuplug/host.h>

/* Stream-ordered device memory. 0 bytes also give a valid pointer. Out of memory: cached memory is
 * released and the allocation retried once, then again after cuplug_reclaim, then it is
 * ERROR_MEMORY with sizes. */
int cuplug__device_allocate(int32_t device, uint64_t bytes, void *stream, void **pointer,
                            cuplug_error *error);
int cuplug__device_free(void *pointer, void *stream, cuplug_error *error);
/* The same, for a block that was allocated with this number of bytes, which may be cached. */
int cuplug__device_release(int32_t device, void *pointer, uint64_t bytes, void *stream,
                           cuplug_error *error);

int cuplug__memory_query(int32_t device, cuplug_memory_info *info, cuplug_error *error);

/* 1 if all these bytes of the host are pinned, allocated or registered as one block, by any code:
 * GPUs copy from and to them without the host. 0 also if the driver does not know. */
int cuplug__is_pinned(const void *memory, uint64_t bytes);

#endif
