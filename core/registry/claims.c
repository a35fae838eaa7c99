/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/claims.h"

#include "base/status.h"
#include "discovery/private.h"

#include <string.h>

/* The files found first are kept, as other threads may be reading them. */
static void claim(cuplug__plugin *plugin, cuplug__privates *found) {
  cuplug__registry_lock();
  if (!plugin->privates.files) {
    plugin->privates = *found;
    *found = (cuplug__privates){0};
  }
  plugin->is_claiming = 1;
  cuplug__registry_unlock();
  cuplug__privates_end(found);
}

/* The file that another plugin has claimed the name of `own` for, if it is another one. */
static const cuplug__private *find_rival(const cuplug__plugin *plugin, const cuplug__private *own,
                                         const cuplug__plugin **rival) {
  const cuplug__private *found = NULL;
  cuplug__registry_lock();
  for (*rival = cuplug__registry_plugins(); *rival; *rival = (*rival)->next) {
    if (*rival == plugin || !(*rival)->is_claiming) continue;
    for (size_t k = 0; k < (*rival)->privates.n_files && !found; k++)
      if (cuplug__privates_rival(own, &(*rival)->privates.files[k]))
        found = &(*rival)->privates.files[k];
    if (found) break;
  }
  cuplug__registry_unlock();
  return found;
}

static int check(const cuplug__plugin *plugin, cuplug_error *error) {
  const cuplug__plugin *other;
  for (size_t k = 0; k < plugin->privates.n_files; k++) {
    const cuplug__private *own = &plugin->privates.files[k];
    const cuplug__private *rival = find_rival(plugin, own, &other);
    if (!rival || !cuplug__privates_differ(own, rival)) continue;
    if (!strcmp(own->path, rival->path))
      return cuplug__reject(error,
                            "%s: %s: replaced on disk after it was loaded; restart the process",
                            plugin->path, own->path);
    return cuplug__reject(
        error,
        "%s: %s: got %s, which %s has loaded, expected %s (a process has one "
        "library of a name); give one of them another SONAME, or link it statically",
        plugin->path, own->needed, rival->path, other->path, own->path);
  }
  return CUPLUG_OK;
}

int cuplug__claim_privates(cuplug__plugin *plugin, int fd, const char *path, cuplug_error *error) {
  cuplug__privates found;
  int status = cuplug__privates_find(fd, path, &found, error);
  if (status || !found.n_files) {
    cuplug__privates_end(&found);
    return status;
  }
  claim(plugin, &found);
  status = check(plugin, error);
  if (status) cuplug__unclaim_privates(plugin);
  return status;
}

void cuplug__unclaim_privates(cuplug__plugin *plugin) {
  cuplug__registry_lock();
  if (!plugin->library) plugin->is_claiming = 0;
  cuplug__registry_unlock();
}
