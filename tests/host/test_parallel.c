/* sanitizers: address,undefined */
/* SPDX-License-Identifier: Apache-2.0 */
/* A loop of one range or none is a plain call, which needs no thread and no service. */
#include "check.h"

#include <cuplug/plugin.h>

static int64_t n_seen;

static int count(void *context, int64_t begin, int64_t end) {
  n_seen += end - begin;
  return *(const int *)context;
}

int main(void) {
  const cuplug_call call = {.struct_bytes = sizeof call};
  int status = CUPLUG_OK;
  CHECK(!cuplug_parallel(&call, 7, 7, count, &status) && n_seen == 7);
  CHECK(!cuplug_parallel(&call, 1, 7, count, &status) && n_seen == 8);
  CHECK(!cuplug_parallel(&call, 0, 7, count, &status) && n_seen == 8);
  status = CUPLUG_ERROR_VALUE;
  CHECK(cuplug_parallel(&call, 7, 7, count, &status) == CUPLUG_ERROR_VALUE);
  return n_failed != 0;
}
