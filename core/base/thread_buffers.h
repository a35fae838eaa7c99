/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that each thread has of its own until it ends: its stack, where thread-local data lies,
 * may be small. */
#ifndef CUPLUG_CORE_BASE_THREAD_BUFFERS_H
#define CUPLUG_CORE_BASE_THREAD_BUFFERS_H

#include <stddef.h>

typedef enum cuplug__use {
  CUPLUG__BUFFER_MATCHES, /* of arguments, which are recalled */
  CUPLUG__BUFFER_ROOM,    /* for parts of loops */
  CUPLUG__N_USES
} cuplug__use;

typedef struct cuplug__thread_buffer {
  void *memory; /* NULL at first */
  size_t bytes;
} cuplug__thread_buffer;

extern __attribute__((
    visibility("hidden"))) _Thread_local cuplug__thread_buffer cuplug__thread_buffers[];

/* The calling thread's. */
static inline cuplug__thread_buffer *cuplug__thread_buffer_of(cuplug__use use) {
  return &cuplug__thread_buffers[use];
}
/* The same, for the runtime. */
cuplug__thread_buffer *cuplug__thread_buffer_for(cuplug__use use);

/* Makes it larger, the new bytes 0; 0 where that cannot be: then it is as it was. */
int cuplug__thread_buffer_grow(cuplug__thread_buffer *own, size_t bytes);

#endif
