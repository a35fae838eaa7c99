/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/plugin.h"

#include "base/status.h"
#include "registry/operator.h"

#include <stdlib.h>
#include <string.h>

static const char doing[] = "registering a plugin";

/* With arrays of up to this size an entry that never waits takes a few microseconds. */
#define INLINE_CALL_BYTES 16384

static int runs_with_gil(const cuplug_row *row) {
  return *row->host_entry && row->flags & CUPLUG_ROW_NEVER_WAITS &&
         !(row->flags & CUPLUG_ROW_PREFERS_CUDA);
}

cuplug_operator *cuplug__plugin_operator(const cuplug__plugin *plugin, const char *name) {
  const uint64_t hash = cuplug__hash_text(name);
  size_t at = 0, k;
  while (cuplug__index_next(&plugin->names, hash, &at, &k))
    if (!strcmp(plugin->operators[k].name, name)) return &plugin->operators[k];
  return NULL;
}

/* The operators, in the order of their first overloads, with their numbers of overloads. Records
 * for each overload the operator that it belongs to. */
static int name_operators(cuplug__plugin *plugin, uint32_t *owners, cuplug_error *error) {
  static _Atomic uint64_t n_made;
  for (uint32_t k = 0; k < plugin->table.n_rows; k++) {
    const char *name = plugin->table.rows[k].parsed->name;
    cuplug_operator *op = cuplug__plugin_operator(plugin, name);
    if (!op) {
      op = &plugin->operators[plugin->n_operators];
      op->number = ++n_made;
      op->plugin = plugin;
      op->name = name;
      if (!cuplug__index_add(&plugin->names, cuplug__hash_text(name), plugin->n_operators++))
        return cuplug__no_memory(error, doing);
    }
    op->n_overloads++;
    owners[k] = (uint32_t)(op - plugin->operators);
  }
  return CUPLUG_OK;
}

static size_t count_tensors(const cuplug_row *row) {
  return (size_t)(row->parsed->n_parameters + row->parsed->n_outputs);
}

static int make_overloads(cuplug__plugin *plugin, const uint32_t *owners, cuplug_error *error) {
  int status = CUPLUG_OK;
  cuplug__overload *next = plugin->overloads;
  const char **tensors = plugin->tensors;
  for (uint32_t k = 0; k < plugin->n_operators; k++) {
    plugin->operators[k].overloads = next;
    next += plugin->operators[k].n_overloads;
    plugin->operators[k].n_overloads = 0;
  }
  for (uint32_t k = 0; k < plugin->table.n_rows && !status; k++) {
    const cuplug_row *row = &plugin->table.rows[k];
    cuplug_operator *op = &plugin->operators[owners[k]];
    cuplug__overload *overload = &op->overloads[op->n_overloads++];
    cuplug__make_overload(overload, row, tensors);
    tensors += count_tensors(row);
    overload->inline_call_bytes = runs_with_gil(row) ? INLINE_CALL_BYTES : -1;
    overload->states = plugin->states;
    if (*row->state.symbol) status = cuplug__make_states(&row->state, &overload->states, error);
  }
  return status;
}

static int fill(cuplug__plugin *plugin, uint32_t *owners, cuplug_error *error) {
  int status = name_operators(plugin, owners, error);
  if (!status) status = cuplug__make_states(&plugin->table.state, &plugin->states, error);
  if (!status) status = make_overloads(plugin, owners, error);
  for (uint32_t k = 0; k < plugin->n_operators && !status; k++)
    status = cuplug__rows_make(&plugin->operators[k], error);
  return status;
}

int cuplug__plugin_fill(cuplug__plugin *plugin, cuplug_error *error) {
  const uint32_t n_rows = plugin->table.n_rows;
  size_t n_tensors = 1;
  for (uint32_t k = 0; k < n_rows; k++) n_tensors += count_tensors(&plugin->table.rows[k]);
  uint32_t *owners = calloc(n_rows, sizeof *owners);
  plugin->operators = calloc(n_rows, sizeof(*plugin->operators));
  plugin->overloads = calloc(n_rows, sizeof(*plugin->overloads));
  plugin->tensors = calloc(n_tensors, sizeof(*plugin->tensors));
  int status = owners && plugin->operators && plugin->overloads && plugin->tensors
                   ? fill(plugin, owners, error)
                   : cuplug__no_memory(error, doing);
  free(owners);
  return status;
}

void cuplug__plugin_free(cuplug__plugin *plugin) {
  for (uint32_t k = 0; k < plugin->n_operators; k++) free(plugin->operators[k].rows);
  for (uint32_t k = 0; plugin->overloads && k < plugin->table.n_rows; k++)
    if (plugin->overloads[k].states != plugin->states) free(plugin->overloads[k].states);
  free(plugin->states);
  cuplug__table_end(&plugin->table);
  cuplug__privates_end(&plugin->privates);
  cuplug__index_end(&plugin->names);
  free(plugin->path);
  free(plugin->operators);
  free(plugin->overloads);
  free(plugin->tensors);
  free(plugin);
}

int cuplug__plugin_make(cuplug__candidate *candidate, const char *path, cuplug__plugin **plugin,
                        cuplug_error *error) {
  cuplug__plugin *p = calloc(1, sizeof(*p));
  if (!p) return cuplug__no_memory(error, doing);
  p->path = strdup(path);
  p->source.fd = -1;
  p->identity = candidate->identity;
  p->table = candidate->table;
  memset(&candidate->table, 0, sizeof(candidate->table));
  int status = p->path ? cuplug__plugin_fill(p, error) : cuplug__no_memory(error, doing);
  if (status) {
    cuplug__plugin_free(p);
    return status;
  }
  *plugin = p;
  return CUPLUG_OK;
}

int cuplug__plugin_is_current(const cuplug__plugin *plugin) {
  cuplug__identity now;
  return plugin->library || (cuplug__identity_of(plugin->path, &now) &&
                             cuplug__identity_equal(&now, &plugin->identity));
}
