/* SPDX-License-Identifier: Apache-2.0 */
/* Where a library says that its dependencies are, read from its file. */
#ifndef CUPLUG_CORE_DISCOVERY_DYNAMIC_H
#define CUPLUG_CORE_DISCOVERY_DYNAMIC_H

/* 1 when an open shared object names places for its dependencies: RPATH, RUNPATH, or paths. 0 also
 * for a file that is none. */
int cuplug__dynamic_has_paths(int fd);

/* 1 when it names such places relative to the folder that it is loaded from: $ORIGIN. */
int cuplug__dynamic_has_origin(int fd);

#endif
