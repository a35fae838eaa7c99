/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins and operators that the process knows. All functions want the lock to be held, but those
 * that make and free what the registry does not know yet. */
#ifndef CUPLUG_CORE_REGISTRY_REGISTRY_H
#define CUPLUG_CORE_REGISTRY_REGISTRY_H

#include "discovery/candidate.h"
#include "discovery/table.h"
#include "registry/operator.h"

/* A plugin whose table was taken in. Never freed. */
struct cuplug__plugin {
  cuplug__plugin *next; /* registered before this one */
  char *path;
  cuplug__identity identity;
  cuplug__table table;
  uint32_t n_operators;
  cuplug_operator *operators;
  cuplug__overload *overloads; /* table.n_rows of them, those of one operator together */
  uint64_t rank;               /* counts cuplug_load: the greatest is searched first; 0 without */
  void *library;               /* NULL until the code is loaded */
};

/* One lock for everything here. Whoever holds it neither takes it again nor asks the dynamic linker
 * for anything: that has a lock of its own, held while constructors of libraries run, and they may
 * call the core. Held by no other thread in a forked child. */
void cuplug__registry_lock(void);
void cuplug__registry_unlock(void);

/* 1 in a process forked since the core was first used. */
int cuplug__registry_is_forked(void);

/* The plugin registered last, then ->next. */
cuplug__plugin *cuplug__registry_plugins(void);
/* The plugin loaded by cuplug_load with the greatest rank below `rank`; NULL when there is none. */
cuplug__plugin *cuplug__registry_ranked_below(uint64_t rank);
/* The plugin whose code was loaded from that path. */
cuplug__plugin *cuplug__registry_loaded_from(const char *path);
/* Directories of cuplug_add_directory. */
char *const *cuplug__registry_added(size_t *n_added);

/* The plugin of a candidate: one known already, else a new one, which takes over the candidate's
 * table. Where code has been loaded from that path, the plugin that it belongs to. */
int cuplug__registry_take(cuplug__candidate *candidate, const char *path, cuplug__plugin **plugin,
                          cuplug_error *error);
/* Makes the operators of a plugin from the checked rows of its table. */
int cuplug__plugin_fill(cuplug__plugin *plugin, cuplug_error *error);
/* A plugin of a candidate, whose table it takes over. The registry does not know it. */
int cuplug__plugin_make(cuplug__candidate *candidate, const char *path, cuplug__plugin **plugin,
                        cuplug_error *error);
/* Frees one that the registry does not know. */
void cuplug__plugin_free(cuplug__plugin *plugin);
/* Adds a plugin, which is found in place of another from now on. */
void cuplug__registry_replace(cuplug__plugin *old, cuplug__plugin *fresh);
cuplug_operator *cuplug__plugin_operator(const cuplug__plugin *plugin, const char *name);

/* Puts a plugin ahead of the search path and of those ranked before. */
void cuplug__registry_rank(cuplug__plugin *plugin);

/* Names found before, as long as the search path stays the same. */
cuplug_operator *cuplug__registry_cached(const char *query);
int cuplug__registry_cache(const char *query, cuplug_operator *op, cuplug_error *error);

#endif
