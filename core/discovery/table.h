/* SPDX-License-Identifier: Apache-2.0 */
/* The symbol table of a file, checked in every field. Executes nothing. */
#ifndef CUPLUG_CORE_DISCOVERY_TABLE_H
#define CUPLUG_CORE_DISCOVERY_TABLE_H

#include "discovery/note.h"

#include <internal/signature.h>

/* "", the value of an absent field. */
extern const char cuplug__unsaid[1];

/* The exported function that makes a state: of a plugin, or of a row that has its own. */
typedef struct cuplug__state_key {
  const char *symbol; /* "": none */
  int is_exclusive;
} cuplug__state_key;

/* An overload. The strings are parts of `text`, which it owns; "" for an absent field. */
struct cuplug_overload {
  const char *signature; /* begins with the operator's name */
  const char *doc;
  const char *host_entry; /* symbol; "": no entry for that device type */
  const char *cuda_entry;
  const char *close; /* symbol, of a row that makes a handle */
  cuplug__state_key state;
  const char *text; /* the whole note: zero-terminated "key=value", consecutive */
  uint32_t text_bytes;
  uint32_t flags;           /* CUPLUG_OVERLOAD_TAKES_STRIDES ... */
  uint32_t has_other_entry; /* 1: for an unknown device, entry.N */
  unsigned long number;     /* its order in its source: compilers emit notes in any order */
  cuplug_signature *parsed; /* owned */
};

/* A table. Its strings are in the notes; absent fields of a faulty one are "". */
typedef struct cuplug__table {
  cuplug__notes notes; /* owned; none where the table was made in memory */
  char *made;          /* text of a table made in memory; owned */
  const char *name;    /* of the plugin */
  const char *version;
  const char *architectures;
  cuplug__state_key state;
  uint32_t abi_version;
  uint32_t n_rows;
  cuplug_overload *rows; /* as the source has them; owned */
} cuplug__table;

/* Makes a table empty, without properties of the plugin. */
static inline void cuplug__table_start(cuplug__table *table) {
  *table = (cuplug__table){.name = cuplug__unsaid,
                           .version = cuplug__unsaid,
                           .architectures = cuplug__unsaid,
                           .state = {cuplug__unsaid, 0}};
}

/* Reads the table of an open file of `file_bytes` bytes. ERROR_PLUGIN contains the reason, without
 * the file's name; the table then has the readable fields of the plugin, and no overloads. The
 * caller ends it, also after an error. */
int cuplug__table_read(int fd, uint64_t file_bytes, cuplug__table *table, cuplug_error *error);
void cuplug__table_end(cuplug__table *table);
/* Frees the parsed signatures of all rows. */
void cuplug__table_drop_signatures(cuplug__table *table);

/* Reads the text of an operator's note into an overload of a plugin for that ABI, and checks every
 * field; ERROR_PLUGIN contains the reason, and nothing is parsed then. */
int cuplug__read_overload(const char *text, uint32_t text_bytes, uint32_t abi_version,
                          cuplug_overload *row, cuplug_error *error);

/* The key of flag k in a row's text, and the flag, CUPLUG_OVERLOAD_...; NULL past the last. */
const char *cuplug__flag_key(uint32_t k, uint32_t *flag);

/* The name of the operator that a row describes. */
void cuplug__overload_operator(const cuplug_overload *row, char name[64]);

/* 1 for a C identifier. */
int cuplug__is_identifier(const char *text);

#endif
