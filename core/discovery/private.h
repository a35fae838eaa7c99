/* SPDX-License-Identifier: Apache-2.0 */
/* The libraries that a plugin finds by its own RPATH or RUNPATH, or by that of one of them. */
#ifndef CUPLUG_CORE_DISCOVERY_PRIVATE_H
#define CUPLUG_CORE_DISCOVERY_PRIVATE_H

#include <cuplug/host.h>
#include <sys/types.h>

/* A file that the dynamic linker would load for a plugin, if it did not have that name yet. */
typedef struct cuplug__private {
  char *needed; /* the name that it is looked for by; owned */
  char *soname; /* in the file; NULL: none; owned */
  char *path;   /* owned */
  dev_t device;
  ino_t inode;
} cuplug__private;

typedef struct cuplug__privates {
  cuplug__private *files; /* owned */
  size_t n_files;
} cuplug__privates;

/* Finds them for an open plugin at an absolute path. To be ended, also after an error,
 * ERROR_PLUGIN: one of them needs an executable stack. */
int cuplug__privates_find(int fd, const char *path, cuplug__privates *found, cuplug_error *error);
void cuplug__privates_end(cuplug__privates *found);

/* 1 if two of them go by one name and are not the same file. */
int cuplug__privates_rival(const cuplug__private *a, const cuplug__private *b);
/* 1 if the content of such two differs, or one has replaced the other. Reads both. */
int cuplug__privates_differ(const cuplug__private *a, const cuplug__private *b);

#endif
