/* SPDX-License-Identifier: Apache-2.0 */
/* For a module of the Python package, which includes this in one file: the functions of the core as
 * `cuplug_core->bind(...)`. NULL with a core of another version, which `import cuplug` rejects. */
#ifndef CUPLUG_INTERNAL_CORE_H
#define CUPLUG_INTERNAL_CORE_H

#include <internal/functions.h>

static const cuplug_functions *cuplug_core;

__attribute__((constructor)) static void cuplug__find_core(void) {
  cuplug_core = cuplug_private(CUPLUG_VERSION, sizeof *cuplug_core);
}

#endif
