/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of an entry on the threads of the host. Part of <cuplug/plugin.h>. */
#ifndef CUPLUG_PARALLEL_H
#define CUPLUG_PARALLEL_H

#include <cuplug/plugin.h>

CUPLUG__BEGIN_C

/** Items `begin` to `end` - 1 of a loop. Returns CUPLUG_OK, or what cuplug_fail returned: ranges
 * that have not begun are then left out. */
typedef int cuplug_body(void *context, int64_t begin, int64_t end);
typedef int cuplug_parallel_service(const cuplug_call *call, int64_t n, int64_t grain,
                                    cuplug_body *body, void *context);

/** Calls body(context, begin, end) for items 0 to n - 1 in ranges of `grain`, the last one shorter,
 * on this thread and on others of the host's. Which ranges there are does not depend on the number
 * of threads, the order in which they run does. A grain is worth a thread from some 10 microseconds
 * on; `n <= grain` is one plain call. A body may fail (cuplug_fail) and may loop in parallel
 * itself; it asks for no workspace or output. Returns CUPLUG_OK or what a body returned.
 * [thread-safe] */
CUPLUG__MUST_USE static inline int cuplug_parallel(const cuplug_call *call, int64_t n,
                                                   int64_t grain, cuplug_body *body,
                                                   void *context) {
  cuplug_parallel_service *parallel = n > grain ? CUPLUG__SERVICE(call, parallel) : NULL;
  int status = CUPLUG_OK;
  if (parallel) return parallel(call, n, grain, body, context);
  for (int64_t begin = 0; begin < n && !status; begin += grain)
    status = body(context, begin, n - begin < grain ? n : begin + grain);
  return status;
}

typedef int cuplug_threads_service(const cuplug_call *call);

/** How many threads such a loop runs on at most, this one included: to choose between ways whose
 * results are the same. 1 where the host does not say. */
static inline int cuplug_n_threads(const cuplug_call *call) {
  cuplug_threads_service *threads = CUPLUG__SERVICE(call, threads);
  return threads ? threads(call) : 1;
}

CUPLUG__END_C

#endif
