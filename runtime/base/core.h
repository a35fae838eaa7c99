/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's access to the core: `core->fail(...)`, and for functions that the package also
 * calls, `cuplug_core->run(...)`. Functions that include/cuplug/ declares are called directly. */
#ifndef CUPLUG_RUNTIME_BASE_CORE_H
#define CUPLUG_RUNTIME_BASE_CORE_H

#include "call/functions.h"

extern const cuplug_functions *cuplug_core;
extern const cuplug__core *core;

/* As the core's CUPLUG__RELAXED, CUPLUG__ENTERED and CUPLUG__ENTER_OR_RETURN. */
static inline void cuplug__end_relaxed(const int *mode) { core->capture_restore(mode); }
#define RELAXED __attribute__((unused, cleanup(cuplug__end_relaxed))) int

static inline void cuplug__end_entered(const cuplug__context *context) {
  core->cuda_leave(context);
}
#define ENTERED __attribute__((cleanup(cuplug__end_entered))) cuplug__context
#define ENTER_OR_RETURN(device, error)               \
  cuplug__clear(error);                              \
  ENTERED context = core->cuda_enter(device, error); \
  if (context.status) return context.status

#endif
