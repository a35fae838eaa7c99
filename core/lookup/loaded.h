/* SPDX-License-Identifier: Apache-2.0 */
/* The plugins whose code is in the process, at one moment, found by their files. */
#ifndef CUPLUG_CORE_LOOKUP_LOADED_H
#define CUPLUG_CORE_LOOKUP_LOADED_H

#include "base/index.h"
#include "registry/registry.h"

/* Zeros hold none. */
typedef struct cuplug__loaded {
  const cuplug__plugin **plugins; /* the last one first; owned */
  size_t n;
  cuplug__index by_path, by_identity;
} cuplug__loaded;

/* Takes the registry's lock. To be ended, also after an error, which is ERROR_MEMORY. */
int cuplug__loaded_start(cuplug__loaded *loaded, cuplug_error *error);
void cuplug__loaded_end(cuplug__loaded *loaded);

/* The one that was loaded from a path; NULL when there is none. */
const cuplug__plugin *cuplug__loaded_from(const cuplug__loaded *loaded, const char *path);
/* Whether the code of this very version of a file is in the process. */
int cuplug__is_loaded(const cuplug__loaded *loaded, const cuplug__identity *identity);

#endif
