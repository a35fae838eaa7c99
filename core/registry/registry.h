/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins and operators that the process knows. All functions want the lock to be held, but one
 * that says so and those that make and free what the registry does not know yet. */
#ifndef CUPLUG_CORE_REGISTRY_REGISTRY_H
#define CUPLUG_CORE_REGISTRY_REGISTRY_H

#include "discovery/candidate.h"
#include "discovery/private.h"
#include "discovery/search.h"
#include "discovery/table.h"
#include "registry/operator.h"

/* What the dynamic linker is given to load, while threads do so. */
typedef struct cuplug__source {
  char *name;    /* owned; NULL: nobody loads */
  char *shown;   /* owned; what debuggers are to read in place of a copy; NULL: the same */
  int fd;        /* of a copy in memory, which the name leads to; -1: the file itself */
  pid_t process; /* in which the name leads to the copy */
  int n_users;
} cuplug__source;

/* A plugin whose table was taken in. Never freed. */
struct cuplug__plugin {
  cuplug__plugin *next; /* registered before this one */
  char *path;
  cuplug__identity identity;
  cuplug__table table;
  uint32_t n_operators;
  cuplug_operator *operators;
  cuplug__overload *overloads;   /* table.n_rows of them, those of one operator together */
  const char **tensors;          /* the names of all tensors of all overloads */
  cuplug_fault *_Atomic *faults; /* CUPLUG__N_FAULTS of each overload */
  uint64_t rank;                 /* counts cuplug_load: the greatest is searched first; 0 without */
  void *library;                 /* NULL until the code is loaded */
  cuplug__states *states;        /* of the overloads without their own; NULL: none */
  int has_digest;
  uint8_t digest[32]; /* of the file, where it was asked for */
  int is_in_place;    /* 1: it was loaded from the file itself, not from a copy */
  cuplug__source source;
  cuplug__privates privates; /* does not change once there are files */
  int is_claiming;           /* 1: their names are this plugin's */
};

/* One lock for everything here. Whoever holds it neither takes it again nor asks the dynamic linker
 * for anything: that has a lock of its own, held while constructors of libraries run, and they may
 * call the core. Held by no other thread in a forked child. */
void cuplug__registry_lock(void);
void cuplug__registry_unlock(void);

/* How many processes ago the core was first used: 1 there, 2 in a forked child, and so on. */
uint32_t cuplug__registry_era(void);

/* The plugin registered last, then ->next. */
cuplug__plugin *cuplug__registry_plugins(void);
/* Changes when answers found before are not good any more. */
uint64_t cuplug__registry_generation(void);
/* The plugin loaded by cuplug_load with the greatest rank below `rank`; NULL when there is none. */
cuplug__plugin *cuplug__registry_ranked_below(uint64_t rank);
/* The plugin whose code was loaded from that path. */
cuplug__plugin *cuplug__registry_loaded_from(const char *path);
/* Starts a search of all directories, those of cuplug_add_directory among them. Takes the lock. */
int cuplug__registry_search(cuplug__search *search, const cuplug__trust *trust,
                            cuplug_error *error);

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
/* Those of them whose code is loaded, for which no file is looked at. */
cuplug_operator *cuplug__registry_in_use(const char *query);
/* Keeps an answer of a search that began in a generation, unless that has passed. */
int cuplug__registry_cache(const char *query, cuplug_operator *op, uint64_t generation,
                           cuplug_error *error);

#endif
