/* SPDX-License-Identifier: Apache-2.0 */
#include "lookup/loaded.h"

#include "base/status.h"
#include "discovery/candidate.h"

#include <stdlib.h>
#include <string.h>

static int copy_plugins(cuplug__loaded *loaded) {
  size_t n = 0;
  for (const cuplug__plugin *p = cuplug__registry_plugins(); p; p = p->next)
    n += p->library != NULL;
  loaded->plugins = malloc((n + 1) * sizeof *loaded->plugins);
  if (!loaded->plugins) return 0;
  for (const cuplug__plugin *p = cuplug__registry_plugins(); p; p = p->next)
    if (p->library) loaded->plugins[loaded->n++] = p;
  return 1;
}

int cuplug__loaded_start(cuplug__loaded *loaded, cuplug_error *error) {
  cuplug__registry_lock();
  int is_fine = copy_plugins(loaded);
  cuplug__registry_unlock();
  for (size_t k = 0; k < loaded->n && is_fine; k++) {
    const cuplug__plugin *p = loaded->plugins[k];
    is_fine = cuplug__index_add(&loaded->by_path, cuplug__hash_text(p->path), k) &&
              cuplug__index_add(&loaded->by_identity, cuplug__identity_hash(&p->identity), k);
  }
  return is_fine ? CUPLUG_OK : cuplug__no_memory(error, "looking at loaded plugins");
}

void cuplug__loaded_end(cuplug__loaded *loaded) {
  free(loaded->plugins);
  cuplug__index_end(&loaded->by_path);
  cuplug__index_end(&loaded->by_identity);
}

const cuplug__plugin *cuplug__loaded_from(const cuplug__loaded *loaded, const char *path) {
  size_t at = 0, k;
  while (cuplug__index_next(&loaded->by_path, cuplug__hash_text(path), &at, &k))
    if (!strcmp(loaded->plugins[k]->path, path)) return loaded->plugins[k];
  return NULL;
}

int cuplug__is_loaded(const cuplug__loaded *loaded, const cuplug__identity *identity) {
  size_t at = 0, k;
  while (cuplug__index_next(&loaded->by_identity, cuplug__identity_hash(identity), &at, &k))
    if (cuplug__identity_equal(&loaded->plugins[k]->identity, identity)) return 1;
  return 0;
}
