/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin whose file was replaced, registered in addition to the old one. */
#include "base/status.h"
#include "registry/load.h"
#include "registry/registry.h"

#include <string.h>

/* The current code of a file in the process: the plugin reloaded last. */
static cuplug__plugin *newest_of(cuplug__plugin *plugin) {
  cuplug__plugin *loaded = cuplug__registry_loaded_from(plugin->path);
  return loaded ? loaded : plugin;
}

static int check_successor(const cuplug__plugin *old, const cuplug__candidate *fresh,
                           cuplug_error *error) {
  const cuplug__identity *a = &old->identity, *b = &fresh->identity;
  if (old->is_in_place && a->device == b->device && a->inode == b->inode)
    return cuplug__reject(
        error,
        "%s: written over in place while its code is loaded: restart the process, and "
        "replace files by renaming new ones, as `cuplug build` does",
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
    status = cuplug__fail(error, CUPLUG_ERROR_NOT_FOUND, "%s: no operator of that name any more",
                          plugin->path);
  if (status) cuplug__prefix(error, "reload: %s: ", op->name);
  return status;
}
