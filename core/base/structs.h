/* SPDX-License-Identifier: Apache-2.0 */
/* Structures of the host API that may grow: they begin with `uint32_t struct_bytes`, their size as
 * the program that was compiled with them knows it. */
#ifndef CUPLUG_CORE_BASE_STRUCTS_H
#define CUPLUG_CORE_BASE_STRUCTS_H

#include <cuplug/host.h>

/* Copies `from`, of `bytes` bytes, to what a program wants filled: no further than that goes, and
 * says how far. `first_bytes`: the size in the first version of the library. ERROR_VALUE names the
 * structure where it has not said its size. */
int cuplug__struct_give(void *to, const void *from, uint32_t bytes, uint32_t first_bytes,
                        const char *name, cuplug_error *error);

/* Copies what a program has filled to `to`; fields that it does not know are 0. ERROR_VALUE also
 * where it has set one that this library does not know. */
int cuplug__struct_take(void *to, uint32_t bytes, uint32_t first_bytes, const void *from,
                        const char *name, cuplug_error *error);

#endif
