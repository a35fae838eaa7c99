/* SPDX-License-Identifier: Apache-2.0 */
/* What a program under callgrind asks of it: to begin counting, and to write what it counted. */
#include <valgrind/callgrind.h>

void begin(void) {
  CALLGRIND_START_INSTRUMENTATION;
  CALLGRIND_ZERO_STATS;
}

void end(const char *name) {
  CALLGRIND_DUMP_STATS_AT(name);
  CALLGRIND_STOP_INSTRUMENTATION;
}
