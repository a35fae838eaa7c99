/* SPDX-License-Identifier: Apache-2.0 */
/* Listings, for the public functions and for the search of names. Wants the registry's lock. */
#ifndef CUPLUG_CORE_LOOKUP_LISTING_H
#define CUPLUG_CORE_LOOKUP_LISTING_H

#include "discovery/search.h"
#include "discovery/trust.h"

/* Lists a search path and, with `with_files`, its files. Takes the search's strings over. */
int cuplug__listing_make(cuplug__search *search, const cuplug__trust *trust, int with_files,
                         cuplug_listing **listing, cuplug_error *error);

/* 1 for a file whose operators can be found: not shadowed, rejected or a duplicate. */
int cuplug__file_counts(const cuplug_file *file);

#endif
