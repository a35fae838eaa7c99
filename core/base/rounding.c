/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rounding.h"

#include <internal/frame.h>

#include <stdatomic.h>

static _Atomic uint64_t n_changes;

uint64_t cuplug_n_rounding_changes(void) {
  return atomic_load_explicit(&n_changes, memory_order_relaxed);
}

void cuplug__rounding_note_change(void) {
  atomic_fetch_add_explicit(&n_changes, 1, memory_order_relaxed);
}
