/* SPDX-License-Identifier: Apache-2.0 */
#include "discovery/table.h"

#include "base/status.h"
#include "discovery/note.h"

#include <cuplug/host.h>
#include <stdlib.h>
#include <string.h>

/* Sizes of ABI 1.0: the least that a table of this major version has. */
#define LEAST_HEADER_BYTES 308u
#define LEAST_ROW_BYTES 1024u
#define LEAST_CALL_BYTES 88u
_Static_assert(CUPLUG_ABI_MINOR || (sizeof(cuplug_table_header) == LEAST_HEADER_BYTES &&
                                    sizeof(cuplug_row) == LEAST_ROW_BYTES &&
                                    sizeof(cuplug_call) == LEAST_CALL_BYTES),
               "the sizes of ABI 1.0");

#define MAJOR(version) ((version) >> 16)
#define MINOR(version) ((version)&0xffffu)

static int is_name_character(char c, int first) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         (!first && c >= '0' && c <= '9');
}

int cuplug__is_identifier(const char *text) {
  if (!is_name_character(*text, 1)) return 0;
  while (is_name_character(*text, 0)) text++;
  return !*text;
}

void cuplug__row_operator(const cuplug_row *row, char name[64]) {
  const char *at = row->signature + strspn(row->signature, " ");
  size_t n = 0;
  while (n < 63 && is_name_character(at[n], 0)) n++;
  memcpy(name, at, n);
  name[n] = 0;
}

int cuplug__row_is_of(const cuplug_row *row, const char *name) {
  char own[64];
  cuplug__row_operator(row, own);
  return !strcmp(own, name);
}

/* The length of a well-formed UTF-8 character that a terminal shows, 0 for anything else. Of a
 * string that ends inside a character the terminating zero is refused as a continuation. */
static size_t character_bytes(const unsigned char *c) {
  if (c[0] < 0x80) return c[0] >= ' ' && c[0] != 0x7f;
  size_t n = c[0] >= 0xf0 ? 4 : c[0] >= 0xe0 ? 3 : 2;
  if (c[0] < 0xc2 || c[0] > 0xf4) return 0;
  for (size_t k = 1; k < n; k++)
    if ((c[k] & 0xc0) != 0x80) return 0;
  int overlong = (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xf0 && c[1] < 0x90);
  int surrogate = c[0] == 0xed && c[1] > 0x9f;
  int beyond = c[0] == 0xf4 && c[1] > 0x8f;
  int control = c[0] == 0xc2 && c[1] < 0xa0;
  return overlong || surrogate || beyond || control ? 0 : n;
}

/* Checks that an array of `room` bytes holds a zero-terminated line of UTF-8. */
static int check_text(const char *field, const char *text, size_t room, cuplug_error *error) {
  size_t n = strnlen(text, room);
  if (n == room)
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN, "%s: not zero-terminated within its %zu bytes",
                        field, room);
  for (size_t k = 0; k < n;) {
    size_t step = character_bytes((const unsigned char *)text + k);
    if (!step)
      return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                          "%s: byte 0x%02x at %zu, one line of UTF-8 is wanted", field,
                          (unsigned char)text[k], k);
    k += step;
  }
  return CUPLUG_OK;
}

#define CHECK_TEXT(name, array, error) check_text(name, array, sizeof(array), error)

static int check_abi(uint32_t version, cuplug_error *error) {
  if (MAJOR(version) == CUPLUG_ABI_MAJOR) return CUPLUG_OK;
  int old = MAJOR(version) < CUPLUG_ABI_MAJOR;
  return cuplug__fail(
      error, CUPLUG_ERROR_PLUGIN, "too %s: compiled for ABI %u.%u, this core has ABI %u.%u; %s",
      old ? "old" : "new", MAJOR(version), MINOR(version), CUPLUG_ABI_MAJOR, CUPLUG_ABI_MINOR,
      old ? "compile the plugin with this core's header" : "update cuplug");
}

static int check_least(const char *field, uint32_t seen, uint32_t least, cuplug_error *error) {
  if (seen >= least && seen % 4 == 0) return CUPLUG_OK;
  return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                      "%s: %u, a multiple of 4 of at least %u is wanted", field, seen, least);
}

static int check_sizes(const cuplug_table_header *header, uint64_t n_bytes, cuplug_error *error) {
  int status;
  if ((status = check_least("header_bytes", header->header_bytes, LEAST_HEADER_BYTES, error)))
    return status;
  if ((status = check_least("row_bytes", header->row_bytes, LEAST_ROW_BYTES, error))) return status;
  if ((status = check_least("call_bytes", header->call_bytes, LEAST_CALL_BYTES, error)))
    return status;
  /* Entries index an array of tensors, so their size is the same in a whole major version. */
  if (header->tensor_bytes != sizeof(cuplug_tensor))
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN, "tensor_bytes: %u, %zu is wanted",
                        header->tensor_bytes, sizeof(cuplug_tensor));
  uint64_t end = header->header_bytes + (uint64_t)header->n_rows * header->row_bytes;
  if (!header->n_rows) return cuplug__fail(error, CUPLUG_ERROR_PLUGIN, "n_rows: 0, no operator");
  if (end > n_bytes)
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                        "n_rows: %u rows of %u bytes end at byte %llu, the table has %llu",
                        header->n_rows, header->row_bytes, (unsigned long long)end,
                        (unsigned long long)n_bytes);
  return CUPLUG_OK;
}

static int check_header(const cuplug_table_header *header, cuplug_error *error) {
  int status;
  if ((status = CHECK_TEXT("name", header->name, error))) return status;
  if (!cuplug__is_identifier(header->name))
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN, "name: \"%s\", an identifier is wanted",
                        header->name);
  if ((status = CHECK_TEXT("version", header->version, error))) return status;
  return CHECK_TEXT("architectures", header->architectures, error);
}

static int check_entry(const char *field, const char *entry, size_t room, cuplug_error *error) {
  int status = check_text(field, entry, room, error);
  if (status || !*entry || cuplug__is_identifier(entry)) return status;
  return cuplug__fail(error, CUPLUG_ERROR_PLUGIN, "%s: \"%s\", an identifier is wanted", field,
                      entry);
}

static int check_signature(const char *text, cuplug_error *error) {
  cuplug_signature *parsed = malloc(sizeof(*parsed)); /* too large for a small stack */
  if (!parsed) return cuplug__no_memory(error, "reading a symbol table");
  int status = cuplug_parse_signature(text, parsed, NULL, error);
  free(parsed);
  if (!status) return CUPLUG_OK;
  if (error) error->status = CUPLUG_ERROR_PLUGIN;
  return CUPLUG_ERROR_PLUGIN;
}

int cuplug__row_check(const cuplug_row *row, cuplug_error *error) {
  int status;
  if ((status = check_entry("cuda_entry", row->cuda_entry, sizeof(row->cuda_entry), error)))
    return status;
  if ((status = check_entry("host_entry", row->host_entry, sizeof(row->host_entry), error)))
    return status;
  if ((status = CHECK_TEXT("signature", row->signature, error))) return status;
  if ((status = CHECK_TEXT("doc", row->doc, error))) return status;
  if (!*row->cuda_entry && !*row->host_entry)
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN, "no entry, a CUDA or a host entry is wanted");
  return check_signature(row->signature, error);
}

static uint32_t at_most(uint32_t seen, size_t known) {
  return seen < known ? seen : (uint32_t)known;
}

static int read_rows(cuplug__table *table, cuplug_error *error) {
  const cuplug_table_header *header = &table->header;
  table->rows = calloc(header->n_rows, sizeof(cuplug_row));
  if (!table->rows) return cuplug__no_memory(error, "reading a symbol table");
  const char *from = (const char *)table->bytes + header->header_bytes;
  for (uint32_t k = 0; k < header->n_rows; k++, from += header->row_bytes) {
    memcpy(&table->rows[k], from, at_most(header->row_bytes, sizeof(cuplug_row)));
    int status = cuplug__row_check(&table->rows[k], error);
    if (status) {
      cuplug__prefix(error, "row %u: ", k);
      return status;
    }
  }
  return CUPLUG_OK;
}

/* Checks the note in table->bytes and takes the table out of it. */
static int read_note(cuplug__table *table, cuplug_error *error) {
  cuplug_table_header *header = &table->header;
  int status;
  if (table->n_bytes < LEAST_HEADER_BYTES)
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN, "%llu bytes, at least %u are wanted",
                        (unsigned long long)table->n_bytes, LEAST_HEADER_BYTES);
  memcpy(header, table->bytes, LEAST_HEADER_BYTES);
  if (memcmp(header->magic, CUPLUG_TABLE_MAGIC, sizeof(header->magic)))
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN, "magic: not %s", CUPLUG_TABLE_MAGIC);
  if ((status = check_abi(header->abi_version, error))) return status;
  if ((status = check_sizes(header, table->n_bytes, error))) return status;
  memcpy(header, table->bytes, at_most(header->header_bytes, sizeof(*header)));
  if ((status = check_header(header, error))) return status;
  return read_rows(table, error);
}

#define BLANK_UNLESS_TEXT(array) \
  if (CHECK_TEXT("", array, NULL)) memset(array, 0, sizeof(array))

/* Keeps of a faulty table what may be shown. */
static void keep_texts(cuplug__table *table) {
  cuplug__table_free(table);
  table->header.n_rows = 0;
  BLANK_UNLESS_TEXT(table->header.name);
  BLANK_UNLESS_TEXT(table->header.version);
  BLANK_UNLESS_TEXT(table->header.architectures);
}

int cuplug__table_read(int fd, uint64_t file_bytes, cuplug__table *table, cuplug_error *error) {
  cuplug__reader reader;
  cuplug__note note;
  memset(table, 0, sizeof(*table));
  int status = cuplug__reader_start(&reader, fd, file_bytes, error);
  if (status) return status;
  status = cuplug__note_find(&reader, &note, error);
  table->seen = note.seen;
  table->sound = note.sound;
  if (status) return status;
  table->n_bytes = note.bytes;
  table->bytes = malloc(note.bytes);
  if (!table->bytes) return cuplug__no_memory(error, "reading a symbol table");
  status = cuplug__reader_copy(&reader, note.offset, table->bytes, note.bytes, error);
  if (!status && (status = read_note(table, error)) == CUPLUG_ERROR_PLUGIN)
    cuplug__prefix(error, "symbol table: ");
  if (status) keep_texts(table);
  return status;
}

void cuplug__table_free(cuplug__table *table) {
  free(table->rows);
  free(table->bytes);
  table->rows = NULL;
  table->bytes = NULL;
}
