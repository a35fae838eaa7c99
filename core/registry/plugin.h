/* SPDX-License-Identifier: Apache-2.0 */
/* One plugin: its operators, made from its table, and its code. */
#ifndef CUPLUG_CORE_REGISTRY_PLUGIN_H
#define CUPLUG_CORE_REGISTRY_PLUGIN_H

#include "base/index.h"
#include "discovery/candidate.h"
#include "discovery/private.h"
#include "discovery/table.h"
#include "registry/operator.h"

/* The file that the dynamic linker loads, while threads do so. */
typedef struct cuplug__source {
  char *name;    /* owned; NULL: nobody loads */
  char *shown;   /* owned; the path for debuggers instead of a copy's; NULL: the same */
  int fd;        /* of a copy in memory, which the name leads to; -1: the file itself */
  pid_t process; /* in which the name leads to the copy */
  int n_users;
} cuplug__source;

enum { CUPLUG__BY_NAME, CUPLUG__BY_PATH, CUPLUG__BY_IDENTITY, CUPLUG__N_KEYS };

/* A plugin whose table was read. Never freed once it is registered; the registry's lock is held to
 * write fields that are not (atomic) or complete by then, and to read them. */
struct cuplug__plugin {
  cuplug__plugin *next;                  /* registered before this one */
  cuplug__plugin *alike[CUPLUG__N_KEYS]; /* registered before, with the same hash of that key */
  char *path;
  cuplug__identity identity;
  cuplug__table table;
  uint32_t n_operators;
  cuplug_operator *operators;
  cuplug__index names;         /* of the operators */
  cuplug__overload *overloads; /* table.n_rows of them, those of one operator adjacent */
  const char **tensors;        /* the names of all tensors of all overloads */
  _Atomic uint64_t named;      /* cuplug__registry_moment when its name led to it; 0: never */
  _Atomic uint64_t rank;       /* counts cuplug_load: the largest is searched first; 0 without */
  void *_Atomic library;       /* NULL until the code is loaded */
  cuplug__states *states;      /* of the overloads without their own; NULL: none */
  int has_digest;
  uint8_t digest[32]; /* of the file, if requested */
  int is_in_place;    /* 1: it was loaded from the file itself, not from a copy */
  cuplug__source source;
  cuplug__privates privates; /* does not change once there are files */
  int is_claiming;           /* 1: their names are this plugin's */
};

/* Makes the operators of a plugin from the checked rows of its table. */
int cuplug__plugin_fill(cuplug__plugin *plugin, cuplug_error *error);
/* A plugin of a candidate, whose table it takes over. It is not in the registry. */
int cuplug__plugin_make(cuplug__candidate *candidate, const char *path, cuplug__plugin **plugin,
                        cuplug_error *error);
/* Frees a plugin that is not in the registry. */
void cuplug__plugin_free(cuplug__plugin *plugin);

/* NULL: it has none of that name. */
cuplug_operator *cuplug__plugin_operator(const cuplug__plugin *plugin, const char *name);

/* 1 while the file is the one whose table was read, or its code is loaded. Opens nothing. */
int cuplug__plugin_is_current(const cuplug__plugin *plugin);

#endif
