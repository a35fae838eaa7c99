/* SPDX-License-Identifier: Apache-2.0 */
/* Freed memory of the legacy default stream, kept for the next that wants as many bytes there: to
 * free it and to allocate it again by the driver takes the GPU a microsecond. Other streams may be
 * destroyed, and have none. Without a lock. [thread-safe] */
#ifndef CUPLUG_CORE_CUDA_KEPT_H
#define CUPLUG_CORE_CUDA_KEPT_H

#include <stdint.h>

/* NULL: none of so many bytes. */
void *cuplug__kept_take(int32_t device, uint64_t bytes);

/* Whether the block is kept, perhaps in place of another. The device has been entered, as in
 * kept_free. */
int cuplug__kept_give(int32_t device, void *pointer, uint64_t bytes);

/* Frees all. Returns whether there were any. */
int cuplug__kept_free(int32_t device);

uint64_t cuplug__kept_bytes(int32_t device);

#endif
