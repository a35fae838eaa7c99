/* SPDX-License-Identifier: Apache-2.0 */
/* Listings, for the public functions and for the search of names. */
#ifndef CUPLUG_CORE_REGISTRY_LISTING_H
#define CUPLUG_CORE_REGISTRY_LISTING_H

#include "discovery/candidate.h"
#include "discovery/search.h"
#include "discovery/table.h"
#include "discovery/trust.h"

struct cuplug_file {
  char *path;
  char *reason; /* NULL for CUPLUG_STATE_OK */
  int32_t state;
  int32_t origin;
  int32_t loaded;      /* 1: its code is in the process */
  int32_t is_borrowed; /* 1: the table belongs to a loaded plugin */
  uint32_t next[2];    /* the file before it with the same hash of that key, from 1 on; 0: none */
  cuplug__identity identity;
  cuplug__table table; /* without parsed signatures, unless borrowed */
};

struct cuplug_listing {
  cuplug__search_directory *places; /* owned */
  size_t n_places;
  cuplug_file *files;
  size_t n_files;
};

/* Lists a search path and, with `with_files`, its files. Takes ownership of the search's strings.
 */
int cuplug__listing_make(cuplug__search *search, int with_files, cuplug_listing **listing,
                         cuplug_error *error);

/* 1 for a file whose operators can be found: not shadowed, rejected or a duplicate. */
int cuplug__file_counts(const cuplug_file *file);

/* 1 if the readable part of a file's table has an operator of that name. */
int cuplug__file_has(const cuplug_file *file, const char *op);

#endif
