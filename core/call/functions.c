/* SPDX-License-Identifier: Apache-2.0 */
#include "call/functions.h"

#include <string.h>

#define MEMBER(name) .name = cuplug__##name,
static const cuplug__core core = {.driver = &cuplug__driver,
                                  .driver_version = &cuplug__driver_version,
                                  .gpus = cuplug__gpus,
                                  CUPLUG__FUNCTIONS(MEMBER)};
#undef MEMBER

#define MEMBER(name) .name = cuplug_##name,
static const cuplug_functions functions = {.core = &core, CUPLUG_FUNCTIONS(MEMBER)};

const cuplug_functions *cuplug_private(const char *version, size_t table_bytes) {
  return table_bytes == sizeof functions && !strcmp(version, cuplug_version()) ? &functions : NULL;
}
