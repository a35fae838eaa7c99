/* SPDX-License-Identifier: Apache-2.0 */
/* Environment and defaults -> ordered, checked directories -> names of candidate files. */
#ifndef CUPLUG_CORE_DISCOVERY_SEARCH_H
#define CUPLUG_CORE_DISCOVERY_SEARCH_H

#include "discovery/trust.h"

#include <cuplug/host.h>
#include <sys/types.h>

struct cuplug_directory {
  char *path;
  char *reason; /* the reason that it is not used; NULL if it is */
  int32_t origin;
  int32_t state; /* OK, MISSING, REJECTED or DUPLICATE */
};

/* A directory of the search path; its fd is open while its state is OK. */
typedef struct cuplug__search_directory {
  cuplug_directory directory; /* strings owned */
  int fd;
  dev_t device;
  ino_t inode;
} cuplug__search_directory;

typedef struct cuplug__search {
  cuplug__search_directory *places; /* in search order; owned */
  size_t n_places;
  cuplug__trust trust;
} cuplug__search;

/* A directory of cuplug_add_directory. */
typedef struct cuplug__added {
  struct cuplug__added *_Atomic next;
  char path[];
} cuplug__added;

/* Reads the settings, and collects and checks the directories. To be ended, also after an error.
 * The only error is ERROR_MEMORY. */
int cuplug__search_start(cuplug__search *search, const cuplug__added *added, cuplug_error *error);
void cuplug__search_end(cuplug__search *search);
void cuplug__search_free_places(cuplug__search_directory *places, size_t n_places);

/* The names lib*.so in a directory, in bytewise order, for cuplug__search_free_names. On an error
 * they are freed; ERROR_PLUGIN: it cannot be read. */
int cuplug__search_names(const cuplug__search_directory *place, char ***names, size_t *n_names,
                         cuplug_error *error);
void cuplug__search_free_names(char **names, size_t n_names);

/* directory/name, to be freed; NULL when memory ran out. */
char *cuplug__join(const char *directory, const char *name);

/* A hash of the variables that determine the search. */
uint64_t cuplug__search_fingerprint(void);

#endif
