/* SPDX-License-Identifier: Apache-2.0 */
/* Elements moved between places at equal distances. */
#ifndef CUPLUG_CORE_HOST_MOVE_H
#define CUPLUG_CORE_HOST_MOVE_H

#include <stdint.h>

/* Copies n elements of `bytes` bytes to other memory. Steps are in bytes; a from_step of 0 repeats
 * one element. */
void cuplug__move(void *to, int64_t to_step, const void *from, int64_t from_step, int64_t n,
                  int64_t bytes);

#endif
