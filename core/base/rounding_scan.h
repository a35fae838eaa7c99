/* SPDX-License-Identifier: Apache-2.0 */
/* Whether code can change how its thread computes. */
#ifndef CUPLUG_CORE_BASE_ROUNDING_SCAN_H
#define CUPLUG_CORE_BASE_ROUNDING_SCAN_H

/* 1 if no code of a loaded library can change it: there is no instruction that does, and it calls
 * functions of the C and C++ libraries alone, none of which does. Reading the register takes 5 ns
 * on some CPUs, which calls of such libraries are spared. */
int cuplug__rounding_is_kept(void *library);

#endif
