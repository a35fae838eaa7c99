/* SPDX-License-Identifier: Apache-2.0 */
/* Large calls of several threads through one GPU, a few at a time: each keeps the bus and the
 * memory of the host busy by itself, and all at once would be in each other's way. */
#ifndef CUPLUG_CORE_STAGING_TURNS_H
#define CUPLUG_CORE_STAGING_TURNS_H

#include "host/watch.h"

/* At once on one GPU: while one begins or ends, another has the bus. */
#define CUPLUG__TURNS 2

/* Waits for a turn on the GPU, some time at most: who has one may wait for this very thread. A
 * thread that has one needs no other. Fails where the watch ends the call; else give it back. */
int cuplug__turn_take(int32_t device, cuplug__watch *watch, cuplug_error *error);
void cuplug__turn_give(int32_t device);

#endif
