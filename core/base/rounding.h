/* SPDX-License-Identifier: Apache-2.0 */
/* How a thread computes with floating-point numbers: rounding, subnormal numbers, traps. Code of
 * plugins may change it, which would change the results of everything that the thread does later.
 * The flags of exceptions that have occurred are not part of it. */
#ifndef CUPLUG_CORE_BASE_ROUNDING_H
#define CUPLUG_CORE_BASE_ROUNDING_H

#include <stdint.h>

#if defined(__x86_64__)
#define CUPLUG__OCCURRED 0x3fu /* of MXCSR */

typedef struct cuplug__rounding {
  uint32_t sse;
  uint16_t x87; /* of long double */
} cuplug__rounding;

static inline cuplug__rounding cuplug__rounding_read(void) {
  cuplug__rounding now;
  __asm__ volatile("stmxcsr %0" : "=m"(now.sse));
  __asm__ volatile("fnstcw %0" : "=m"(now.x87));
  return now;
}

static inline int cuplug__rounding_equal(cuplug__rounding a, cuplug__rounding b) {
  return !((a.sse ^ b.sse) & ~CUPLUG__OCCURRED) && a.x87 == b.x87;
}

/* Without the flags: one that has occurred would trap if its trap is set. */
static inline void cuplug__rounding_write(cuplug__rounding wanted) {
  const uint32_t sse = wanted.sse & ~CUPLUG__OCCURRED;
  __asm__ volatile("fnclex\n\tfldcw %0" : : "m"(wanted.x87));
  __asm__ volatile("ldmxcsr %0" : : "m"(sse));
}
#elif defined(__aarch64__)
typedef struct cuplug__rounding {
  uint64_t fpcr;
} cuplug__rounding;

static inline cuplug__rounding cuplug__rounding_read(void) {
  cuplug__rounding now;
  __asm__ volatile("mrs %0, fpcr" : "=r"(now.fpcr));
  return now;
}

static inline int cuplug__rounding_equal(cuplug__rounding a, cuplug__rounding b) {
  return a.fpcr == b.fpcr;
}

static inline void cuplug__rounding_write(cuplug__rounding wanted) {
  __asm__ volatile("msr fpcr, %0" : : "r"(wanted.fpcr));
}
#else /* unknown architecture: nothing is restored */
typedef struct cuplug__rounding {
  uint32_t unknown;
} cuplug__rounding;

static inline cuplug__rounding cuplug__rounding_read(void) { return (cuplug__rounding){0}; }

static inline int cuplug__rounding_equal(cuplug__rounding a, cuplug__rounding b) {
  return a.unknown == b.unknown;
}

static inline void cuplug__rounding_write(cuplug__rounding wanted) { (void)wanted; }
#endif

/* Restores how the thread computes. Returns 1 if it had changed. */
static inline int cuplug__rounding_restore(cuplug__rounding before) {
  const int is_changed = !cuplug__rounding_equal(before, cuplug__rounding_read());
  if (__builtin_expect(is_changed, 0)) cuplug__rounding_write(before);
  return is_changed;
}

/* Counts code that returned with another state, for `cuplug test`. */
void cuplug__rounding_note_change(void);

static inline void cuplug__rounding_undo(const cuplug__rounding *before) {
  if (cuplug__rounding_restore(*before)) cuplug__rounding_note_change();
}

/* Declares the state that is restored at the end of the block, around code of plugins:
 *     CUPLUG__ROUNDING before = cuplug__rounding_read();
 */
#define CUPLUG__ROUNDING \
  __attribute__((unused, cleanup(cuplug__rounding_undo))) const cuplug__rounding

#endif
