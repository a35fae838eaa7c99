/* SPDX-License-Identifier: Apache-2.0 */
/* One file that may be a plugin: opened, checked and read. */
#ifndef CUPLUG_CORE_DISCOVERY_CANDIDATE_H
#define CUPLUG_CORE_DISCOVERY_CANDIDATE_H

#include "discovery/table.h"
#include "discovery/trust.h"

#include <sys/types.h>
#include <time.h>

/* The fields that distinguish versions of a file. */
typedef struct cuplug__identity {
  dev_t device;
  ino_t inode;
  off_t bytes;
  struct timespec modified;
} cuplug__identity;

int cuplug__identity_equal(const cuplug__identity *a, const cuplug__identity *b);
/* From device and inode only: the same for all versions that were written in place. */
uint64_t cuplug__identity_hash(const cuplug__identity *identity);
/* The identity of the file at a path, with AT_FDCWD, or of an open file, with "". 0: none exists.
 */
int cuplug__identity_of(int fd, const char *path, cuplug__identity *identity);

typedef struct cuplug__candidate {
  int fd; /* -1: it was not opened */
  cuplug__identity identity;
  cuplug__table table; /* owned; contains all that could be read, also after an error */
} cuplug__candidate;

/* Opens and reads the file at `path`, relative to an open directory, or any path with AT_FDCWD.
 * ERROR_NOT_FOUND: no such file exists; ERROR_PLUGIN: the reason for its rejection. Messages do not
 * name the file. The caller ends it, also after an error. */
int cuplug__candidate_read(int directory, const char *path, cuplug__trust *trust,
                           cuplug__candidate *candidate, cuplug_error *error);
/* Reads the settings and the file at a path, with all checks. Messages name the file. To be ended,
 * also after an error. */
int cuplug__candidate_accept(const char *path, cuplug__candidate *candidate, cuplug_error *error);
void cuplug__candidate_end(cuplug__candidate *candidate);

/* If there is an allow-list, checks that the open file is on it and that none of its dependencies
 * is searched for in its own directories. Reads the whole file: call it last. */
int cuplug__check_listed(int fd, const cuplug__trust *trust, cuplug_error *error);

/* Opens a regular file with an owner that the rules allow. Returns as cuplug__candidate_read does;
 * the caller closes *fd if it is not below 0. */
int cuplug__open_file(const char *path, cuplug__trust *trust, int *fd, cuplug__identity *identity,
                      cuplug_error *error);

#endif
