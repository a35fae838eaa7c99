/* SPDX-License-Identifier: Apache-2.0 */
/* Where a library says that its dependencies are, read from its file. */
#ifndef CUPLUG_CORE_DISCOVERY_DYNAMIC_H
#define CUPLUG_CORE_DISCOVERY_DYNAMIC_H

#define CUPLUG__HAS_PATHS 1
#define CUPLUG__HAS_ORIGIN 2 /* such places are relative to the folder that it is loaded from */

/* Whether an open shared object names places for its dependencies: RPATH, RUNPATH, or paths. 0 also
 * for a file that is none. */
int cuplug__dynamic_places(int fd);

/* 1 when a shared object needs an executable stack, which its flags say, or the lack of them. */
int cuplug__dynamic_needs_stack(int fd);

/* A text of the dynamic section, by its tag: DT_NEEDED, DT_SONAME, DT_RPATH or DT_RUNPATH. */
typedef void cuplug__visit_text(long tag, const char *text, void *data);

/* Shows these texts of an open shared object in their order, but those of 4 KiB and more; none of a
 * file that is no shared object. */
void cuplug__dynamic_visit(int fd, cuplug__visit_text *visit, void *data);

#endif
