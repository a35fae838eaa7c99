/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins by path: loaded, and reloaded when their file was replaced. */
#include "base/status.h"
#include "registry/load.h"
#include "registry/registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char doing[] = "loading a plugin";

/* An absolute path, to be freed. */
static int make_absolute(const char *path, char **absolute, cuplug_error *error) {
  char *directory = *path == '/' ? NULL : getcwd(NULL, 0);
  if (*path != '/' && !directory && errno != ENOMEM)
    return cuplug__fail(error, CUPLUG_ERROR_NOT_FOUND, "%s: no working directory: %s", path,
                        strerror(errno));
  *absolute = directory ? cuplug__join(directory, path) : *path == '/' ? strdup(path) : NULL;
  free(directory);
  return *absolute ? CUPLUG_OK : cuplug__no_memory(error, doing);
}

/* Moves a file's plugin ahead of the others. */
static int rank(cuplug__candidate *candidate, const char *path, cuplug__plugin **plugin,
                cuplug_error *error) {
  int status = cuplug__registry_take(candidate, path, plugin, error);
  if (status) return status;
  if (!cuplug__identity_equal(&(*plugin)->identity, &candidate->identity))
    return cuplug__reject(error,
                          "%s: replaced on disk after its code was loaded: reload it, restart the "
                          "process, or give the new file another path",
                          path);
  cuplug__registry_rank(*plugin);
  return CUPLUG_OK;
}

int cuplug_load(const char *path, cuplug_operator **ops, uint32_t room, uint32_t *n_ops,
                cuplug_error *error) {
  char *absolute;
  cuplug__plugin *plugin;
  cuplug__candidate candidate;
  cuplug__clear(error);
  if (n_ops) *n_ops = 0;
  if (!path || !*path)
    return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                        "load: path: got an empty string, expected a file");
  int status = make_absolute(path, &absolute, error);
  if (status) return status;
  status = cuplug__candidate_accept(absolute, &candidate, error);
  if (!status) {
    cuplug__registry_lock();
    status = rank(&candidate, absolute, &plugin, error);
    cuplug__registry_unlock();
  }
  cuplug__candidate_end(&candidate);
  free(absolute);
  if (status) return status;
  for (uint32_t k = 0; k < plugin->n_operators && k < room; k++) ops[k] = &plugin->operators[k];
  if (n_ops) *n_ops = plugin->n_operators;
  return CUPLUG_OK;
}

/* ---- Reloaded -------------------------------------------------------------------------------- */

/* The plugin of a new file is registered in addition to the old one. */

/* The current code of a file in the process, from the plugin that was reloaded last. */
static cuplug__plugin *newest_of(cuplug__plugin *plugin) {
  cuplug__plugin *loaded = cuplug__registry_loaded_from(plugin->path);
  return loaded ? loaded : plugin;
}

static int check_successor(const cuplug__plugin *old, const cuplug__candidate *fresh,
                           cuplug_error *error) {
  const cuplug__identity *a = &old->identity, *b = &fresh->identity;
  if (old->is_in_place && a->device == b->device && a->inode == b->inode)
    return cuplug__reject(error,
                          "%s: overwritten in place while its code is loaded; restart the process, "
                          "and replace files by renaming new ones, as `cuplug build` does",
                          old->path);
  if (!strcmp(old->table.name, fresh->table.name)) return CUPLUG_OK;
  return cuplug__reject(error, "%s: it held the plugin \"%s\", and now holds \"%s\"", old->path,
                        old->table.name, fresh->table.name);
}

/* Registers a plugin that was loaded; another thread may have been faster. */
static cuplug__plugin *publish(cuplug__plugin *old, cuplug__plugin *fresh) {
  cuplug__registry_lock();
  cuplug__plugin *newest = newest_of(old);
  const int is_late = cuplug__identity_equal(&newest->identity, &fresh->identity);
  if (!is_late) cuplug__registry_replace(newest, fresh);
  cuplug__registry_unlock();
  if (!is_late) return fresh;
  cuplug__plugin_free(fresh);
  return newest;
}

static int take_successor(cuplug__plugin *old, cuplug__candidate *candidate, cuplug__plugin **fresh,
                          cuplug_error *error) {
  cuplug__plugin *made = NULL;
  int status = check_successor(old, candidate, error);
  if (!status) status = cuplug__plugin_make(candidate, old->path, &made, error);
  if (!status) status = cuplug__load_plugin(made, error);
  if (!status)
    *fresh = publish(old, made);
  else if (made)
    cuplug__plugin_free(made);
  return status;
}

static int reload(cuplug__plugin *old, cuplug__plugin **fresh, cuplug_error *error) {
  cuplug__candidate candidate;
  *fresh = old;
  int status = cuplug__candidate_accept(old->path, &candidate, error);
  if (!status && !cuplug__identity_equal(&old->identity, &candidate.identity))
    status = take_successor(old, &candidate, fresh, error);
  cuplug__candidate_end(&candidate);
  return status;
}

int cuplug_reload(const cuplug_operator *op, cuplug_operator **fresh, cuplug_error *error) {
  cuplug__plugin *plugin;
  *fresh = NULL;
  cuplug__clear(error);
  int status = reload(newest_of((cuplug__plugin *)op->plugin), &plugin, error);
  if (!status) *fresh = cuplug__plugin_operator(plugin, op->name);
  if (!status && !*fresh)
    status = cuplug__fail(error, CUPLUG_ERROR_NOT_FOUND, "%s: the operator no longer exists",
                          plugin->path);
  if (status) cuplug__prefix(error, "reload: %s: ", op->name);
  return status;
}
