/* SPDX-License-Identifier: Apache-2.0 */
/* The registry's data of a plugin and its operators, created from its table. Written under the
 * registry's lock; fields that the call path reads without it are marked (atomic) or do not change
 * once the operator exists. */
#ifndef CUPLUG_CORE_REGISTRY_PLUGIN_H
#define CUPLUG_CORE_REGISTRY_PLUGIN_H

#include "base/hash.h"
#include "discovery/candidate.h"
#include "discovery/table.h"

#include <internal/frame.h>
#include <pthread.h>
#include <stdatomic.h>

typedef struct cuplug__plugin cuplug__plugin;
typedef struct cuplug__overload_sets cuplug__overload_sets;

#define CUPLUG__N_GPUS 64 /* at most */

/* A state that one call uses at a time. */
typedef struct cuplug__held {
  struct cuplug__held *next;
  void *state;
  uint32_t era; /* in which it was made */
} cuplug__held;

typedef struct cuplug__state_slot {
  _Atomic uint32_t era; /* of `shared`; 0: it is not created */
  uint32_t maker_era;   /* in which a thread creates it; 0: no thread does */
  pthread_t maker;
  void *shared;
  cuplug__held *idle;
} cuplug__state_slot;

typedef int cuplug__create_state(const cuplug_call *call, void **state);

/* The states that an exported function makes, on the host and for each GPU: entry/prepare.h. */
typedef struct cuplug__states {
  const char *symbol;
  cuplug__create_state *create; /* NULL before the code is loaded */
  int is_exclusive;
  cuplug__state_slot slots[1 + CUPLUG__N_GPUS];
} cuplug__states;

typedef int cuplug__close_handle(const cuplug_call *call, void *handle);

/* One row of the table, ready to be matched and called. */
typedef struct cuplug__callable {
  const cuplug_overload *row;
  const cuplug_signature *signature; /* the row's */
  int64_t inline_call_bytes; /* on the host it returns at once if no array is larger; -1: never */
  /* An earlier tensor that tensor k must equal in dtype and shape; k without one. */
  uint8_t like[CUPLUG_MAX_ARGUMENTS];
  uint8_t scalars[CUPLUG_MAX_ARGUMENTS]; /* the parameters that are not arrays */
  uint32_t n_scalars, n_arrays;          /* of the parameters; n_arrays: single ones */
  cuplug_entry *host; /* NULL before the code is loaded, or without an entry for that device type */
  cuplug_entry *cuda;
  void *context;                         /* of entries made in memory */
  uint32_t null_strides_when_contiguous; /* as in cuplug_definition_overload */
  uint32_t prefers_host;                 /* 1: arrays of the host are offloaded only on request */
  uint32_t keeps_rounding; /* 1: the host entry cannot change how its thread computes */
  cuplug_reshape *reshape;
  cuplug__states *states;      /* the plugin's, or its own; NULL: none */
  cuplug__close_handle *close; /* of the handles that it makes */
  _Atomic uint64_t prepared;   /* bit d: checked and ready for GPU d */
} cuplug__callable;

struct cuplug_operator {
  uint64_t number; /* from 1 on, unique in this process; 0: its matches are not cached */
  const cuplug__plugin *plugin;
  const char *name;
  cuplug_operator *next; /* of the plugin's, with the same hash of the name */
  uint32_t n_overloads;
  cuplug__callable *overloads;
  cuplug__overload_sets *rows; /* of an operator with several: cuplug__overloads_make */
  _Atomic int loaded;          /* 1: entries are resolved. Read with acquire */
  _Atomic uint64_t found; /* cuplug__registry_moment when it was found only by name; 0: never */
  cuplug_operator *alike; /* found only by name before, with the same hash of the name */
};

/* A handle, made by an entry: entry/handle.h. */
#define CUPLUG__CLOSED (1u << 31)
struct cuplug_handle {
  const cuplug_operator *op; /* which has created it */
  const cuplug__callable *overload;
  void *pointer; /* the plugin's; NULL: the entry has not set it yet */
  cuplug_device device;
  uint32_t era;          /* in which it was made */
  _Atomic uint32_t uses; /* by calls in progress, and CUPLUG__CLOSED */
};

/* Makes an overload of a row whose signature is parsed, as matching and reports need it. */
void cuplug__make_overload(cuplug__callable *o, const cuplug_overload *row);

#define CUPLUG__NAME_BYTES 96 /* names have at most 63 */

/* The name of tensor number `tensor` of a call, whose outputs begin with number `n_inputs`;
 * UINT32_MAX if that is unknown, and the tensor is an input. */
void cuplug__name_tensor(char text[CUPLUG__NAME_BYTES], const cuplug__callable *o, uint32_t tensor,
                         uint32_t n_inputs);

/* ---- Which rows may take some arguments ------------------------------------------------------ */

/* By kinds, dtypes and ranks: sets with a bit for each row, so that the first that fits is found
 * among a thousand. */

/* Makes the sets of an operator whose overloads are parsed; of one with a single row none. */
int cuplug__overloads_make(cuplug_operator *op, cuplug_error *error);

/* The first overload from `from` on that may take the arguments; op->n_overloads if none may.
 * An operator with a single overload has no sets: the function is not called for it. */
uint32_t cuplug__overloads_next(const cuplug_operator *op, const cuplug_argument *args,
                                uint32_t n_args, uint32_t from);

/* ---- Plugins --------------------------------------------------------------------------------- */

/* The file that the dynamic linker loads, while threads do so. */
typedef struct cuplug__source {
  char *name;    /* owned; NULL: nobody loads */
  char *shown;   /* owned; the path for debuggers instead of a copy's; NULL: the same */
  int fd;        /* of a copy in memory, which the name leads to; -1: the file itself */
  pid_t process; /* in which the name leads to the copy */
  int n_users;
} cuplug__source;

enum { CUPLUG__BY_NAME, CUPLUG__BY_PATH, CUPLUG__BY_IDENTITY, CUPLUG__N_KEYS };

/* A library that a plugin, or one of these libraries, finds by its own RPATH or RUNPATH: the file
 * that the dynamic linker would load, if it did not have that name yet. */
typedef struct cuplug__private {
  char *needed; /* the name that it is looked for by; owned */
  char *soname; /* in the file; NULL: none; owned */
  char *path;   /* owned */
  dev_t device;
  ino_t inode;
} cuplug__private;

typedef struct cuplug__privates {
  cuplug__private *files; /* owned */
  size_t n_files;
} cuplug__privates;
void cuplug__privates_end(cuplug__privates *privates);

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
  cuplug_operator **named_like; /* table.n_rows lists of operators, by the hash of the name */
  cuplug__callable *overloads;  /* table.n_rows of them, the rows of one operator are adjacent */
  _Atomic uint64_t named;       /* cuplug__registry_moment when its name led to it; 0: never */
  _Atomic uint64_t rank;        /* counts cuplug_load: the largest is searched first; 0 without */
  void *_Atomic library;        /* NULL until the code is loaded */
  cuplug__states *states;       /* of the overloads without their own; NULL: none */
  _Atomic int has_digest;
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
