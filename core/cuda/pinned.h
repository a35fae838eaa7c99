/* SPDX-License-Identifier: Apache-2.0 */
/* Whether memory of the host is pinned, whoever pinned it. */
#ifndef CUPLUG_CORE_CUDA_PINNED_H
#define CUPLUG_CORE_CUDA_PINNED_H

#include <stdint.h>

/* 1 when all these bytes are pinned, allocated or registered as one block: GPUs copy from and to
 * them without the host. 0 also where the driver cannot say. A context is current. */
int cuplug__is_pinned(const void *memory, uint64_t bytes);

#endif
