/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between pageable host memory and a device, in chunks through a lane's pinned buffers.
 * Large ones are shared with the workers. */
#ifndef CUPLUG_CORE_TRANSFER_H
#define CUPLUG_CORE_TRANSFER_H

#include "memory.h"
#include "view.h"
#include "watch.h"

/* On the lane's stream. to_device copies the bytes of a view from `first` on and may return before
 * the last chunk has arrived (ordered on the stream; the array may be reused); to_host returns when
 * all has. `watch` may be NULL. */
int cuplug__to_device(cuplug__lane *lane, void *to, const cuplug__view *from, uint64_t first,
                      uint64_t bytes, cuplug__watch *watch, cuplug_error *error);
int cuplug__to_host(cuplug__lane *lane, void *to, const void *from, uint64_t bytes,
                    cuplug__watch *watch, cuplug_error *error);

#endif
