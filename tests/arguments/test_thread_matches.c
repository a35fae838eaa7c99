/* sanitizers: address,undefined | thread */
/* ldflags: -Wl,--wrap=calloc */
/* SPDX-License-Identifier: Apache-2.0 */
/* Each thread has its own matches, which are freed when it ends: the sanitizer reports if they are
 * not. A thread without memory for them binds like others. */
#include "arguments/match_cache.h"
#include "bound_calls.h"

#include <pthread.h>

#define N_THREADS 8

static _Thread_local int is_refused;

void *__real_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);

void *__wrap_calloc(size_t n, size_t bytes) { return is_refused ? NULL : __real_calloc(n, bytes); }

static cuplug__known_all *bind_twice(void) {
  cuplug_frame own;
  cuplug_error why;
  cuplug_argument x = ARRAY(FLOAT32, SIZES(3, 4));
  for (int k = 0; k < 2; k++) {
    CHECK(!cuplug_bind(&op, &x, 1, &own, &why));
    CHECK(own.n_tensors == 2 && own.tensors[1].shape[0] == 4);
  }
  return cuplug__own_matches;
}

static cuplug__known_all *found[N_THREADS];

static void *bind_in_thread(void *number) {
  CHECK(!cuplug__own_matches);
  is_refused = 1;
  CHECK(!bind_twice());
  is_refused = 0;
  found[(intptr_t)number] = bind_twice();
  CHECK(found[(intptr_t)number]->last[op.number]->number == op.number);
  return NULL;
}

int main(void) {
  pthread_t threads[N_THREADS];
  use("f(x: T[m, n]) -> T[n] where T: any", NULL, 0);
  op.number = 1;
  cuplug__known_all *own = bind_twice();
  for (intptr_t k = 0; k < N_THREADS; k++)
    CHECK(!pthread_create(&threads[k], NULL, bind_in_thread, (void *)k));
  for (int k = 0; k < N_THREADS; k++) pthread_join(threads[k], NULL);
  for (int k = 0; k < N_THREADS; k++) CHECK(found[k] && found[k] != own);
  CHECK(cuplug__own_matches == own && bind_twice() == own);
  cuplug_free_signature(rows[0].parsed);
  return n_failed ? 1 : 0;
}
