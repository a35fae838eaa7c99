/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/registry.h"

#include "base/status.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define N_PLACES 1024 /* a power of two */

/* Lists are only extended: `added` at its end, the others at their heads. */
static struct {
  cuplug__plugin *_Atomic plugins;
  cuplug__plugin *_Atomic alike[CUPLUG__N_KEYS][N_PLACES]; /* by the hash of each key */
  cuplug_operator *_Atomic found[N_PLACES];                /* only by name, by its hash */
  cuplug__added *_Atomic added;
  _Atomic uint64_t n_changes; /* of the state on which all results depend */
  uint64_t last_rank;
} registry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
_Atomic uint32_t cuplug__era = 1;

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
static void in_child(void) {
  after_fork();
  atomic_fetch_add_explicit(&cuplug__era, 1, memory_order_relaxed);
}
static void watch_forks(void) { pthread_atfork(before_fork, after_fork, in_child); }

void cuplug__registry_lock(void) {
  pthread_once(&once, watch_forks);
  pthread_mutex_lock(&lock);
}
void cuplug__registry_unlock(void) { pthread_mutex_unlock(&lock); }

/* ---- Read without the lock ------------------------------------------------------------------- */

cuplug__plugin *cuplug__registry_plugins(void) { return registry.plugins; }

const cuplug__added *cuplug__registry_added(void) { return registry.added; }

static cuplug__plugin *first_alike(int key, uint64_t hash) {
  return registry.alike[key][hash % N_PLACES];
}

cuplug__plugin *cuplug__registry_loaded_from(const char *path) {
  cuplug__plugin *p = first_alike(CUPLUG__BY_PATH, cuplug__hash_text(path));
  while (p && !(p->library && !strcmp(p->path, path))) p = p->alike[CUPLUG__BY_PATH];
  return p;
}

int cuplug__registry_is_loaded(const cuplug__identity *identity) {
  cuplug__plugin *p = first_alike(CUPLUG__BY_IDENTITY, cuplug__identity_hash(identity));
  while (p && !(p->library && cuplug__identity_equal(&p->identity, identity)))
    p = p->alike[CUPLUG__BY_IDENTITY];
  return p != NULL;
}

uint64_t cuplug__registry_moment(void) {
  const uint64_t n = registry.n_changes;
  return cuplug__hash(cuplug__search_fingerprint(), &n, sizeof n) | 1;
}

static int is_good(const cuplug__plugin *plugin, int loaded_only) {
  return plugin->library || (!loaded_only && cuplug__plugin_is_current(plugin));
}

cuplug__plugin *cuplug__registry_named(const char *name, uint64_t moment, int loaded_only) {
  cuplug__plugin *p = first_alike(CUPLUG__BY_NAME, cuplug__hash_text(name));
  while (p && !(p->named == moment && !strcmp(p->table.name, name) && is_good(p, loaded_only)))
    p = p->alike[CUPLUG__BY_NAME];
  return p;
}

cuplug_operator *cuplug__registry_found(const char *name, uint64_t moment, int loaded_only) {
  cuplug_operator *op = registry.found[cuplug__hash_text(name) % N_PLACES];
  while (op &&
         !(op->found == moment && !strcmp(op->name, name) && is_good(op->plugin, loaded_only)))
    op = op->alike;
  return op;
}

/* ---- Plugins of cuplug_load ------------------------------------------------------------------ */

cuplug__plugin *cuplug__registry_first_ranked(const char *name, const char *op) {
  cuplug__plugin *first = NULL;
  cuplug__registry_lock();
  for (cuplug__plugin *p = registry.plugins; p; p = p->next)
    if (p->rank > (first ? first->rank : 0) &&
        (!strcmp(p->table.name, name) || (op && cuplug__plugin_operator(p, op))))
      first = p;
  cuplug__registry_unlock();
  return first;
}

static int compare_ranks(const void *a, const void *b) {
  cuplug__plugin *const *x = a, *const *y = b;
  return ((*x)->rank < (*y)->rank) - ((*x)->rank > (*y)->rank);
}

cuplug__plugin **cuplug__registry_ranked(void) {
  size_t n_ranked = 0, k = 0;
  cuplug__registry_lock();
  for (const cuplug__plugin *p = registry.plugins; p; p = p->next) n_ranked += p->rank != 0;
  cuplug__plugin **ranked = calloc(n_ranked + 1, sizeof *ranked);
  for (cuplug__plugin *p = ranked ? registry.plugins : NULL; p; p = p->next)
    if (p->rank) ranked[k++] = p;
  if (k) qsort(ranked, k, sizeof *ranked, compare_ranks);
  cuplug__registry_unlock();
  return ranked;
}

/* ---- Changes --------------------------------------------------------------------------------- */

void cuplug__registry_keep(cuplug_operator *op, uint64_t moment) {
  cuplug_operator *_Atomic *first = &registry.found[cuplug__hash_text(op->name) % N_PLACES];
  if (!op->found) {
    cuplug__registry_lock();
    if (!op->found) {
      op->found = moment;
      op->alike = *first;
      *first = op;
    }
    cuplug__registry_unlock();
  }
  op->found = moment;
}

static void add(cuplug__plugin *plugin) {
  const uint64_t hashes[CUPLUG__N_KEYS] = {
      [CUPLUG__BY_NAME] = cuplug__hash_text(plugin->table.name),
      [CUPLUG__BY_PATH] = cuplug__hash_text(plugin->path),
      [CUPLUG__BY_IDENTITY] = cuplug__identity_hash(&plugin->identity)};
  for (int key = 0; key < CUPLUG__N_KEYS; key++) {
    cuplug__plugin *_Atomic *first = &registry.alike[key][hashes[key] % N_PLACES];
    plugin->alike[key] = *first;
    *first = plugin;
  }
  plugin->next = registry.plugins;
  registry.plugins = plugin;
}

void cuplug__registry_replace(cuplug__plugin *old, cuplug__plugin *fresh) {
  fresh->rank = old->rank;
  add(fresh);
  old->rank = 0;
  registry.n_changes++;
}

void cuplug__registry_rank(cuplug__plugin *plugin) {
  plugin->rank = ++registry.last_rank;
  registry.n_changes++;
}

int cuplug__registry_take(cuplug__candidate *candidate, const char *path, cuplug__plugin **plugin,
                          cuplug_error *error) {
  cuplug__plugin *p = first_alike(CUPLUG__BY_IDENTITY, cuplug__identity_hash(&candidate->identity));
  while (p && !(cuplug__identity_equal(&p->identity, &candidate->identity) &&
                cuplug__plugin_is_current(p)))
    p = p->alike[CUPLUG__BY_IDENTITY];
  *plugin = p ? p : cuplug__registry_loaded_from(path);
  if (*plugin) return CUPLUG_OK;
  int status = cuplug__plugin_make(candidate, path, plugin, error);
  if (!status) add(*plugin);
  return status;
}

/* Appends a directory, once. */
static int append(const char *path, cuplug_error *error) {
  cuplug__added *_Atomic *end = &registry.added;
  for (; *end; end = &(*end)->next)
    if (!strcmp((*end)->path, path)) return CUPLUG_OK;
  cuplug__added *added = calloc(1, sizeof *added + strlen(path) + 1);
  if (!added) return cuplug__no_memory(error, "adding a directory");
  strcpy(added->path, path);
  *end = added;
  registry.n_changes++;
  return CUPLUG_OK;
}

int cuplug_add_directory(const char *path, cuplug_error *error) {
  cuplug__clear(error);
  if (!path || *path != '/')
    return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                        "add_directory: path: got \"%s\", expected an absolute path",
                        path ? path : "");
  cuplug__registry_lock();
  const int status = append(path, error);
  cuplug__registry_unlock();
  return status;
}
