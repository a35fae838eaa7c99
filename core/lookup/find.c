/* SPDX-License-Identifier: Apache-2.0 */
/* Operators by name. Order: what was found before; plugins loaded by path; lib<name>.so in each
 * directory; for an operator without its plugin's name, all plugins in search order. */
#include "base/status.h"
#include "discovery/candidate.h"
#include "discovery/owner.h"
#include "discovery/search.h"
#include "discovery/table.h"
#include "discovery/trust.h"
#include "lookup/listing.h"
#include "lookup/not_found.h"
#include "registry/operator.h"
#include "registry/registry.h"

#include <fcntl.h>
#include <internal/lookup.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One search under way. */
typedef struct finder {
  const cuplug__query *query;
  int is_early;        /* the directories before those of cuplug_add_directory alone, and no scan */
  uint64_t generation; /* of the answers, when it began */
  cuplug__trust trust;
  cuplug__search search;
} finder;

static int parse_query(const char *text, cuplug__query *query, cuplug_error *error) {
  memset(query, 0, sizeof(*query));
  query->text = text ? text : "";
  const char *dot = strchr(query->text, '.');
  const char *op = dot ? dot + 1 : query->text;
  size_t n_plugin = dot ? (size_t)(dot - query->text) : 0;
  if (n_plugin < sizeof(query->plugin) && strlen(op) < sizeof(query->op)) {
    memcpy(query->plugin, query->text, n_plugin);
    strcpy(query->op, op);
  }
  if (cuplug__is_identifier(query->op) && (!dot || cuplug__is_identifier(query->plugin)))
    return CUPLUG_OK;
  return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                      "find: name: \"%.200s\", \"operator\" or \"plugin.operator\" is wanted",
                      query->text);
}

/* Looks among the plugins of cuplug_load. 1: one of them has the name that a file was to have. */
static int find_ranked(const cuplug__query *query, const char *name, cuplug_operator **op) {
  const cuplug__plugin *p = cuplug__registry_ranked_below(UINT64_MAX);
  for (; p; p = cuplug__registry_ranked_below(p->rank)) {
    int is_named = !strcmp(p->table.name, name);
    if (*query->plugin && !is_named) continue;
    *op = cuplug__plugin_operator(p, query->op);
    if (*op || is_named) return 1;
  }
  return 0;
}

static int find_loaded(const cuplug__query *query, const char *name, cuplug_operator **op) {
  cuplug__registry_lock();
  int is_found = find_ranked(query, name, op);
  cuplug__registry_unlock();
  return is_found;
}

static cuplug__plugin *loaded_from(const char *path) {
  cuplug__registry_lock();
  cuplug__plugin *plugin = cuplug__registry_loaded_from(path);
  cuplug__registry_unlock();
  return plugin;
}

/* The plugin of a file, of whose code the process may have an older version. */
static int take_file(int directory, const char *path, const cuplug__trust *trust,
                     cuplug__plugin **plugin, cuplug_error *error) {
  cuplug__candidate candidate;
  *plugin = loaded_from(path);
  if (*plugin) return CUPLUG_OK;
  int status = cuplug__candidate_read(directory, path, trust, NULL, &candidate, error);
  if (!status && directory != AT_FDCWD)
    status = cuplug__check_name(directory, path, candidate.table.name, error);
  if (!status) status = cuplug__check_listed(candidate.fd, trust, error);
  if (!status) {
    cuplug__registry_lock();
    status = cuplug__registry_take(&candidate, path, plugin, error);
    cuplug__registry_unlock();
  }
  cuplug__candidate_end(&candidate);
  return status;
}

/* Finds the plugin lib<name>.so: the first that is accepted. *plugin stays NULL without one. */
static int find_plugin(finder *f, const char *name, cuplug__plugin **plugin, cuplug_error *error) {
  char file_name[CUPLUG_MAX_NAME + sizeof("lib.so")];
  snprintf(file_name, sizeof(file_name), "lib%s.so", name);
  for (size_t k = 0; k < f->search.n_places && !*plugin; k++) {
    const cuplug__place *place = &f->search.places[k];
    char *path;
    if (f->is_early && place->directory.origin >= CUPLUG_ORIGIN_ADDED) break;
    if (place->fd < 0) continue;
    path = cuplug__join(place->directory.path, file_name);
    if (!path) return cuplug__no_memory(error, "finding an operator");
    int status = take_file(place->fd, path, &f->trust, plugin, error);
    free(path);
    if (status == CUPLUG_ERROR_MEMORY) return status;
  }
  return CUPLUG_OK;
}

static int has_operator(const cuplug_file *file, const char *name) {
  for (uint32_t k = 0; k < file->n_rows; k++)
    if (cuplug__row_is_of(&file->rows[k], name)) return 1;
  return 0;
}

/* Registers a file of the listing, which has the operator. */
static int take_listed(finder *f, const cuplug_file *file, cuplug_operator **op,
                       cuplug_error *error) {
  cuplug__plugin *plugin;
  int status = take_file(AT_FDCWD, file->path, &f->trust, &plugin, error);
  *op = status ? NULL : cuplug__plugin_operator(plugin, f->query->op);
  return status;
}

/* Looks at everything: for the operator, or to say what there is instead. */
static int scan(finder *f, cuplug_operator **op, cuplug_error *error) {
  cuplug_listing *listing;
  int status = cuplug__listing_make(&f->search, &f->trust, 1, &listing, error);
  if (status) return status;
  for (size_t k = 0; k < listing->n_files && !*f->query->plugin && !*op && !status; k++) {
    const cuplug_file *file = &listing->files[k];
    if (cuplug__file_counts(file) && has_operator(file, f->query->op))
      status = take_listed(f, file, op, error);
  }
  if (!status && !*op) status = cuplug__fail_not_found(f->query, listing, error);
  cuplug_free_listing(listing);
  return status;
}

static int find_started(finder *f, cuplug_operator **op, cuplug_error *error) {
  const cuplug__query *query = f->query;
  cuplug__plugin *plugin = NULL;
  const char *name = *query->plugin ? query->plugin : query->op;
  if (!find_loaded(query, name, op)) {
    int status = find_plugin(f, name, &plugin, error);
    if (status) return status;
    if (plugin) *op = cuplug__plugin_operator(plugin, query->op);
  }
  if (!*op && f->is_early) return CUPLUG_OK;
  int status = *op ? CUPLUG_OK : scan(f, op, error);
  if (status) return status;
  cuplug__registry_lock();
  status = cuplug__registry_cache(query->text, *op, f->generation, error);
  cuplug__registry_unlock();
  return status;
}

static int find_anew(const cuplug__query *query, int is_early, uint64_t generation,
                     cuplug_operator **op, cuplug_error *error) {
  finder f = {.query = query, .is_early = is_early, .generation = generation};
  int status = cuplug__trust_start(&f.trust, error);
  if (status) return status;
  status = cuplug__registry_search(&f.search, &f.trust, error);
  if (!status) status = find_started(&f, op, error);
  cuplug__search_end(&f.search);
  cuplug__trust_end(&f.trust);
  return status;
}

static int find(const char *name, int is_early, cuplug_operator **op, cuplug_error *error) {
  cuplug__query query;
  *op = NULL;
  cuplug__clear(error);
  int status = parse_query(name, &query, error);
  if (status) return status;
  cuplug__registry_lock();
  *op = cuplug__registry_cached(name);
  const uint64_t generation = cuplug__registry_generation();
  cuplug__registry_unlock();
  if (!*op) status = find_anew(&query, is_early, generation, op, error);
  if (!status)
    cuplug__clear(error);
  else
    *op = NULL;
  return status;
}

int cuplug_find(const char *name, cuplug_operator **op, cuplug_error *error) {
  return find(name, 0, op, error);
}

int cuplug_find_early(const char *name, cuplug_operator **op, cuplug_error *error) {
  return find(name, 1, op, error);
}

cuplug_operator *cuplug_find_loaded(const char *name) {
  cuplug__registry_lock();
  cuplug_operator *op = cuplug__registry_in_use(name);
  cuplug__registry_unlock();
  return op;
}

static int find_in_stock(const cuplug__query *query, cuplug_operator **op, cuplug_error *error) {
  char path[4096 + sizeof("/cuplug/lib.so") + CUPLUG_MAX_NAME];
  cuplug__plugin *plugin;
  cuplug__trust trust;
  snprintf(path, sizeof path, "%s/cuplug/lib%s.so", cuplug__own_folder(), query->plugin);
  int status = cuplug__trust_start(&trust, error);
  if (status) return status;
  status = take_file(AT_FDCWD, path, &trust, &plugin, error);
  if (status && status != CUPLUG_ERROR_MEMORY)
    cuplug__prefix(error, "%s: the stock plugin %s: ", query->text, path);
  cuplug__trust_end(&trust);
  if (status) return status;
  *op = cuplug__plugin_operator(plugin, query->op);
  if (*op) return CUPLUG_OK;
  return cuplug__fail(error, CUPLUG_ERROR_NOT_FOUND, "%s: the stock plugin %s has no such operator",
                      query->text, path);
}

int cuplug_find_stock(const char *name, cuplug_operator **op, cuplug_error *error) {
  cuplug__query query;
  *op = NULL;
  cuplug__clear(error);
  const int status = parse_query(name, &query, error);
  return status ? status : find_in_stock(&query, op, error);
}
