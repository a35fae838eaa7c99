/* SPDX-License-Identifier: Apache-2.0 */
/* The ways in which threads of the pool wait: read the clock, pause, sleep on a word. */
#ifndef CUPLUG_CORE_HOST_WAIT_H
#define CUPLUG_CORE_HOST_WAIT_H

#include <stdint.h>

int64_t cuplug__now_ns(void);
/* Leaves the CPU's resources to others for some cycles. */
void cuplug__pause(void);

/* Sleeps while the word is 1; may return earlier. This and `wake` do not change errno. */
void cuplug__sleep(_Atomic uint32_t *word);
/* Wakes the thread that sleeps at the word, if there is one. */
void cuplug__wake(_Atomic uint32_t *word);

#endif
