/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread_buffers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

_Thread_local cuplug__thread_buffer cuplug__thread_buffers[CUPLUG__N_USES];
static pthread_key_t thread_end;
static int has_thread_end;

static void forget(void *unused) {
  (void)unused;
  for (int k = 0; k < CUPLUG__N_USES; k++) {
    free(cuplug__thread_buffers[k].memory);
    cuplug__thread_buffers[k] = (cuplug__thread_buffer){0};
  }
}

static void make_thread_end(void) { has_thread_end = !pthread_key_create(&thread_end, forget); }

cuplug__thread_buffer *cuplug__thread_buffer_for(cuplug__use use) {
  return cuplug__thread_buffer_of(use);
}

int cuplug__thread_buffer_grow(cuplug__thread_buffer *own, size_t bytes) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (pthread_once(&once, make_thread_end) || !has_thread_end) return 0;
  if (pthread_setspecific(thread_end, cuplug__thread_buffers)) return 0;
  /* Of much memory, pages that are never used are not made. */
  char *memory = own->memory ? realloc(own->memory, bytes) : calloc(1, bytes);
  if (!memory) return 0;
  if (own->memory) memset(memory + own->bytes, 0, bytes - own->bytes);
  *own = (cuplug__thread_buffer){memory, bytes};
  return 1;
}
