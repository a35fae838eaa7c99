/* SPDX-License-Identifier: Apache-2.0 */
#include "base/own.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

_Thread_local cuplug__own cuplug__own_all[CUPLUG__N_USES];
static pthread_key_t thread_end;
static int has_thread_end;

static void forget(void *unused) {
  (void)unused;
  for (int k = 0; k < CUPLUG__N_USES; k++) {
    free(cuplug__own_all[k].memory);
    cuplug__own_all[k] = (cuplug__own){0};
  }
}

static void make_thread_end(void) { has_thread_end = !pthread_key_create(&thread_end, forget); }

cuplug__own *cuplug__own_for(cuplug__use use) { return cuplug__own_of(use); }

int cuplug__own_grow(cuplug__own *own, size_t bytes) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (pthread_once(&once, make_thread_end) || !has_thread_end) return 0;
  if (pthread_setspecific(thread_end, cuplug__own_all)) return 0;
  /* Of much memory, pages that are never used are not made. */
  char *memory = own->memory ? realloc(own->memory, bytes) : calloc(1, bytes);
  if (!memory) return 0;
  if (own->memory) memset(memory + own->bytes, 0, bytes - own->bytes);
  *own = (cuplug__own){memory, bytes};
  return 1;
}
