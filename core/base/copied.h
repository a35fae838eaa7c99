/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries that are loaded from copies in memory, and the names that they have there. */
#ifndef CUPLUG_CORE_BASE_COPIED_H
#define CUPLUG_CORE_BASE_COPIED_H

#include <sys/types.h>

/* 1 if copies have names that the dynamic linker can open. */
int cuplug__copy_is_possible(void);

/* Copies the first bytes of an open file to memory that nobody can write any more; `name` is shown
 * in /proc/self/maps. Returns a descriptor, or -1 with errno. */
int cuplug__copy_to_memory(const char *name, int fd, off_t bytes);

/* Returns a path of a copy, to be freed, that the dynamic linker has not seen before; NULL without
 * memory. It leads to the copy in this process and in debuggers while the descriptor is open. */
char *cuplug__copy_path(int copy);

/* Returns another spelling of an absolute path, to be freed, that the dynamic linker has not seen
 * before: it takes a name that it knows for the library that it has. NULL without memory. */
char *cuplug__respell(const char *path);

#endif
