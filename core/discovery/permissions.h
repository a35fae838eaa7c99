/* SPDX-License-Identifier: Apache-2.0 */
/* Who may write a file, and each directory of the real path that leads to it. */
#ifndef CUPLUG_CORE_DISCOVERY_PERMISSIONS_H
#define CUPLUG_CORE_DISCOVERY_PERMISSIONS_H

#include <cuplug/host.h>
#include <sys/stat.h>

#define CUPLUG__REFUSED (-2)
#define CUPLUG__MAX_TRUSTED 32

/* The user's permissions. */
typedef struct cuplug__rules {
  int allow_unsafe; /* CUPLUG_ALLOW_UNSAFE=1: owners are not looked at */
  int allow_group;  /* CUPLUG_ALLOW_GROUP=1: groups may write */
  uint32_t n_trusted;
  uid_t trusted[CUPLUG__MAX_TRUSTED]; /* CUPLUG_TRUSTED_OWNERS: as root and this user */
} cuplug__rules;

/* Reads names and numbers of users, separated by ":"; unknown ones are skipped. NULL: none. */
void cuplug__rules_trust(cuplug__rules *rules, const char *owners);

/* The real folder of the core's own file, "" if it is unknown. */
const char *cuplug__install_directory(void);

/* 1 for a path in the folder of the stock plugins. */
int cuplug__is_stock(const char *path);

/* Rejects an open file or directory at `path` that others may write: anyone, its group, or an owner
 * who is not root, this user, or trusted. */
int cuplug__owner_check(const cuplug__rules *rules, int fd, const char *path, cuplug_error *error);
/* The same, of an open file whose status is known. */
int cuplug__owner_check_status(const cuplug__rules *rules, int fd, const struct stat *status,
                               const char *path, cuplug_error *error);

/* Opens a path if each directory above it passes that check or is sticky, since others cannot
 * replace the contents of a sticky directory. The caller still checks the opened file. -1: errno
 * has the reason; CUPLUG__REFUSED: the reason is in `error`. */
int cuplug__owner_open(const cuplug__rules *rules, const char *path, int flags,
                       cuplug_error *error);

/* A folder that links led to, checked and kept open: most other links lead to it. All zero
 * initially. */
typedef struct cuplug__folder {
  char *path; /* as links have it; NULL: none */
  int fd;
} cuplug__folder;

/* Opens the target of a link in an open directory, at `path`, by the same rules. -1 without a
 * reason: the caller uses owner_open. */
int cuplug__owner_open_link(const cuplug__rules *rules, int directory, const char *path, int flags,
                            cuplug__folder *kept);
void cuplug__folder_end(cuplug__folder *kept);

#endif
