/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file: its symbol table is read, or rejected with a reason. Built as
 *   clang -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Iinclude -Icore fuzz_table.c core/...
 */

#include "base/status.h"
#include "discovery/table.h"
#include <internal/signature.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define require(condition)                                                  \
  do {                                                                      \
    if (condition) break;                                                   \
    fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
    abort();                                                                \
  } while (0)

/* Checks the properties of accepted tables that the rest of the core relies on. */
static void check_accepted(const cuplug__table *table) {
  cuplug_signature *signature;
  char name[CUPLUG_MAX_NAME];
  require(table->notes.is_sound && table->notes.n_notes && table->n_rows);
  require(cuplug__is_identifier(table->name) && strlen(table->name) < CUPLUG_MAX_NAME);
  for (uint32_t k = 0; k < table->n_rows; k++) {
    const cuplug_overload *row = &table->rows[k];
    require(row->text_bytes && !row->text[row->text_bytes - 1]);
    require(cuplug__is_identifier(row->host_entry) || cuplug__is_identifier(row->cuda_entry) ||
            row->has_other_entry);
    require(row->number < 1000000000);
    require(!cuplug_parse_signature(row->signature, &signature, NULL, NULL));
    cuplug__overload_operator(row, name);
    require(!strcmp(signature->name, name));
    cuplug_free_signature(signature);
    require(!strcmp(cuplug_overload_property(row, "signature"), row->signature));
    require(!cuplug_overload_property(row, "no such key"));
  }
}

static void check_refused(const cuplug__table *table, const cuplug_error *error, int status) {
  require(status == CUPLUG_ERROR_PLUGIN && error->status == status && *error->message);
  require(!table->n_rows && table->name && table->version && table->architectures);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  cuplug__table table;
  cuplug_error error;
  int fd = memfd_create("fuzz", MFD_CLOEXEC);
  require(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes);
  cuplug__clear(&error);
  int status = cuplug__table_read(fd, bytes, &table, &error);
  if (status)
    check_refused(&table, &error, status);
  else
    check_accepted(&table);
  cuplug__table_end(&table);
  /* The file is shorter than when its size was read. */
  status = cuplug__table_read(fd, bytes + 4096, &table, &error);
  cuplug__table_end(&table);
  close(fd);
  return 0;
}
