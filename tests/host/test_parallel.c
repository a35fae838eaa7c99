/* sanitizers: address,undefined */
/* SPDX-License-Identifier: Apache-2.0 */
/* cuplug_parallel and cuplug_n_threads of a plugin whose host has no such services. */
#include "check.h"

#include <cuplug/plugin.h>

#define N 1000
#define GRAIN 7

static int seen[N];

static cuplug_service *no_service(const char *name, uint32_t version) {
  CHECK((!strcmp(name, "parallel") || !strcmp(name, "threads")) && version == 1);
  return NULL;
}

/* Fails at an item that begins a range. */
static int count(void *context, int64_t begin, int64_t end) {
  CHECK(begin % GRAIN == 0 && (end - begin == GRAIN || end == N));
  for (int64_t i = begin; i < end; i++) seen[i]++;
  return begin == *(const int64_t *)context ? CUPLUG_ERROR_VALUE : CUPLUG_OK;
}

int main(void) {
  const cuplug_call call = {.struct_bytes = sizeof call, .service = no_service};
  int64_t bad = -1;
  CHECK(!cuplug_parallel(&call, N, GRAIN, count, &bad));
  for (int i = 0; i < N; i++) CHECK(seen[i] == 1);
  bad = 14;
  CHECK(cuplug_parallel(&call, N, GRAIN, count, &bad) == CUPLUG_ERROR_VALUE);
  for (int i = 0; i < N; i++) CHECK(seen[i] == 1 + (i < 21));
  CHECK(!cuplug_parallel(&call, GRAIN, GRAIN, count, &bad)); /* asks for no service */
  CHECK(!cuplug_parallel(&call, 0, GRAIN, count, &bad));
  CHECK(seen[0] == 3 && seen[7] == 2);
  CHECK(cuplug_n_threads(&call) == 1);
  return n_failed != 0;
}
