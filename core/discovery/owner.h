/* SPDX-License-Identifier: Apache-2.0 */
/* Who may write a file, and each directory of the real path that leads to it. */
#ifndef CUPLUG_CORE_DISCOVERY_OWNER_H
#define CUPLUG_CORE_DISCOVERY_OWNER_H

#include <cuplug/host.h>

#define CUPLUG__REFUSED (-2)

/* What the user allows. */
typedef struct cuplug__rules {
  int allow_unsafe; /* CUPLUG_ALLOW_UNSAFE=1: owners are not looked at */
  int allow_group;  /* CUPLUG_ALLOW_GROUP=1: groups may write */
} cuplug__rules;

/* The real folder that the core's own file lies in, "" where it is not known. */
const char *cuplug__own_folder(void);

/* Refuses an open file or directory that lies at `path` and that others may write: anyone, its
 * group, or an owner who is neither root nor this user. */
int cuplug__owner_check(const cuplug__rules *rules, int fd, const char *path, cuplug_error *error);

/* Opens a path, each component of which must pass that check; directories above may be sticky
 * instead, as others cannot replace what is in them. -1: errno says why; CUPLUG__REFUSED: the
 * reason is in `error`. */
int cuplug__owner_open(const cuplug__rules *rules, const char *path, int flags,
                       cuplug_error *error);

#endif
