/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the Python package for files that are not plugins. Not installed. */
#ifndef CUPLUG_INTERNAL_FILES_H
#define CUPLUG_INTERNAL_FILES_H

#include <cuplug/host.h>

CUPLUG__BEGIN_C

/* Checks whether others may write the file at a path, by the rules for directories of plugins; for
 * the cache. ERROR_PLUGIN: the reason; ERROR_NOT_FOUND: there is no file. [thread-safe]
 * [no-cuda] */
int cuplug_check_owner(const char *path, cuplug_error *error);

/* Loads a library that is not a plugin, never closed; the thread's rounding is unchanged. Returns
 * the handle of dlopen, or NULL. [thread-safe] [no-cuda] */
void *cuplug_open_library(const char *path, cuplug_error *error);

CUPLUG__END_C
#endif
