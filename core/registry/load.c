/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins by path, and the code of plugins. */
#include "registry/load.h"

#include "base/library.h"
#include "base/rounding_scan.h"
#include "base/status.h"
#include "discovery/candidate.h"
#include "discovery/owner.h"
#include "registry/open.h"
#include "registry/operator.h"
#include "registry/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An absolute path, to be freed. */
static int make_absolute(const char *path, char **absolute, cuplug_error *error) {
  if (*path == '/') {
    *absolute = strdup(path);
    return *absolute ? CUPLUG_OK : cuplug__no_memory(error, "loading a plugin");
  }
  char *directory = getcwd(NULL, 0);
  if (!directory && errno != ENOMEM)
    return cuplug__fail(error, CUPLUG_ERROR_NOT_FOUND, "%s: no working directory: %s", path,
                        strerror(errno));
  if (!directory || asprintf(absolute, "%s/%s", directory, path) < 0) {
    free(directory);
    return cuplug__no_memory(error, "loading a plugin");
  }
  free(directory);
  return CUPLUG_OK;
}

/* Puts a file's plugin ahead of the others. */
static int rank(cuplug__candidate *candidate, const char *path, cuplug__plugin **plugin,
                cuplug_error *error) {
  int status = cuplug__registry_take(candidate, path, plugin, error);
  if (status) return status;
  if (!cuplug__identity_equal(&(*plugin)->identity, &candidate->identity))
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
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
    return cuplug__fail(error, CUPLUG_ERROR_VALUE, "load: path: empty, a file is wanted");
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

/* An exported function, *function, a pointer of any type; `what` it is in messages. */
static int resolve(const cuplug__plugin *plugin, void *library, const char *what,
                   const char *symbol, void *function, cuplug_error *error) {
  memset(function, 0, sizeof(void *));
  if (!*symbol) return CUPLUG_OK;
  void *address = cuplug__library_symbol(library, symbol);
  if (!address)
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                        "%s: does not export %s, %s that its table names", plugin->path, symbol,
                        what);
  if (cuplug__library_holds(library, address, 1, CUPLUG__CODE)) {
    memcpy(function, &address, sizeof(address));
    return CUPLUG_OK;
  }
  if (cuplug__library_holds(library, address, 1, CUPLUG__DATA))
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN, "%s: %s is no function, %s is wanted",
                        plugin->path, symbol, what);
  return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                      "%s: %s, %s that its table names, was found only in %s, it is wanted in this "
                      "very file",
                      plugin->path, symbol, what, cuplug__library_of(address));
}

/* The entries of one overload. */
typedef struct entries {
  cuplug_entry *host, *cuda;
  cuplug__create_state *create;
  cuplug__close_handle *close;
} entries;

static int resolve_all(const cuplug_operator *op, void *library, entries *found,
                       cuplug_error *error) {
  int status = CUPLUG_OK;
  for (uint32_t k = 0; k < op->n_overloads && !status; k++) {
    const cuplug_row *row = op->overloads[k].row;
    const cuplug__states *states = op->overloads[k].states;
    status = resolve(op->plugin, library, "an entry", row->host_entry, &found[k].host, error);
    if (!status)
      status = resolve(op->plugin, library, "an entry", row->cuda_entry, &found[k].cuda, error);
    if (!status && states)
      status = resolve(op->plugin, library, "a function", states->symbol, &found[k].create, error);
    if (!status)
      status = resolve(op->plugin, library, "a function", row->close, &found[k].close, error);
  }
  return status;
}

/* The first of several threads writes them, as calls read them without a lock. */
static void take_entries(cuplug_operator *op, const entries *found, int keeps_rounding) {
  cuplug__registry_lock();
  for (uint32_t k = 0; k < op->n_overloads && !op->loaded; k++) {
    op->overloads[k].host = found[k].host;
    op->overloads[k].cuda = found[k].cuda;
    op->overloads[k].close = found[k].close;
    op->overloads[k].keeps_rounding = (uint32_t)keeps_rounding;
    cuplug__states *states = op->overloads[k].states;
    if (states && !states->create) states->create = found[k].create;
  }
  atomic_store_explicit(&op->loaded, 1, memory_order_release);
  cuplug__registry_unlock();
}

/* Stock plugins contain the CUDA runtime, which opens libraries, and are tested. */
static int keeps_rounding(const cuplug__plugin *plugin, void *library) {
  return cuplug__is_stock(plugin->path) || cuplug__rounding_is_kept(library);
}

static int load_operator(cuplug_operator *op, cuplug_error *error) {
  void *library;
  int status = cuplug__open_code((cuplug__plugin *)op->plugin, &library, error);
  entries *found = status ? NULL : calloc(op->n_overloads, sizeof *found);
  if (!status)
    status = found ? resolve_all(op, library, found, error)
                   : cuplug__no_memory(error, "loading a plugin");
  if (!status) take_entries(op, found, keeps_rounding(op->plugin, library));
  free(found);
  if (status) cuplug__prefix(error, "%s: ", op->name);
  return status;
}

int cuplug__load_plugin(cuplug__plugin *plugin, cuplug_error *error) {
  int status = CUPLUG_OK;
  for (uint32_t k = 0; k < plugin->n_operators && !status; k++)
    status = load_operator(&plugin->operators[k], error);
  return status;
}

int cuplug_load_code(cuplug_operator *op, cuplug_error *error) {
  cuplug__clear(error);
  if (atomic_load_explicit(&op->loaded, memory_order_acquire)) return CUPLUG_OK;
  return load_operator(op, error);
}

void *cuplug__any_kernel(const cuplug_operator *op) {
  void *library = op->plugin->library;
  void *address = library ? cuplug__library_symbol(library, "cuplug_any_kernel") : NULL;
  void *(*any_kernel)(void);
  if (!address || !cuplug__library_holds(library, address, 1, CUPLUG__CODE)) return NULL;
  memcpy(&any_kernel, &address, sizeof any_kernel);
  return any_kernel();
}
