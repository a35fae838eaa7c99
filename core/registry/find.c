/* SPDX-License-Identifier: Apache-2.0 */
/* Operators by name. Order: plugins loaded by path; the earlier result for the name; lib<name>.so
 * in each directory; for an operator without its plugin's name, all plugins in search order. */
#include "base/status.h"
#include "discovery/candidate.h"
#include "discovery/permissions.h"
#include "discovery/search.h"
#include "discovery/table.h"
#include "discovery/trust.h"
#include "registry/listing.h"
#include "registry/not_found.h"
#include "registry/registry.h"

#include <fcntl.h>
#include <internal/lookup.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One search under way. */
typedef struct finder {
  const cuplug__operator_name_query *query;
  const char *name; /* of the plugin that is searched first */
  int is_early;     /* only the directories before those of cuplug_add_directory, and no scan */
  uint64_t moment;  /* when it began */
  cuplug__search search;
} finder;

static int is_query(const char *text, cuplug__operator_name_query *query) {
  query->text = text ? text : "";
  const char *dot = strchr(query->text, '.');
  const char *op = dot ? dot + 1 : query->text;
  const size_t n_plugin = dot ? (size_t)(dot - query->text) : 0, n_op = strlen(op);
  if (n_plugin >= sizeof query->plugin || n_op >= sizeof query->op) return 0;
  memcpy(query->plugin, query->text, n_plugin);
  query->plugin[n_plugin] = 0;
  memcpy(query->op, op, n_op + 1);
  return cuplug__is_identifier(query->op) && (!dot || cuplug__is_identifier(query->plugin));
}

static int parse(const char *text, cuplug__operator_name_query *query, cuplug_error *error) {
  cuplug__clear(error);
  if (is_query(text, query)) return CUPLUG_OK;
  return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                      "find: name: got \"%.200s\", expected \"operator\" or \"plugin.operator\"",
                      query->text);
}

/* The earlier result, if it is still valid. */
static cuplug_operator *recall(const cuplug__operator_name_query *query, uint64_t moment,
                               int loaded_only) {
  if (!*query->plugin) return cuplug__registry_found(query->op, moment, loaded_only);
  const cuplug__plugin *p = cuplug__registry_named(query->plugin, moment, loaded_only);
  return p ? cuplug__plugin_operator(p, query->op) : NULL;
}

/* Looks among the plugins of cuplug_load, then for the one that the name led to before. */
static cuplug__plugin *find_known(const finder *f) {
  const char *op = *f->query->plugin ? NULL : f->query->op;
  cuplug__plugin *plugin = cuplug__registry_first_ranked(f->name, op);
  return plugin ? plugin : cuplug__registry_named(f->name, f->moment, 0);
}

/* The plugin of a file, of whose code the process may have an older version. */
static int take_file(int directory, const char *path, const cuplug__trust *trust,
                     cuplug__plugin **plugin, cuplug_error *error) {
  cuplug__candidate candidate;
  *plugin = cuplug__registry_loaded_from(path);
  if (*plugin) return CUPLUG_OK;
  int status = cuplug__candidate_read(directory, path, trust, NULL, &candidate, error);
  if (!status) status = cuplug__check_listed(candidate.fd, trust, error);
  if (!status) {
    cuplug__registry_lock();
    status = cuplug__registry_take(&candidate, path, plugin, error);
    cuplug__registry_unlock();
  }
  cuplug__candidate_end(&candidate);
  return status;
}

/* Finds the first accepted plugin lib<name>.so. *plugin stays NULL if there is none. */
static int find_plugin(finder *f, cuplug__plugin **plugin, cuplug_error *error) {
  char file_name[CUPLUG_MAX_NAME + sizeof("lib.so")];
  snprintf(file_name, sizeof(file_name), "lib%s.so", f->name);
  for (size_t k = 0; k < f->search.n_places && !*plugin; k++) {
    const cuplug__search_directory *place = &f->search.places[k];
    if (f->is_early && place->directory.origin >= CUPLUG_ORIGIN_ADDED) break;
    if (place->fd < 0) continue;
    char *path = cuplug__join(place->directory.path, file_name);
    if (!path) return cuplug__no_memory(error, "finding an operator");
    int status = take_file(place->fd, path, &f->search.trust, plugin, error);
    free(path);
    if (status == CUPLUG_ERROR_MEMORY) return status;
    if (*plugin && strcmp((*plugin)->table.name, f->name) != 0) *plugin = NULL;
  }
  return CUPLUG_OK;
}

/* Reads all files: for the operator, or for the alternatives in the message. */
static int scan(finder *f, cuplug_operator **op, cuplug_error *error) {
  cuplug_listing *listing;
  cuplug__plugin *plugin;
  int status = cuplug__listing_make(&f->search, 1, &listing, error);
  if (status) return status;
  for (size_t k = 0; k < listing->n_files && !*f->query->plugin && !*op && !status; k++) {
    const cuplug_file *file = &listing->files[k];
    if (!cuplug__file_counts(file) || !cuplug__file_has(file, f->query->op)) continue;
    status = take_file(AT_FDCWD, file->path, &f->search.trust, &plugin, error);
    if (!status) *op = cuplug__plugin_operator(plugin, f->query->op);
  }
  if (!status && !*op) status = cuplug__fail_not_found(f->query, listing, error);
  cuplug_free_listing(listing);
  return status;
}

static int find_in_files(finder *f, cuplug__plugin **plugin, cuplug_operator **op,
                         cuplug_error *error) {
  int status = cuplug__search_start(&f->search, cuplug__registry_added(), error);
  if (!status && !*plugin) status = find_plugin(f, plugin, error);
  if (!status && *plugin) *op = cuplug__plugin_operator(*plugin, f->query->op);
  if (!status && !*op && !f->is_early) status = scan(f, op, error);
  cuplug__search_end(&f->search);
  return status;
}

static int find_uncached(const cuplug__operator_name_query *query, uint64_t moment, int is_early,
                         cuplug_operator **op, cuplug_error *error) {
  finder f = {.query = query, .is_early = is_early, .moment = moment};
  f.name = *query->plugin ? query->plugin : query->op;
  cuplug__plugin *plugin = find_known(&f);
  if (plugin) *op = cuplug__plugin_operator(plugin, query->op);
  int status = *op ? CUPLUG_OK : find_in_files(&f, &plugin, op, error);
  if (status) return status;
  if (plugin && !strcmp(plugin->table.name, f.name)) plugin->named = moment;
  if (*op && !*query->plugin) cuplug__registry_keep(*op, moment);
  cuplug__clear(error);
  return CUPLUG_OK;
}

static int find(const char *name, int is_early, cuplug_operator **op, cuplug_error *error) {
  cuplug__operator_name_query query;
  *op = NULL;
  int status = parse(name, &query, error);
  if (status) return status;
  const uint64_t moment = cuplug__registry_moment();
  *op = recall(&query, moment, 0);
  if (!*op) status = find_uncached(&query, moment, is_early, op, error);
  if (status) *op = NULL;
  return status;
}

int cuplug_find(const char *name, cuplug_operator **op, cuplug_error *error) {
  return find(name, 0, op, error);
}

int cuplug_find_early(const char *name, cuplug_operator **op, cuplug_error *error) {
  return find(name, 1, op, error);
}

cuplug_operator *cuplug_find_loaded(const char *name) {
  cuplug__operator_name_query query;
  return is_query(name, &query) ? recall(&query, cuplug__registry_moment(), 1) : NULL;
}

static int find_in_stock(const cuplug__operator_name_query *query, cuplug_operator **op,
                         cuplug_error *error) {
  char path[4096 + sizeof("/cuplug/lib.so") + CUPLUG_MAX_NAME];
  cuplug__plugin *plugin;
  cuplug__trust trust;
  snprintf(path, sizeof path, "%s/cuplug/lib%s.so", cuplug__install_directory(), query->plugin);
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
  cuplug__operator_name_query query;
  *op = NULL;
  const int status = parse(name, &query, error);
  return status ? status : find_in_stock(&query, op, error);
}
