/* SPDX-License-Identifier: Apache-2.0 */
/* Operators by name. The order is plugins loaded by path, the earlier result for the name, and
 * lib<name>.so in each directory. An operator without its plugin's name is then searched for in all
 * plugins, in search order. */
#include "base/describe.h"
#include "base/status.h"
#include "discovery/candidate.h"
#include "discovery/search.h"
#include "discovery/table.h"
#include "discovery/trust.h"
#include "registry/listing.h"
#include "registry/registry.h"

#include <fcntl.h>
#include <internal/functions.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A name from the user, "operator" or "plugin.operator", split. */
typedef struct query {
  const char *text;
  char plugin[CUPLUG_MAX_NAME]; /* "" when only the operator was named */
  char op[CUPLUG_MAX_NAME];
} query;

/* ---- The message for a name that leads to no operator ---------------------------------------- */

#define MAX_NEAR 3
#define MAX_SHOWN_OPERATORS 20
#define MAX_UNREAD 3
#define VARIABLE "LD_LIBRARY_CUPLUG_PATH"
#define MAX_TYPOS 4 /* LD_LIBRARY_PATH is at distance 7 */

typedef struct near_name {
  int distance;
  char text[2 * CUPLUG_MAX_NAME];
} near_name;

typedef struct suggestions {
  int n;
  near_name names[MAX_NEAR];
} suggestions;

static void keep_near(suggestions *near, int far, const char *text) {
  if (far < 0) return;
  for (int k = 0; k < near->n; k++)
    if (!strcmp(near->names[k].text, text)) return;
  int at = near->n < MAX_NEAR ? near->n++ : MAX_NEAR;
  for (; at > 0 && near->names[at - 1].distance > far; at--)
    if (at < MAX_NEAR) near->names[at] = near->names[at - 1];
  if (at == MAX_NEAR) return;
  near->names[at].distance = far;
  snprintf(near->names[at].text, sizeof(near->names[at].text), "%s", text);
}

/* Compares with all operators; if a plugin was named, only with operators of similar plugins. */
static void collect_suggestions(const query *asked, const cuplug_listing *listing,
                                suggestions *near) {
  char op[CUPLUG_MAX_NAME], text[2 * CUPLUG_MAX_NAME];
  for (size_t f = 0; f < listing->n_files; f++) {
    const cuplug_file *file = &listing->files[f];
    if (!cuplug__file_counts(file)) continue;
    int plugin_far = *asked->plugin ? cuplug__name_distance(asked->plugin, file->table.name) : 0;
    for (uint32_t k = 0; k < file->table.n_rows; k++) {
      cuplug__overload_operator(&file->table.rows[k], op);
      int far = cuplug__name_distance(asked->op, op);
      snprintf(text, sizeof(text), "%s%s%s", *asked->plugin ? file->table.name : "",
               *asked->plugin ? "." : "", op);
      keep_near(near, plugin_far < 0 || far < 0 ? -1 : far + plugin_far, text);
    }
  }
}

static void append_suggestions(const query *asked, const cuplug_listing *listing,
                               cuplug_error *error) {
  suggestions near = {0};
  collect_suggestions(asked, listing, &near);
  for (int k = 0; k < near.n; k++)
    cuplug__append(error, "%s%s", k ? ", " : "; did you mean ", near.names[k].text);
  if (near.n) cuplug__append(error, "?");
}

/* 1 for a file that should contain the name. */
static int is_named(const cuplug_file *file, const char *plugin) {
  char wanted[CUPLUG_MAX_NAME + sizeof("/lib.so")];
  snprintf(wanted, sizeof(wanted), "/lib%s.so", plugin);
  size_t n = strlen(wanted), n_path = strlen(file->path);
  return n_path >= n && !strcmp(file->path + n_path - n, wanted);
}

/* Files that are not used although they have the name of the plugin or have the operator; then some
 * whose tables were not read, such as files that other users may write: they may have it. */
static void append_rejected(const query *asked, const cuplug_listing *listing,
                            cuplug_error *error) {
  const char *plugin = *asked->plugin ? asked->plugin : asked->op;
  int n_unread = 0;
  for (int unread = 0; unread < 2; unread++)
    for (size_t k = 0; k < listing->n_files; k++) {
      const cuplug_file *file = &listing->files[k];
      if (cuplug__file_counts(file) || file->origin == CUPLUG_ORIGIN_LOADED) continue;
      const int is_meant =
          is_named(file, plugin) || (cuplug__file_has(file, asked->op) &&
                                     (!*asked->plugin || !strcmp(file->table.name, asked->plugin)));
      if (!unread && is_meant)
        cuplug__append(error, "\n  rejected: %s: %s", file->path, file->reason);
      if (unread && !is_meant && file->state == CUPLUG_STATE_REJECTED && !file->table.n_rows &&
          n_unread++ < MAX_UNREAD)
        cuplug__append(error, "\n  rejected, with unknown operators: %s: %s", file->path,
                       file->reason);
    }
  if (n_unread > MAX_UNREAD)
    cuplug__append(error, "\n  rejected: %d more files; cuplug list shows them",
                   n_unread - MAX_UNREAD);
}

static void append_directories(const cuplug_listing *listing, cuplug_error *error) {
  for (size_t k = 0; k < listing->n_places; k++) {
    const cuplug_directory *d = &listing->places[k].directory;
    if (d->reason)
      cuplug__append(error, "\n  not searched: %s (%s)", d->path, d->reason);
    else
      cuplug__append(error, "\n  searched: %s", d->path);
  }
}

/* 1 for a variable's name that may be a misspelling of VARIABLE. */
static int is_misspelled(const char *name) {
  if (!strcmp(name, VARIABLE) || !strcmp(name, "CUPLUG_CACHE_DIR")) return 0;
  if (strcasestr(name, "cuplug") && strcasestr(name, "path")) return 1;
  if (strstr(name, "CUPLUG") && (strstr(name, "DIR") || strstr(name, "PLUGINS"))) return 1;
  return cuplug__edit_distance(name, VARIABLE, MAX_TYPOS) <= MAX_TYPOS;
}

static void append_variables(cuplug_error *error) {
  char name[CUPLUG_MAX_NAME];
  for (char **variable = environ; variable && *variable; variable++) {
    const size_t n = strcspn(*variable, "=");
    if (n >= sizeof name || !(*variable)[n] || !(*variable)[n + 1]) continue;
    memcpy(name, *variable, n);
    name[n] = 0;
    if (is_misspelled(name))
      cuplug__append(error, "\n  %s is set, and cuplug does not read it; set " VARIABLE, name);
  }
  const char *value = secure_getenv(VARIABLE);
  cuplug__append(error, "\n  %s; %s the folder of the plugin",
                 value && *value ? VARIABLE " is set" : VARIABLE " is not set",
                 value && *value ? "add to it" : "set it to");
}

/* The plugin of that name which counts; NULL without one. */
static const cuplug_file *named_plugin(const query *asked, const cuplug_listing *listing) {
  for (size_t k = 0; k < listing->n_files; k++)
    if (cuplug__file_counts(&listing->files[k]) &&
        !strcmp(listing->files[k].table.name, asked->plugin))
      return &listing->files[k];
  return NULL;
}

static void append_operators(const cuplug_file *file, cuplug_error *error) {
  char op[CUPLUG_MAX_NAME], last[CUPLUG_MAX_NAME] = "";
  int n = 0;
  for (uint32_t k = 0; k < file->table.n_rows && n <= MAX_SHOWN_OPERATORS; k++) {
    cuplug__overload_operator(&file->table.rows[k], op);
    if (!strcmp(op, last)) continue;
    strcpy(last, op);
    cuplug__append(error, "%s%s", n ? ", " : "", n < MAX_SHOWN_OPERATORS ? op : "...");
    n++;
  }
}

/* ERROR_NOT_FOUND with suggestions, rejected files that have the operator or may have it, the
 * directories, and the variable that adds some. */
static int fail_not_found(const query *asked, const cuplug_listing *listing, cuplug_error *error) {
  if (!error) return CUPLUG_ERROR_NOT_FOUND;
  const cuplug_file *plugin = *asked->plugin ? named_plugin(asked, listing) : NULL;
  if (plugin) {
    cuplug__fail(error, CUPLUG_ERROR_NOT_FOUND,
                 "%s: plugin \"%s\" (%s) has no operator \"%s\"; it has ", asked->text,
                 plugin->table.name, plugin->path, asked->op);
    append_operators(plugin, error);
    return CUPLUG_ERROR_NOT_FOUND;
  }
  if (*asked->plugin)
    cuplug__fail(error, CUPLUG_ERROR_NOT_FOUND, "%s: no plugin \"%s\" (lib%s.so) was found",
                 asked->text, asked->plugin, asked->plugin);
  else
    cuplug__fail(error, CUPLUG_ERROR_NOT_FOUND, "%s: no plugin has an operator of that name",
                 asked->text);
  append_suggestions(asked, listing, error);
  append_rejected(asked, listing, error);
  append_directories(listing, error);
  append_variables(error);
  return CUPLUG_ERROR_NOT_FOUND;
}

/* ---- The search ------------------------------------------------------------------------------ */

/* One search in progress. */
typedef struct finder {
  const query *asked;
  const char *name; /* of the plugin that is searched first */
  int is_early;     /* only the directories before the ones of cuplug_add_directory, and no scan */
  cuplug__search search;
} finder;

static int is_query(const char *text, query *asked) {
  asked->text = text ? text : "";
  const char *dot = strchr(asked->text, '.');
  const char *op = dot ? dot + 1 : asked->text;
  const size_t n_plugin = dot ? (size_t)(dot - asked->text) : 0, n_op = strlen(op);
  if (n_plugin >= sizeof asked->plugin || n_op >= sizeof asked->op) return 0;
  memcpy(asked->plugin, asked->text, n_plugin);
  asked->plugin[n_plugin] = 0;
  memcpy(asked->op, op, n_op + 1);
  return cuplug__is_identifier(asked->op) && (!dot || cuplug__is_identifier(asked->plugin));
}

static int parse(const char *text, query *asked, cuplug_error *error) {
  cuplug__clear(error);
  if (is_query(text, asked)) return CUPLUG_OK;
  return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                      "find: name: got \"%.200s\", expected \"operator\" or \"plugin.operator\"",
                      asked->text);
}

/* The earlier result, if it is still valid. */
static cuplug_operator *recall(const query *asked, uint64_t moment, int loaded_only) {
  if (!*asked->plugin) return cuplug__registry_found(asked->op, moment, loaded_only);
  const cuplug__plugin *p = cuplug__registry_named(asked->plugin, moment, loaded_only);
  return p ? cuplug__plugin_operator(p, asked->op) : NULL;
}

/* The plugin of a file; the process may have an older version of its code. */
static int take_file(int directory, const char *path, cuplug__trust *trust, cuplug__plugin **plugin,
                     cuplug_error *error) {
  cuplug__candidate candidate;
  *plugin = cuplug__registry_loaded_from(path);
  if (*plugin) return CUPLUG_OK;
  int status = cuplug__candidate_read(directory, path, trust, &candidate, error);
  if (!status) status = cuplug__check_listed(candidate.fd, trust, error);
  if (!status) {
    cuplug__registry_lock();
    status = cuplug__registry_take(&candidate, path, plugin, error);
    cuplug__registry_unlock();
  }
  cuplug__candidate_end(&candidate);
  return status;
}

/* Finds the first accepted plugin lib<name>.so. *plugin remains NULL without one. */
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
  for (size_t k = 0; k < listing->n_files && !*f->asked->plugin && !*op && !status; k++) {
    const cuplug_file *file = &listing->files[k];
    if (!cuplug__file_counts(file) || !cuplug__file_has(file, f->asked->op)) continue;
    status = take_file(AT_FDCWD, file->path, &f->search.trust, &plugin, error);
    if (!status) *op = cuplug__plugin_operator(plugin, f->asked->op);
  }
  if (!status && !*op) status = fail_not_found(f->asked, listing, error);
  cuplug_free_listing(listing);
  return status;
}

static int find_in_files(finder *f, cuplug__plugin **plugin, cuplug_operator **op,
                         cuplug_error *error) {
  int status = cuplug__search_start(&f->search, cuplug__registry_added(), error);
  if (!status && !*plugin) status = find_plugin(f, plugin, error);
  if (!status && *plugin) *op = cuplug__plugin_operator(*plugin, f->asked->op);
  if (!status && !*op && !f->is_early) status = scan(f, op, error);
  cuplug__search_end(&f->search);
  return status;
}

static int find_uncached(const query *asked, uint64_t moment, int is_early, cuplug_operator **op,
                         cuplug_error *error) {
  finder f = {.asked = asked, .is_early = is_early};
  f.name = *asked->plugin ? asked->plugin : asked->op;
  /* Among the plugins of cuplug_load; then the one that the name led to before. */
  cuplug__plugin *plugin = cuplug__registry_first_ranked(f.name, *asked->plugin ? NULL : asked->op);
  if (!plugin) plugin = cuplug__registry_named(f.name, moment, 0);
  if (plugin) *op = cuplug__plugin_operator(plugin, asked->op);
  int status = *op ? CUPLUG_OK : find_in_files(&f, &plugin, op, error);
  if (status) return status;
  if (plugin && !strcmp(plugin->table.name, f.name)) plugin->named = moment;
  if (*op && !*asked->plugin) cuplug__registry_keep(*op, moment);
  cuplug__clear(error);
  return CUPLUG_OK;
}

static int find(const char *name, int is_early, cuplug_operator **op, cuplug_error *error) {
  query asked;
  *op = NULL;
  int status = parse(name, &asked, error);
  if (status) return status;
  const uint64_t moment = cuplug__registry_moment();
  *op = recall(&asked, moment, 0);
  if (!*op) status = find_uncached(&asked, moment, is_early, op, error);
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
  query asked;
  return is_query(name, &asked) ? recall(&asked, cuplug__registry_moment(), 1) : NULL;
}

static int find_in_stock(const query *asked, cuplug_operator **op, cuplug_error *error) {
  char path[4096 + sizeof("/cuplug/lib.so") + CUPLUG_MAX_NAME];
  cuplug__plugin *plugin;
  cuplug__trust trust;
  snprintf(path, sizeof path, "%s/cuplug/lib%s.so", cuplug__install_directory(), asked->plugin);
  int status = cuplug__trust_start(&trust, error);
  if (status) return status;
  status = take_file(AT_FDCWD, path, &trust, &plugin, error);
  if (status && status != CUPLUG_ERROR_MEMORY)
    cuplug__prefix(error, "%s: the stock plugin %s: ", asked->text, path);
  cuplug__trust_end(&trust);
  if (status) return status;
  *op = cuplug__plugin_operator(plugin, asked->op);
  if (*op) return CUPLUG_OK;
  return cuplug__fail(error, CUPLUG_ERROR_NOT_FOUND, "%s: the stock plugin %s has no such operator",
                      asked->text, path);
}

int cuplug_find_stock(const char *name, cuplug_operator **op, cuplug_error *error) {
  query asked;
  *op = NULL;
  const int status = parse(name, &asked, error);
  return status ? status : find_in_stock(&asked, op, error);
}
