/* SPDX-License-Identifier: Apache-2.0 */
/* What threads of the team do while they wait: look at the clock, pause, sleep at a word. */
#ifndef CUPLUG_CORE_HOST_WAIT_H
#define CUPLUG_CORE_HOST_WAIT_H

#include <stdint.h>

int64_t cuplug__now_ns(void);
/* Leaves the CPU's resources to others for some cycles. */
void cuplug__pause(void);

/* Sleeps while the word is 1; may return earlier. This and `wake` leave errno alone. */
void cuplug__sleep(_Atomic uint32_t *word);
/* Wakes the thread that sleeps at the word, if there is one. */
void cuplug__wake(_Atomic uint32_t *word);

#endif
