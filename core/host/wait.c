/* SPDX-License-Identifier: Apache-2.0 */
#include "host/wait.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int64_t cuplug__now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

void cuplug__pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static void futex(_Atomic uint32_t *word, int operation) {
  const int kept = errno;
  syscall(SYS_futex, word, operation, 1, NULL, NULL, 0);
  errno = kept;
}

void cuplug__sleep(_Atomic uint32_t *word) { futex(word, FUTEX_WAIT_PRIVATE); }
void cuplug__wake(_Atomic uint32_t *word) { futex(word, FUTEX_WAKE_PRIVATE); }
