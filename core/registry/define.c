/* SPDX-License-Identifier: Apache-2.0 */
/* Operators made in memory: a plugin of one operator that no file and no list knows. */
#include "base/status.h"
#include "discovery/table.h"
#include "registry/operator.h"
#include "registry/registry.h"

#include <stdlib.h>
#include <string.h>

static const char doing[] = "defining an operator";

/* Copies text into an array of `room` bytes. */
static int take_text(const char *field, const char *text, char *to, size_t room,
                     cuplug_error *error) {
  size_t n = text ? strlen(text) : 0;
  if (n >= room)
    return cuplug__fail(error, CUPLUG_ERROR_VALUE, "%s: seen %zu bytes, wanted at most %zu", field,
                        n, room - 1);
  memcpy(to, text ? text : "", n + 1);
  return CUPLUG_OK;
}

#define TAKE_TEXT(field, from, to)                                                          \
  if ((status = take_text(#field, (from)->field, (to)->field, sizeof((to)->field), error))) \
  return status

static int take_row(const cuplug_definition *from, uint32_t k, cuplug_row *row,
                    cuplug_error *error) {
  int status;
  TAKE_TEXT(signature, &from->rows[k], row);
  TAKE_TEXT(doc, from, row);
  if (from->rows[k].host) strcpy(row->host_entry, "in_memory");
  if (from->rows[k].cuda) strcpy(row->cuda_entry, "in_memory");
  row->flags = from->rows[k].flags;
  return cuplug__row_check(row, error);
}

static int take_header(const cuplug_definition *from, cuplug_table_header *header,
                       cuplug_error *error) {
  int status = take_text("plugin", from->plugin, header->name, sizeof(header->name), error);
  if (status) return status;
  TAKE_TEXT(version, from, header);
  if (!cuplug__is_identifier(header->name))
    return cuplug__fail(error, CUPLUG_ERROR_VALUE, "plugin: \"%s\", an identifier is wanted",
                        header->name);
  if (!from->n_rows) return cuplug__fail(error, CUPLUG_ERROR_VALUE, "n_rows: 0, no operator");
  header->n_rows = from->n_rows;
  return CUPLUG_OK;
}

/* Outputs that are reshaped must have shapes of their own, not those of inputs that they are like.
 */
static void take_reshape(cuplug__overload *overload, cuplug_reshape *reshape) {
  overload->reshape = reshape;
  for (uint8_t k = 0; reshape && k < CUPLUG_MAX_TENSORS; k++) overload->like[k] = k;
}

/* The rows of one operator are filled in their order, so overload k has the entries of row k. */
static int fill(cuplug__plugin *plugin, const cuplug_definition *from, cuplug_error *error) {
  cuplug__table *table = &plugin->table;
  int status = take_header(from, &table->header, error);
  if (status) return status;
  plugin->path = strdup(from->origin ? from->origin : "");
  table->rows = calloc(from->n_rows, sizeof(*table->rows));
  if (!plugin->path || !table->rows) return cuplug__no_memory(error, doing);
  for (uint32_t k = 0; k < from->n_rows; k++)
    if ((status = take_row(from, k, &table->rows[k], error))) {
      cuplug__prefix(error, "row %u: ", k);
      return status;
    }
  if ((status = cuplug__plugin_fill(plugin, error))) return status;
  if (plugin->n_operators > 1)
    return cuplug__fail(error, CUPLUG_ERROR_VALUE, "rows of %s and of %s, one operator is wanted",
                        plugin->operators[0].name, plugin->operators[1].name);
  for (uint32_t k = 0; k < from->n_rows; k++) {
    plugin->overloads[k].host = from->rows[k].host;
    plugin->overloads[k].cuda = from->rows[k].cuda;
    plugin->overloads[k].context = from->rows[k].context;
    take_reshape(&plugin->overloads[k], from->rows[k].reshape);
  }
  atomic_store_explicit(&plugin->operators[0].loaded, 1, memory_order_release);
  return CUPLUG_OK;
}

int cuplug_define(const cuplug_definition *definition, cuplug_operator **op, cuplug_error *error) {
  *op = NULL;
  cuplug__clear(error);
  cuplug__plugin *plugin = calloc(1, sizeof(*plugin));
  int status = plugin ? fill(plugin, definition, error) : cuplug__no_memory(error, doing);
  if (!status) {
    *op = &plugin->operators[0];
    return CUPLUG_OK;
  }
  if (plugin) {
    cuplug__table_free(&plugin->table);
    cuplug__plugin_free(plugin);
  }
  if (status == CUPLUG_ERROR_MEMORY) return status;
  cuplug__prefix(error, "define: ");
  if (error) error->status = CUPLUG_ERROR_VALUE;
  return CUPLUG_ERROR_VALUE;
}
