/* SPDX-License-Identifier: Apache-2.0 */
/* A program's requests to callgrind: to start counting, and to write the counts. */
#include <valgrind/callgrind.h>

void begin(void) {
  CALLGRIND_START_INSTRUMENTATION;
  CALLGRIND_ZERO_STATS;
}

void end(const char *name) {
  CALLGRIND_DUMP_STATS_AT(name);
  CALLGRIND_STOP_INSTRUMENTATION;
}
