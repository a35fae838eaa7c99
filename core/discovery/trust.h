/* SPDX-License-Identifier: Apache-2.0 */
/* The rules for loading: the user's settings, and the allow-list of SHA-256 digests. */
#ifndef CUPLUG_CORE_DISCOVERY_TRUST_H
#define CUPLUG_CORE_DISCOVERY_TRUST_H

#include "discovery/permissions.h"

#include <cuplug/host.h>

#define CUPLUG__MAX_LISTED_BYTES (1ll << 30)

/* The user's settings, read once for each operation. */
typedef struct cuplug__trust {
  cuplug__rules rules;    /* of who may write */
  int in_place;           /* CUPLUG_LOAD_IN_PLACE=1: code is loaded from the files themselves */
  int has_list;           /* CUPLUG_ALLOW_LIST is set: only files on it are accepted */
  uint8_t (*digests)[32]; /* owned */
  size_t n_digests;
  cuplug_error fault; /* the error of the list; no file is then accepted */
} cuplug__trust;

/* Reads the settings. The only error returned is ERROR_MEMORY. */
int cuplug__trust_start(cuplug__trust *trust, cuplug_error *error);
void cuplug__trust_end(cuplug__trust *trust);

/* The digest of an open file, which may grow meanwhile, of at most so many bytes. */
int cuplug__digest_file(int fd, int64_t max_bytes, uint8_t digest[32], cuplug_error *error);

/* Refuses a file that is not on the list, if there is one. Reads the whole file. */
int cuplug__trust_check_digest(const cuplug__trust *trust, int fd, cuplug_error *error);

#endif
