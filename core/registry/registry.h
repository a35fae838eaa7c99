/* SPDX-License-Identifier: Apache-2.0 */
/* The plugins and operators of the process, and the results of names. They are found without a
 * lock; nothing is ever removed. The caller holds the lock, except where noted. */
#ifndef CUPLUG_CORE_REGISTRY_REGISTRY_H
#define CUPLUG_CORE_REGISTRY_REGISTRY_H

#include "discovery/search.h"
#include "registry/plugin.h"

/* One lock for all changes. Its holder neither takes it again nor calls the dynamic linker: that
 * has its own lock, held while constructors of libraries run, and they may call the core. Held by
 * no other thread in a forked child. */
void cuplug__registry_lock(void);
void cuplug__registry_unlock(void);

/* ---- Read without the lock ------------------------------------------------------------------- */

/* How many processes ago the core was first used: 1 there, 2 in a forked child, and so on. */
extern __attribute__((visibility("hidden"))) _Atomic uint32_t cuplug__era;
static inline uint32_t cuplug__registry_era(void) {
  return atomic_load_explicit(&cuplug__era, memory_order_relaxed);
}

/* The plugin registered last, then ->next. */
cuplug__plugin *cuplug__registry_plugins(void);
/* The plugin whose code was loaded from that path. */
cuplug__plugin *cuplug__registry_loaded_from(const char *path);
/* 1 if the code of this version of a file is loaded. */
int cuplug__registry_is_loaded(const cuplug__identity *identity);
/* The directories of cuplug_add_directory. */
const cuplug__added *cuplug__registry_added(void);

/* Never 0. Changes with the state on which all results depend: the variables of the search, plugins
 * given to cuplug_load, added directories, plugins that were reloaded. */
uint64_t cuplug__registry_moment(void);
/* The result of a plugin's name, or of an operator's name, at a moment, while its file is current;
 * with `loaded_only` only if the code is loaded, and then no file is inspected. */
cuplug__plugin *cuplug__registry_named(const char *name, uint64_t moment, int loaded_only);
cuplug_operator *cuplug__registry_found(const char *name, uint64_t moment, int loaded_only);
/* Stores for cuplug__registry_found that a search, begun at that moment, found an operator only by
 * its name. Takes the lock, the first time. */
void cuplug__registry_keep(cuplug_operator *op, uint64_t moment);

/* ---- Plugins of cuplug_load ------------------------------------------------------------------ */

/* Both take the lock, so that they miss no plugin whose rank changes meanwhile. */

/* The plugin with the greatest rank that has this name or, unless `op` is NULL, that operator. */
cuplug__plugin *cuplug__registry_first_ranked(const char *name, const char *op);
/* All of them, by descending rank, then NULL. The caller frees the array. NULL: no memory. */
cuplug__plugin **cuplug__registry_ranked(void);

/* ---- Changes --------------------------------------------------------------------------------- */

/* The plugin of a candidate: one known already, else a new one, which takes over the candidate's
 * table. If code has been loaded from that path, the plugin that it belongs to. */
int cuplug__registry_take(cuplug__candidate *candidate, const char *path, cuplug__plugin **plugin,
                          cuplug_error *error);
/* Adds a plugin, which replaces another in later searches. */
void cuplug__registry_replace(cuplug__plugin *old, cuplug__plugin *fresh);
/* Puts a plugin ahead of the search path and of those ranked before. */
void cuplug__registry_rank(cuplug__plugin *plugin);

#endif
