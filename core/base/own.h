/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that each thread has of its own until it ends: its stack, where thread-local data lies,
 * may be small. */
#ifndef CUPLUG_CORE_BASE_OWN_H
#define CUPLUG_CORE_BASE_OWN_H

#include <stddef.h>

typedef enum cuplug__use {
  CUPLUG__OWN_MATCHES, /* of arguments, which are recalled */
  CUPLUG__OWN_ROOM,    /* for parts of loops */
  CUPLUG__N_USES
} cuplug__use;

typedef struct cuplug__own {
  void *memory; /* NULL at first */
  size_t bytes;
} cuplug__own;

extern __attribute__((visibility("hidden"))) _Thread_local cuplug__own cuplug__own_all[];

/* The calling thread's. */
static inline cuplug__own *cuplug__own_of(cuplug__use use) { return &cuplug__own_all[use]; }
/* The same, for the runtime. */
cuplug__own *cuplug__own_for(cuplug__use use);

/* Makes it larger, the new bytes 0; 0 where that cannot be: then it is as it was. */
int cuplug__own_grow(cuplug__own *own, size_t bytes);

#endif
