/* SPDX-License-Identifier: Apache-2.0 */
/* One file that may be a plugin: opened, checked and read. */
#ifndef CUPLUG_CORE_DISCOVERY_CANDIDATE_H
#define CUPLUG_CORE_DISCOVERY_CANDIDATE_H

#include "discovery/table.h"
#include "discovery/trust.h"

#include <time.h>

/* What tells one version of a file from another. */
typedef struct cuplug__identity {
  dev_t device;
  ino_t inode;
  off_t bytes;
  struct timespec modified;
} cuplug__identity;

int cuplug__identity_equal(const cuplug__identity *a, const cuplug__identity *b);
/* The identity of the file at a path. 0 when there is none. */
int cuplug__identity_of(const char *path, cuplug__identity *identity);

typedef struct cuplug__candidate {
  cuplug__identity identity;
  cuplug__table table; /* owned; says what could be read, also after an error */
} cuplug__candidate;

/* Reads file `name` in an open directory (or a path, with AT_FDCWD). ERROR_NOT_FOUND: there is no
 * such file; ERROR_PLUGIN: the reason for its rejection. Messages do not name the file. To be
 * ended, also after an error. */
int cuplug__candidate_read(int directory, const char *name, const cuplug__trust *trust,
                           cuplug__candidate *candidate, cuplug_error *error);
void cuplug__candidate_end(cuplug__candidate *candidate);

/* Checks that a file in a searched directory is called as the plugin in it. */
int cuplug__candidate_check_name(int directory, const char *name,
                                 const cuplug__candidate *candidate, cuplug_error *error);

#endif
