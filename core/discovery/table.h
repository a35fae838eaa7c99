/* SPDX-License-Identifier: Apache-2.0 */
/* The symbol table of a file, checked in every field. Executes nothing. */
#ifndef CUPLUG_CORE_DISCOVERY_TABLE_H
#define CUPLUG_CORE_DISCOVERY_TABLE_H

#include <cuplug/plugin.h>

/* A table. Fields that the file's ABI minor version lacks are zero; those that this core does not
 * know are only in `bytes`. */
typedef struct cuplug__table {
  cuplug_table_header header;
  cuplug_row *rows; /* header.n_rows of them; owned */
  void *bytes;      /* the note as it lies in the file; owned */
  uint64_t n_bytes;
  int seen;  /* 1: the file has a table, whatever is wrong with it */
  int sound; /* 1: the file is a whole shared object for this machine */
} cuplug__table;

/* Reads the table of an open file of `file_bytes` bytes. ERROR_PLUGIN says what is wrong, without
 * the file's name; the table then holds `seen` and what header could be read, and no rows. */
int cuplug__table_read(int fd, uint64_t file_bytes, cuplug__table *table, cuplug_error *error);
void cuplug__table_free(cuplug__table *table);

/* Checks a row in every field; ERROR_PLUGIN says what is wrong. */
int cuplug__row_check(const cuplug_row *row, cuplug_error *error);

/* The name of the operator that a checked row describes. */
void cuplug__row_operator(const cuplug_row *row, char name[64]);
int cuplug__row_is_of(const cuplug_row *row, const char *name);

/* 1 for a C identifier. */
int cuplug__is_identifier(const char *text);

#endif
