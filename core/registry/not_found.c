/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/not_found.h"

#include "base/near.h"
#include "base/status.h"
#include "discovery/table.h"
#include "registry/listing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_NEAR 3
#define MAX_SHOWN_OPERATORS 20
#define MAX_UNREAD 3
#define VARIABLE "LD_LIBRARY_CUPLUG_PATH"
#define MAX_TYPOS 4 /* LD_LIBRARY_PATH is 7 away */

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

/* Compares with all operators; where a plugin was named, with what that plugin may have meant. */
static void collect_suggestions(const cuplug__operator_name_query *query,
                                const cuplug_listing *listing, suggestions *near) {
  char op[CUPLUG_MAX_NAME], text[2 * CUPLUG_MAX_NAME];
  for (size_t f = 0; f < listing->n_files; f++) {
    const cuplug_file *file = &listing->files[f];
    if (!cuplug__file_counts(file)) continue;
    int plugin_far = *query->plugin ? cuplug__name_distance(query->plugin, file->table.name) : 0;
    for (uint32_t k = 0; k < file->table.n_rows; k++) {
      cuplug__row_operator(&file->table.rows[k], op);
      int far = cuplug__name_distance(query->op, op);
      if (*query->plugin)
        snprintf(text, sizeof(text), "%s.%s", file->table.name, op);
      else
        snprintf(text, sizeof(text), "%s", op);
      keep_near(near, plugin_far < 0 || far < 0 ? -1 : far + plugin_far, text);
    }
  }
}

static void append_suggestions(const cuplug__operator_name_query *query,
                               const cuplug_listing *listing, cuplug_error *error) {
  suggestions near = {0};
  collect_suggestions(query, listing, &near);
  for (int k = 0; k < near.n; k++)
    cuplug__append(error, "%s%s", k ? ", " : "; did you mean ", near.names[k].text);
  if (near.n) cuplug__append(error, "?");
}

/* Is this the file in which the name was to be expected? */
static int is_named(const cuplug_file *file, const char *plugin) {
  char wanted[CUPLUG_MAX_NAME + sizeof("/lib.so")];
  snprintf(wanted, sizeof(wanted), "/lib%s.so", plugin);
  size_t n = strlen(wanted), n_path = strlen(file->path);
  return n_path >= n && !strcmp(file->path + n_path - n, wanted);
}

/* Files that are not used although they have the name of the plugin or have the operator; then some
 * whose tables were not read, such as files that other users may write: they may have it. */
static void append_rejected(const cuplug__operator_name_query *query, const cuplug_listing *listing,
                            cuplug_error *error) {
  const char *plugin = *query->plugin ? query->plugin : query->op;
  int n_unread = 0;
  for (int unread = 0; unread < 2; unread++)
    for (size_t k = 0; k < listing->n_files; k++) {
      const cuplug_file *file = &listing->files[k];
      if (cuplug__file_counts(file) || file->origin == CUPLUG_ORIGIN_LOADED) continue;
      const int is_meant =
          is_named(file, plugin) || (cuplug__file_has(file, query->op) &&
                                     (!*query->plugin || !strcmp(file->table.name, query->plugin)));
      if (!unread && is_meant)
        cuplug__append(error, "\n  rejected: %s: %s", file->path, file->reason);
      if (unread && !is_meant && file->state == CUPLUG_STATE_REJECTED && !file->table.n_rows &&
          n_unread++ < MAX_UNREAD)
        cuplug__append(error, "\n  rejected, its operators are not known: %s: %s", file->path,
                       file->reason);
    }
  if (n_unread > MAX_UNREAD)
    cuplug__append(error, "\n  rejected: %d more files; cuplug list shows them",
                   n_unread - MAX_UNREAD);
}

static void append_directories(const cuplug_listing *listing, cuplug_error *error) {
  for (size_t k = 0; k < listing->n_directories; k++) {
    const cuplug_directory *d = &listing->directories[k];
    if (d->reason)
      cuplug__append(error, "\n  not looked in: %s (%s)", d->path, d->reason);
    else
      cuplug__append(error, "\n  looked in: %s", d->path);
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

/* The plugin of that name which counts; NULL if there is none. */
static const cuplug_file *named_plugin(const cuplug__operator_name_query *query,
                                       const cuplug_listing *listing) {
  for (size_t k = 0; k < listing->n_files; k++)
    if (cuplug__file_counts(&listing->files[k]) &&
        !strcmp(listing->files[k].table.name, query->plugin))
      return &listing->files[k];
  return NULL;
}

static void append_operators(const cuplug_file *file, cuplug_error *error) {
  char op[CUPLUG_MAX_NAME], last[CUPLUG_MAX_NAME] = "";
  int n = 0;
  for (uint32_t k = 0; k < file->table.n_rows && n <= MAX_SHOWN_OPERATORS; k++) {
    cuplug__row_operator(&file->table.rows[k], op);
    if (!strcmp(op, last)) continue;
    strcpy(last, op);
    cuplug__append(error, "%s%s", n ? ", " : "", n < MAX_SHOWN_OPERATORS ? op : "...");
    n++;
  }
}

int cuplug__fail_not_found(const cuplug__operator_name_query *query, const cuplug_listing *listing,
                           cuplug_error *error) {
  if (!error) return CUPLUG_ERROR_NOT_FOUND;
  const cuplug_file *plugin = *query->plugin ? named_plugin(query, listing) : NULL;
  if (plugin) {
    cuplug__fail(error, CUPLUG_ERROR_NOT_FOUND,
                 "%s: plugin \"%s\" (%s) has no operator \"%s\"; it has ", query->text,
                 plugin->table.name, plugin->path, query->op);
    append_operators(plugin, error);
    return CUPLUG_ERROR_NOT_FOUND;
  }
  if (*query->plugin)
    cuplug__fail(error, CUPLUG_ERROR_NOT_FOUND, "%s: no plugin \"%s\" (lib%s.so) was found",
                 query->text, query->plugin, query->plugin);
  else
    cuplug__fail(error, CUPLUG_ERROR_NOT_FOUND, "%s: no plugin has an operator of that name",
                 query->text);
  append_suggestions(query, listing, error);
  append_rejected(query, listing, error);
  append_directories(listing, error);
  append_variables(error);
  return CUPLUG_ERROR_NOT_FOUND;
}
