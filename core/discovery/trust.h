/* SPDX-License-Identifier: Apache-2.0 */
/* What may be loaded: who may write a file, and the allow-list of SHA-256 digests. */
#ifndef CUPLUG_CORE_DISCOVERY_TRUST_H
#define CUPLUG_CORE_DISCOVERY_TRUST_H

#include <cuplug/host.h>
#include <sys/stat.h>

/* The user's settings, read once for each operation. */
typedef struct cuplug__trust {
  int allow_unsafe;       /* CUPLUG_ALLOW_UNSAFE=1 */
  int has_list;           /* CUPLUG_ALLOW_LIST is set: only files on it are accepted */
  uint8_t (*digests)[32]; /* owned */
  size_t n_digests;
  cuplug_error fault; /* what is wrong with the list; no file is then accepted */
} cuplug__trust;

/* Reads the settings. The only error returned is ERROR_MEMORY. */
int cuplug__trust_start(cuplug__trust *trust, cuplug_error *error);
void cuplug__trust_end(cuplug__trust *trust);

/* Refuses what anyone may write, or what someone other than root or this user owns. */
int cuplug__trust_check_owner(const cuplug__trust *trust, const struct stat *status,
                              cuplug_error *error);
/* Refuses a file that is not on the list, if there is one. Reads the whole file. */
int cuplug__trust_check_digest(const cuplug__trust *trust, int fd, cuplug_error *error);

#endif
