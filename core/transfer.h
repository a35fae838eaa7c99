/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between pageable host memory and a device, in chunks through a lane's pinned buffers.
 * Large ones are shared with the workers. */
#ifndef CUPLUG_CORE_TRANSFER_H
#define CUPLUG_CORE_TRANSFER_H

#include "memory.h"

/* On the lane's stream. to_device may return before the last chunk has arrived (ordered on the
 * stream; `from` may be reused); to_host returns when all has. */
int cuplug__to_device(cuplug__lane *lane, void *to, const void *from, uint64_t bytes,
                      cuplug_error *error);
int cuplug__to_host(cuplug__lane *lane, void *to, const void *from, uint64_t bytes,
                    cuplug_error *error);

#endif
