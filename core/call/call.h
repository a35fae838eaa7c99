/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUPLUG_CORE_CALL_CALL_H
#define CUPLUG_CORE_CALL_CALL_H

#include "registry/plugin.h"

#include <internal/frame.h>

/* The device of a bound frame's row if the caller names none. */
cuplug_device cuplug__default_place(const cuplug_frame *frame);

/* The device on which a bound frame, with its current `device`, will run. */
static inline cuplug_device cuplug__where(const cuplug_frame *f) {
  if (f->device.type) return f->device;
  if (f->op->overloads[f->row].prefers_host) return (cuplug_device){CUPLUG_CPU, 0};
  return cuplug__default_place(f);
}

#endif
