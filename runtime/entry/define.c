/* SPDX-License-Identifier: Apache-2.0 */
/* Operators created in memory: plugins with one operator, without a file, that are not listed. */
#include "base/core.h"
#include "entry/run.h"

#include <inttypes.h>
#include <runtime/define.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char doing[] = "defining an operator";

/* Writes the note that a plugin would have for an overload to `stream`, followed by an empty
 * string. Flags are properties in it, so that readers of properties find them. */
static void write_row(FILE *stream, const cuplug_definition_overload *row, const char *doc) {
  fprintf(stream, "signature=%s%cdoc=%s%c", row->signature, 0, doc ? doc : "", 0);
  if (row->host) fprintf(stream, "host=in_memory%c", 0);
  if (row->cuda) fprintf(stream, "cuda=in_memory%c", 0);
  if (row->close) fprintf(stream, "close=in_memory%c", 0);
  if (row->reshape) fprintf(stream, "reduces%c", 0);
  if (row->scans) fprintf(stream, "scans%c", 0);
  if (row->gradient) fprintf(stream, "gradient=%s%c", row->gradient, 0);
  if (row->linear) fprintf(stream, "linear=%s%c", row->linear, 0);
  uint32_t flag;
  const char *key;
  for (uint32_t at = 0; (key = core->flag_key(at, &flag)); at++)
    if (row->flags & flag) fprintf(stream, "%s%c", key, 0);
  fputc(0, stream);
}

/* Writes all text of the table: name, version, overloads. */
static int write_text(cuplug__table *table, const cuplug_definition *from, cuplug_error *error) {
  size_t n_bytes;
  FILE *stream = open_memstream(&table->made, &n_bytes);
  if (!stream) return core->no_memory(error, doing);
  fprintf(stream, "%s%c%s%c", from->plugin, 0, from->version ? from->version : "", 0);
  for (uint32_t k = 0; k < from->n_rows; k++) write_row(stream, &from->rows[k], from->doc);
  return fclose(stream) ? core->no_memory(error, doing) : CUPLUG_OK;
}

static int read_rows(cuplug__table *table, const char *text, const cuplug_definition_overload *rows,
                     uint32_t n, cuplug_error *error) {
  for (; table->n_rows < n; table->n_rows++) {
    const char *end = text;
    while (*end) end += strlen(end) + 1;
    cuplug_overload *row = &table->rows[table->n_rows];
    int status = core->read_overload(text, (uint32_t)(end - text), CUPLUG_ABI_VERSION, row, error);
    if (!status && row->parsed->n_handles && !rows[table->n_rows].takes_handles)
      status = core->fail(error, CUPLUG_ERROR_VALUE,
                          "got a handle, expected none; handles are of plugins and of adopted "
                          "libraries");
    if (status) {
      core->prefix(error, "overload %u: ", table->n_rows);
      return status;
    }
    text = end + 1;
  }
  return CUPLUG_OK;
}

static int take_table(const cuplug_definition *from, cuplug__table *table, cuplug_error *error) {
  *table = (cuplug__table){.name = "", .version = "", .architectures = "", .state = {"", 0}};
  if (!from->plugin || strlen(from->plugin) >= CUPLUG_MAX_NAME ||
      !core->is_identifier(from->plugin))
    return core->fail(error, CUPLUG_ERROR_VALUE, "plugin: got \"%.80s\", expected an identifier",
                      from->plugin ? from->plugin : "");
  if (!from->n_rows) return core->fail(error, CUPLUG_ERROR_VALUE, "n_rows: 0, no operator");
  table->rows = calloc(from->n_rows, sizeof(*table->rows));
  if (!table->rows) return core->no_memory(error, doing);
  int status = write_text(table, from, error);
  if (status) return status;
  table->name = table->made;
  table->version = table->name + strlen(table->name) + 1;
  return read_rows(table, table->version + strlen(table->version) + 1, from->rows, from->n_rows,
                   error);
}

/* Outputs that are reshaped have separate shapes, which inputs like them do not share. */
static void take_reshape(cuplug__callable *overload, cuplug_reshape *reshape) {
  overload->reshape = reshape;
  for (uint8_t k = 0; reshape && k < CUPLUG_MAX_ARGUMENTS; k++) overload->like[k] = k;
}

/* The rows of an operator are filled in order, so overload k has the entries of row k. */
static int fill(cuplug__plugin *plugin, const cuplug_definition *from, cuplug_error *error) {
  plugin->path = strdup(from->origin ? from->origin : "");
  if (!plugin->path) return core->no_memory(error, doing);
  int status = take_table(from, &plugin->table, error);
  if (status) return status;
  if ((status = core->plugin_fill(plugin, error))) return status;
  if (plugin->n_operators > 1)
    return core->fail(error, CUPLUG_ERROR_VALUE, "got rows of %s and of %s, expected one operator",
                      plugin->operators[0].name, plugin->operators[1].name);
  for (uint32_t k = 0; k < from->n_rows; k++) {
    plugin->overloads[k].host = from->rows[k].host;
    plugin->overloads[k].cuda = from->rows[k].cuda;
    plugin->overloads[k].context = from->rows[k].context;
    plugin->overloads[k].close = from->rows[k].close;
    plugin->overloads[k].null_strides_when_contiguous = from->rows[k].null_strides_when_contiguous;
    take_reshape(&plugin->overloads[k], from->rows[k].reshape);
  }
  atomic_store_explicit(&plugin->operators[0].loaded, 1, memory_order_release);
  return CUPLUG_OK;
}

int cuplug_define(const cuplug_definition *definition, cuplug_operator **op, cuplug_error *error) {
  *op = NULL;
  cuplug__clear(error);
  cuplug__plugin *plugin = calloc(1, sizeof(*plugin));
  int status = plugin ? fill(plugin, definition, error) : core->no_memory(error, doing);
  if (!status) {
    *op = &plugin->operators[0];
    return CUPLUG_OK;
  }
  if (plugin) core->plugin_free(plugin);
  if (status == CUPLUG_ERROR_MEMORY) return status;
  core->prefix(error, "define: ");
  if (error) error->status = CUPLUG_ERROR_VALUE;
  return CUPLUG_ERROR_VALUE;
}

/* ---- Functions for their entries ------------------------------------------------------------ */

cuplug_error *cuplug_entry_error(const cuplug_call *call) { return cuplug__error_of(call); }

/* The minimum and maximum of an integer type; 0 and 1 for bool. */
static void limits_of(uint32_t type, int64_t *low, uint64_t *high) {
  const uint32_t bits = type == CUPLUG_BOOL ? 1 : type >> 16 & 255;
  const uint32_t is_signed = type >> 24 == 0;
  *low = is_signed ? -1 - (int64_t)(UINT64_MAX >> (65 - bits)) : 0;
  *high = UINT64_MAX >> (64 - bits + is_signed);
}

int cuplug_entry_number(const cuplug_call *call, const cuplug_term *term, const char *what,
                        uint32_t type, int64_t *number) {
  const cuplug__run *run = call->run;
  const cuplug__values values = {.tensors = call->tensors, .scalars = call->scalars};
  const char *wrong = core->work_out_integer(&term->formula, &values, number);
  int64_t low;
  uint64_t high;
  if (wrong) {
    const cuplug__text names = core->describe_names(run->frame->signature, term->text, &values);
    return core->fail(run->error, CUPLUG_ERROR_VALUE, *names.s ? "%s: %s: %s (%s)" : "%s: %s: %s",
                      what, term->text, wrong, names.s);
  }
  limits_of(type, &low, &high);
  if (*number >= low && (*number < 0 || (uint64_t)*number <= high)) return CUPLUG_OK;
  return core->fail(run->error, CUPLUG_ERROR_VALUE,
                    "%s: %s: got %" PRId64 ", expected %" PRId64 " to %" PRIu64
                    ", what the type of its parameter can hold",
                    what, term->text, *number, low, high);
}
