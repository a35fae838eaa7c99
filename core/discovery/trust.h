/* SPDX-License-Identifier: Apache-2.0 */
/* The rules for loading: the user's settings, write permissions of a file and each directory of its
 * real path, and the allow-list of SHA-256 digests. */
#ifndef CUPLUG_CORE_DISCOVERY_TRUST_H
#define CUPLUG_CORE_DISCOVERY_TRUST_H

#include <cuplug/host.h>
#include <sys/stat.h>

#define CUPLUG__REFUSED (-2)
#define CUPLUG__MAX_TRUSTED 32
#define CUPLUG__MAX_LISTED_BYTES (1ll << 30)

/* The user's settings, read once for each operation. */
typedef struct cuplug__trust {
  int allow_unsafe; /* CUPLUG_ALLOW_UNSAFE=1: owners are not checked */
  int allow_group;  /* CUPLUG_ALLOW_GROUP=1: groups may write */
  uint32_t n_trusted;
  uid_t trusted[CUPLUG__MAX_TRUSTED]; /* CUPLUG_TRUSTED_OWNERS: as root and this user */
  char *folder;         /* the real one of the last path, checked, with a final "/"; NULL: none */
  int folder_fd;        /* open */
  int in_place;         /* CUPLUG_LOAD_IN_PLACE=1: code is loaded from the files themselves */
  int has_list;         /* CUPLUG_ALLOW_LIST is set: only files on it are accepted */
  char *list;           /* its text; owned */
  const char **digests; /* in it; owned */
  size_t n_digests;
  cuplug_error fault; /* the error of the list; no file is then accepted */
} cuplug__trust;

/* Reads the settings. The only error returned is ERROR_MEMORY. */
int cuplug__trust_start(cuplug__trust *trust, cuplug_error *error);
void cuplug__trust_end(cuplug__trust *trust);

/* ---- Who may write --------------------------------------------------------------------------- */

/* The real folder of the core's own file, "" if it is unknown. */
const char *cuplug__install_directory(void);

/* 1 for a path in the folder of the stock plugins. */
int cuplug__is_stock(const char *path);

/* Rejects an open file or directory at `path` that others may write: anyone, its group, or an owner
 * who is not root, this user, or trusted. `status`: the file's; NULL: it is read. */
int cuplug__owner_check(const cuplug__trust *trust, int fd, const struct stat *status,
                        const char *path, cuplug_error *error);

/* Opens a path if each directory above it passes that check or is sticky, since others cannot
 * replace the contents of a sticky directory. The caller still checks the opened file. -1: errno
 * has the reason; CUPLUG__REFUSED: the reason is in `error`. */
int cuplug__owner_open(cuplug__trust *trust, const char *path, int flags, cuplug_error *error);

/* ---- The allow-list -------------------------------------------------------------------------- */

/* The digest of an open file, which may grow meanwhile, of at most so many bytes. */
int cuplug__digest_file(int fd, int64_t max_bytes, uint8_t digest[32], cuplug_error *error);

/* Refuses a file that is not on the list, if there is one. Reads the whole file. */
int cuplug__trust_check_digest(const cuplug__trust *trust, int fd, cuplug_error *error);

#endif
