/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core.h"

const cuplug_functions *cuplug_core;
const cuplug__core *core;

/* The package has rejected a core of another version before it loads this library. */
__attribute__((constructor)) static void find_core(void) {
  cuplug_core = cuplug_private(CUPLUG_VERSION, sizeof *cuplug_core);
  core = cuplug_core->core;
}
