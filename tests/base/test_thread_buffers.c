/* sanitizers: address,undefined | thread */
/* ldflags: -Wl,--wrap=realloc */
/* SPDX-License-Identifier: Apache-2.0 */
/* Each thread has memory of its own, zeros as far as nobody has written, which is freed when it
 * ends: the sanitizer says if it is not. */
#include "base/thread_buffers.h"
#include "check.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define N 4096

static _Thread_local int is_refused;

void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

void *__wrap_realloc(void *memory, size_t bytes) {
  return is_refused ? NULL : __real_realloc(memory, bytes);
}

static void check_growth(cuplug__use use, int value) {
  cuplug__thread_buffer *own = cuplug__thread_buffer_for(use);
  CHECK(!own->memory && !own->bytes);
  for (size_t bytes = 1; bytes <= N; bytes *= 2) {
    CHECK(cuplug__thread_buffer_grow(own, bytes) && own->bytes == bytes);
    char *memory = own->memory;
    for (size_t k = 0; k < bytes; k++) CHECK(memory[k] == (k < bytes / 2 ? value : 0));
    memset(memory, value, bytes);
  }
}

static void *use_both(void *number) {
  const int value = 2 * (int)(intptr_t)number + 1;
  check_growth(CUPLUG__BUFFER_ROOM, value);
  check_growth(CUPLUG__BUFFER_MATCHES, value + 1);
  is_refused = 1;
  CHECK(!cuplug__thread_buffer_grow(cuplug__thread_buffer_for(CUPLUG__BUFFER_ROOM), 2 * N));
  is_refused = 0;
  CHECK(cuplug__thread_buffer_for(CUPLUG__BUFFER_ROOM)->bytes == N);
  CHECK(*(char *)cuplug__thread_buffer_for(CUPLUG__BUFFER_ROOM)->memory == value);
  return NULL;
}

int main(void) {
  pthread_t threads[8];
  for (intptr_t k = 0; k < 8; k++) CHECK(!pthread_create(&threads[k], NULL, use_both, (void *)k));
  for (int k = 0; k < 8; k++) pthread_join(threads[k], NULL);
  CHECK(!cuplug__thread_buffer_for(CUPLUG__BUFFER_ROOM)->memory);
  return n_failed ? 1 : 0;
}
