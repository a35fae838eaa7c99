/* SPDX-License-Identifier: Apache-2.0 */
/* Thread-local memory until the thread ends: its stack, which contains thread-local data, may be
 * small. */
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

/* Enlarges it, the new bytes 0; returns 0 if that fails: then it is unchanged. */
int cuplug__thread_buffer_grow(cuplug__thread_buffer *own, size_t bytes);

#endif
