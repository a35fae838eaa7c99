/* SPDX-License-Identifier: Apache-2.0 */
#include "discovery/table.h"

#include "base/status.h"
#include "signature/parser.h"

#include <stdlib.h>
#include <string.h>

static const char doing[] = "reading a symbol table";

int cuplug__is_identifier(const char *text) {
  const char *at = text;
  while (cuplug__is_word(*at)) at++;
  return at > text && !*at && (*text < '0' || *text > '9');
}

void cuplug__overload_operator(const cuplug_overload *row, char name[64]) {
  const char *at = row->signature + strspn(row->signature, " ");
  size_t n = 0;
  while (n < 63 && cuplug__is_word(at[n])) n++;
  memcpy(name, at, n);
  name[n] = 0;
}

/* Checks that a string of n bytes is a line of UTF-8. */
static int check_line(const char *key, const char *text, size_t n, cuplug_error *error) {
  const size_t k = cuplug__shown_bytes(text, n);
  if (!text[k]) return CUPLUG_OK;
  return cuplug__reject(error, "%s: got byte 0x%02x at %zu, expected one line of UTF-8", key,
                        (unsigned char)text[k], k);
}

/* ---- The text of a note ---------------------------------------------------------------------- */

typedef struct field {
  char key[32]; /* without a leading "!" */
  const char *value;
  int is_critical;
} field;

static const unsigned char in_keys[256] = {
    ['a' ... 'z'] = 1, ['0' ... '9'] = 1, ['_'] = 1, ['.'] = 1};

/* Splits one string of a note, of n_bytes without its zero. */
static int read_field(const char *string, size_t n_bytes, field *f, cuplug_error *error) {
  size_t n = 0;
  f->is_critical = *string == '!';
  const char *key = string + f->is_critical;
  while (in_keys[(unsigned char)key[n]]) n++;
  if (!n || n >= sizeof(f->key) || (key[n] && key[n] != '='))
    return cuplug__reject(error, "got the key \"%.40s\", expected a to z, 0 to 9, _ and .", string);
  memcpy(f->key, key, n);
  f->key[n] = 0;
  f->value = key[n] ? key + n + 1 : key + n;
  return check_line(f->key, f->value, (size_t)(string + n_bytes - f->value), error);
}

/* The result of one field. Unknown fields are skipped unless critical. */
typedef int take_field(void *to, const field *f, cuplug_error *error);

static int skip_field(const field *f, cuplug_error *error) {
  if (!f->is_critical) return CUPLUG_OK;
  return cuplug__reject(
      error, "%s: got a required property that this core does not know; update cuplug", f->key);
}

static int read_text(const char *text, uint32_t n_bytes, take_field *take, void *to,
                     cuplug_error *error) {
  field f;
  if (!n_bytes || text[n_bytes - 1])
    return cuplug__reject(error, "its text does not end with a zero");
  for (const char *at = text, *end; at < text + n_bytes; at = end + 1) {
    end = at + strlen(at);
    if (at == end) continue;
    int status = read_field(at, (size_t)(end - at), &f, error);
    if (!status) status = take(to, &f, error);
    if (status) return status;
  }
  return CUPLUG_OK;
}

const char cuplug__unsaid[1] = "";

static int take_once(const char **to, const field *f, cuplug_error *error) {
  if (*to != cuplug__unsaid) return cuplug__reject(error, "%s: occurs twice", f->key);
  *to = f->value;
  return CUPLUG_OK;
}

static int check_symbol(const char *key, const char *symbol, cuplug_error *error) {
  if (cuplug__is_identifier(symbol)) return CUPLUG_OK;
  return cuplug__reject(error, "%s: got \"%s\", expected an identifier", key, symbol);
}

/* 1: the field names the function that makes a state. */
static int is_state(const field *f) {
  return !strcmp(f->key, "state") || !strcmp(f->key, "exclusive_state");
}

static int take_state(cuplug__state_key *state, const field *f, cuplug_error *error) {
  const int status = take_once(&state->symbol, f, error);
  state->is_exclusive = *f->key == 'e';
  return status ? status : check_symbol(f->key, f->value, error);
}

/* ---- Operators ------------------------------------------------------------------------------- */

static const struct {
  const char *key;
  uint32_t flag;
} flags[] = {{"takes_strides", CUPLUG_OVERLOAD_TAKES_STRIDES},
             {"cuda_takes_strides", CUPLUG_OVERLOAD_CUDA_TAKES_STRIDES},
             {"prefers_cuda", CUPLUG_OVERLOAD_PREFERS_CUDA},
             {"nonblocking", CUPLUG_OVERLOAD_NONBLOCKING},
             {"no_split", CUPLUG_OVERLOAD_NO_SPLIT},
             {"in_place", CUPLUG_OVERLOAD_IN_PLACE}};

const char *cuplug__flag_key(uint32_t k, uint32_t *flag) {
  if (k >= sizeof flags / sizeof *flags) return NULL;
  *flag = flags[k].flag;
  return flags[k].key;
}

/* Tables have thousands of fields, and most keys differ in their first letter. */
static int is_key(const field *f, const char *key) {
  return *f->key == *key && !strcmp(f->key, key);
}

/* A later version may define a value: a table with one does not mean this flag. */
static int take_flag(cuplug_overload *row, uint32_t flag, const field *f, cuplug_error *error) {
  if (*f->value)
    return cuplug__reject(error, "%s: got \"%s\", expected no value", f->key, f->value);
  row->flags |= flag;
  return CUPLUG_OK;
}

static int take_number(cuplug_overload *row, const field *f, cuplug_error *error) {
  const size_t n = strspn(f->value, "0123456789");
  if (!n || n > 9 || f->value[n])
    return cuplug__reject(error, "order: got \"%s\", expected at most 9 digits", f->value);
  row->number = strtoul(f->value, NULL, 10);
  return CUPLUG_OK;
}

static int take_row_field(void *to, const field *f, cuplug_error *error) {
  cuplug_overload *row = to;
  if (is_key(f, "signature")) return take_once(&row->signature, f, error);
  if (is_key(f, "doc")) return take_once(&row->doc, f, error);
  if (is_key(f, "host")) return take_once(&row->host_entry, f, error);
  if (is_key(f, "cuda")) return take_once(&row->cuda_entry, f, error);
  if (is_key(f, "close")) return take_once(&row->close, f, error);
  if (is_key(f, "order")) return take_number(row, f, error);
  for (size_t k = 0; k < sizeof flags / sizeof *flags; k++)
    if (is_key(f, flags[k].key)) return take_flag(row, flags[k].flag, f, error);
  if (is_state(f)) return take_state(&row->state, f, error);
  if (!strncmp(f->key, "entry.", 6)) row->has_other_entry |= *f->value != 0;
  return skip_field(f, error);
}

static int parse(cuplug_overload *row, uint32_t abi_version, cuplug_error *error) {
  const int status = cuplug__parse_of_abi(row->signature, abi_version, &row->parsed, NULL, error);
  if (!status && row->parsed->n_element_ranges) row->flags |= CUPLUG_OVERLOAD_ELEMENT_RANGES;
  if (!status || status == CUPLUG_ERROR_MEMORY) return status;
  if (error) error->status = CUPLUG_ERROR_PLUGIN;
  return CUPLUG_ERROR_PLUGIN;
}

/* Entries that take no strides get C-contiguous copies of inputs. */
static int check_like(const cuplug_overload *row, cuplug_error *error) {
  const cuplug_signature *s = row->parsed;
  for (int32_t k = 0; k < s->n_outputs; k++)
    if (s->parameters[s->n_parameters + k].like &&
        !(row->flags & (CUPLUG_OVERLOAD_TAKES_STRIDES | CUPLUG_OVERLOAD_CUDA_TAKES_STRIDES)))
      return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                          "%s: got an output like an input, expected CUPLUG_TAKES_STRIDES in its "
                          "description (the entry computes with the strides of both)",
                          s->name);
  return CUPLUG_OK;
}

/* The rules for overloads with handles. A call that creates one is never split. */
static int check_handles(cuplug_overload *row, cuplug_error *error) {
  const cuplug_signature *s = row->parsed;
  if (s->n_handles || s->made) row->flags |= CUPLUG_OVERLOAD_HANDLES;
  if (s->made) row->flags |= CUPLUG_OVERLOAD_NO_SPLIT;
  if (!s->made == !*row->close)
    return s->made ? check_symbol("close", row->close, error) : CUPLUG_OK;
  return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                      s->made
                          ? "close: got none, expected CUPLUG_CLOSE(function) (it makes a handle)"
                          : "close: got \"%.80s\", expected none (it makes no handle)",
                      row->close);
}

int cuplug__read_overload(const char *text, uint32_t text_bytes, uint32_t abi_version,
                          cuplug_overload *row, cuplug_error *error) {
  *row = (cuplug_overload){.signature = cuplug__unsaid,
                           .doc = cuplug__unsaid,
                           .host_entry = cuplug__unsaid,
                           .cuda_entry = cuplug__unsaid,
                           .close = cuplug__unsaid,
                           .state = {cuplug__unsaid, 0},
                           .text = text,
                           .text_bytes = text_bytes};
  int status = read_text(text, text_bytes, take_row_field, row, error);
  if (!status && *row->host_entry) status = check_symbol("host", row->host_entry, error);
  if (!status && *row->cuda_entry) status = check_symbol("cuda", row->cuda_entry, error);
  if (status) return status;
  if (!*row->cuda_entry && !*row->host_entry && !row->has_other_entry)
    return cuplug__reject(error, "got no entry, expected a CUDA or a host entry");
  if ((status = parse(row, abi_version, error)) || (status = check_handles(row, error)) ||
      (status = check_like(row, error))) {
    cuplug_free_signature(row->parsed);
    row->parsed = NULL;
  }
  return status;
}

const char *cuplug_overload_property(const cuplug_overload *row, const char *key) {
  field f;
  for (const char *at = row->text; at < row->text + row->text_bytes; at += strlen(at) + 1)
    if (*at && !read_field(at, strlen(at), &f, NULL) && !strcmp(f.key, key)) return f.value;
  return NULL;
}

const char *cuplug_overload_field(const cuplug_overload *row, uint32_t k) {
  for (const char *at = row->text; at < row->text + row->text_bytes; at += strlen(at) + 1)
    if (*at && !k--) return at;
  return NULL;
}

static int compare_rows(const void *a, const void *b) {
  const cuplug_overload *x = a, *y = b;
  const unsigned long m = x->number, n = y->number;
  return m != n ? (m > n) - (m < n) : (x->text > y->text) - (x->text < y->text);
}

/* ---- The plugin ------------------------------------------------------------------------------ */

static int read_abi(const char *text, uint32_t *version) {
  char *end;
  const unsigned long major = strtoul(text, &end, 10);
  if (end == text || *end != '.') return 0;
  const char *rest = end + 1;
  const unsigned long minor = strtoul(rest, &end, 10);
  *version = (uint32_t)(major << 16 | minor);
  return end != rest && !*end && major < 65536 && minor < 65536;
}

static int fail_abi(uint32_t version, cuplug_error *error) {
  const int is_old = version >> 16 < CUPLUG_ABI_MAJOR;
  return cuplug__reject(error, "too %s: compiled for ABI %u.%u, this core has ABI %u.%u; %s",
                        is_old ? "old" : "new", version >> 16, version & 65535, CUPLUG_ABI_MAJOR,
                        CUPLUG_ABI_MINOR,
                        is_old ? "compile the plugin with this core's header" : "update cuplug");
}

static int take_plugin_field(void *to, const field *f, cuplug_error *error) {
  cuplug__table *table = to;
  if (!strcmp(f->key, "abi")) {
    if (table->abi_version) return cuplug__reject(error, "abi: occurs twice");
    if (!read_abi(f->value, &table->abi_version))
      return cuplug__reject(error, "abi: got \"%s\", expected a version such as 2.0", f->value);
    return table->abi_version >> 16 == CUPLUG_ABI_MAJOR ? CUPLUG_OK
                                                        : fail_abi(table->abi_version, error);
  }
  if (!strcmp(f->key, "name")) return take_once(&table->name, f, error);
  if (!strcmp(f->key, "version")) return take_once(&table->version, f, error);
  if (!strcmp(f->key, "architectures")) return take_once(&table->architectures, f, error);
  if (is_state(f)) return take_state(&table->state, f, error);
  return skip_field(f, error);
}

static int read_plugin(cuplug__table *table, const cuplug__note *note, cuplug_error *error) {
  if (table->abi_version) return cuplug__reject(error, "got two plugins in one file, expected one");
  int status = read_text(note->text, note->text_bytes, take_plugin_field, table, error);
  if (status) return status;
  if (!table->abi_version)
    return cuplug__reject(error, "abi: got none, expected a version such as 2.0");
  if (strlen(table->name) < CUPLUG_MAX_NAME && cuplug__is_identifier(table->name)) return CUPLUG_OK;
  return cuplug__reject(error,
                        "name: got \"%.80s\", expected an identifier of at most %d characters",
                        table->name, CUPLUG_MAX_NAME - 1);
}

static int read_row(cuplug__table *table, const cuplug__note *note, cuplug_error *error) {
  cuplug_overload *row = &table->rows[table->n_rows];
  int status = cuplug__read_overload(note->text, note->text_bytes, table->abi_version, row, error);
  if (status) {
    char name[64];
    const int is_ended = row->text_bytes && !row->text[row->text_bytes - 1];
    const char *found = is_ended ? cuplug_overload_property(row, "signature") : NULL;
    if (!*row->signature && found) row->signature = found; /* it has the name of the operator */
    cuplug__overload_operator(row, name);
    cuplug__prefix(error, "operator %s: ", *name ? name : "?");
  } else {
    table->n_rows++;
  }
  return status;
}

typedef int read_note(cuplug__table *table, const cuplug__note *note, cuplug_error *error);

static int fail_abi_1(cuplug__table *table, const cuplug__note *note, cuplug_error *error) {
  (void)table, (void)note;
  return fail_abi(1u << 16, error);
}

static int read_each(cuplug__table *table, uint32_t kind, read_note *read, cuplug_error *error) {
  const cuplug__notes *notes = &table->notes;
  int status = CUPLUG_OK;
  for (uint32_t k = 0; k < notes->n_notes && !status; k++)
    if (notes->notes[k].kind == kind) status = read(table, &notes->notes[k], error);
  return status;
}

static int is_sorted(const cuplug__table *table) {
  uint32_t k = 1;
  while (k < table->n_rows && compare_rows(&table->rows[k - 1], &table->rows[k]) < 0) k++;
  return k >= table->n_rows;
}

/* The plugin first: it has the version of the rest, and is shown if the rest is invalid. */
static int read_notes(cuplug__table *table, cuplug_error *error) {
  table->rows = calloc(table->notes.n_notes, sizeof(*table->rows));
  if (!table->rows) return cuplug__no_memory(error, doing);
  int status = read_each(table, CUPLUG__NOTE_OF_ABI_1, fail_abi_1, error);
  if (!status) status = read_each(table, CUPLUG_NOTE_PLUGIN, read_plugin, error);
  if (!status) status = read_each(table, CUPLUG_NOTE_OPERATOR, read_row, error);
  if (status) return status;
  if (!table->abi_version)
    return cuplug__reject(error, "got no note of the plugin, expected CUPLUG_PLUGIN");
  if (!table->n_rows) return cuplug__reject(error, "no operator");
  if (!is_sorted(table)) qsort(table->rows, table->n_rows, sizeof(*table->rows), compare_rows);
  return CUPLUG_OK;
}

void cuplug__table_drop_signatures(cuplug__table *table) {
  for (uint32_t k = 0; k < table->n_rows; k++) {
    cuplug_free_signature(table->rows[k].parsed);
    table->rows[k].parsed = NULL;
  }
}

static void drop_rows(cuplug__table *table) {
  cuplug__table_drop_signatures(table);
  table->n_rows = 0;
}

int cuplug__table_read(int fd, uint64_t file_bytes, cuplug__table *table, cuplug_error *error) {
  cuplug__table_start(table);
  int status = cuplug__notes_read(fd, file_bytes, &table->notes, error);
  if (status) return status;
  status = read_notes(table, error);
  if (status == CUPLUG_ERROR_PLUGIN) cuplug__prefix(error, "symbol table: ");
  if (status) drop_rows(table);
  return status;
}

void cuplug__table_end(cuplug__table *table) {
  drop_rows(table);
  cuplug__notes_end(&table->notes);
  free(table->rows);
  free(table->made);
  table->rows = NULL;
  table->made = NULL;
}
