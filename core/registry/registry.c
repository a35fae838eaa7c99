/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/registry.h"

#include "base/index.h"
#include "base/status.h"
#include "discovery/candidate.h"
#include "discovery/search.h"
#include "discovery/table.h"
#include "registry/operator.h"
#include "registry/rows.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct answer {
  char *query;
  cuplug_operator *op;
} answer;

static struct {
  cuplug__plugin *plugins;
  uint64_t last_rank;
  char **added;
  size_t n_added;
  answer *answers;
  size_t n_answers;
  uint64_t fingerprint; /* of the search path that `answers` belong to */
  uint64_t generation;  /* of the answers */
} registry;

static const char doing[] = "registering a plugin";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic uint32_t era = 1;

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
static void in_child(void) {
  after_fork();
  atomic_fetch_add_explicit(&era, 1, memory_order_relaxed);
}
static void watch_forks(void) { pthread_atfork(before_fork, after_fork, in_child); }

void cuplug__registry_lock(void) {
  pthread_once(&once, watch_forks);
  pthread_mutex_lock(&lock);
}
void cuplug__registry_unlock(void) { pthread_mutex_unlock(&lock); }

uint32_t cuplug__registry_era(void) { return atomic_load_explicit(&era, memory_order_relaxed); }

cuplug__plugin *cuplug__registry_plugins(void) { return registry.plugins; }

uint64_t cuplug__registry_generation(void) { return registry.generation; }

cuplug__plugin *cuplug__registry_ranked_below(uint64_t rank) {
  cuplug__plugin *best = NULL;
  for (cuplug__plugin *p = registry.plugins; p; p = p->next)
    if (p->rank && p->rank < rank && (!best || p->rank > best->rank)) best = p;
  return best;
}

cuplug__plugin *cuplug__registry_loaded_from(const char *path) {
  for (cuplug__plugin *p = registry.plugins; p; p = p->next)
    if (p->library && !strcmp(p->path, path)) return p;
  return NULL;
}

int cuplug__registry_search(cuplug__search *search, const cuplug__trust *trust,
                            cuplug_error *error) {
  memset(search, 0, sizeof *search);
  cuplug__registry_lock();
  const size_t n = registry.n_added;
  char **added = malloc((n + 1) * sizeof *added); /* the paths themselves are never freed */
  if (added && n) memcpy(added, registry.added, n * sizeof *added);
  cuplug__registry_unlock();
  if (!added) return cuplug__no_memory(error, "searching for plugins");
  int status = cuplug__search_start(search, added, n, trust, error);
  free(added);
  return status;
}

static void forget_answers(void) {
  for (size_t k = 0; k < registry.n_answers; k++) free(registry.answers[k].query);
  free(registry.answers);
  registry.answers = NULL;
  registry.n_answers = 0;
  registry.generation++;
}

/* An answer stays good as long as the file is the one that was read, or its code is in use. */
static int is_current(const cuplug__plugin *plugin) {
  cuplug__identity now;
  return plugin->library || (cuplug__identity_of(plugin->path, &now) &&
                             cuplug__identity_equal(&now, &plugin->identity));
}

/* The answer to a query, as long as the search path stays the same. */
static cuplug_operator *answer_to(const char *query) {
  uint64_t fingerprint = cuplug__search_fingerprint();
  if (fingerprint != registry.fingerprint) forget_answers();
  registry.fingerprint = fingerprint;
  for (size_t k = 0; k < registry.n_answers; k++)
    if (!strcmp(registry.answers[k].query, query)) return registry.answers[k].op;
  return NULL;
}

cuplug_operator *cuplug__registry_cached(const char *query) {
  cuplug_operator *op = answer_to(query);
  if (!op || is_current(op->plugin)) return op;
  forget_answers();
  return NULL;
}

cuplug_operator *cuplug__registry_in_use(const char *query) {
  cuplug_operator *op = answer_to(query);
  return op && op->plugin->library ? op : NULL;
}

void cuplug__registry_rank(cuplug__plugin *plugin) {
  plugin->rank = ++registry.last_rank;
  forget_answers();
}

int cuplug__registry_cache(const char *query, cuplug_operator *op, uint64_t generation,
                           cuplug_error *error) {
  if (generation != registry.generation) return CUPLUG_OK;
  size_t bytes = (registry.n_answers + 1) * sizeof(answer);
  answer *grown = realloc(registry.answers, bytes);
  if (!grown) return cuplug__no_memory(error, doing);
  registry.answers = grown;
  char *copy = strdup(query);
  if (!copy) return cuplug__no_memory(error, doing);
  registry.answers[registry.n_answers++] = (answer){copy, op};
  return CUPLUG_OK;
}

cuplug_operator *cuplug__plugin_operator(const cuplug__plugin *plugin, const char *name) {
  for (uint32_t k = 0; k < plugin->n_operators; k++)
    if (!strcmp(plugin->operators[k].name, name)) return &plugin->operators[k];
  return NULL;
}

/* With arrays of up to this size an entry that never waits takes a few microseconds. */
#define BRIEF_BYTES 16384

static int is_brief(const cuplug_row *row) {
  return *row->host_entry && row->flags & CUPLUG_ROW_NEVER_WAITS &&
         !(row->flags & CUPLUG_ROW_PREFERS_CUDA);
}

/* A row, and the first row of that operator. */
typedef struct placed_row {
  uint32_t row, first;
} placed_row;

static int compare_firsts(const void *a, const void *b) {
  const placed_row *x = a, *y = b;
  return x->first != y->first ? (x->first > y->first) - (x->first < y->first)
                              : (x->row > y->row) - (x->row < y->row);
}

/* The first row of the operator of row k; 0 when memory ran out. */
static int find_first(const cuplug__table *table, cuplug__index *names, uint32_t k,
                      uint32_t *first) {
  const char *name = table->rows[k].parsed->name;
  const uint64_t hash = cuplug__hash_text(name);
  size_t at = 0, n;
  while (cuplug__index_next(names, hash, &at, &n)) {
    *first = (uint32_t)n;
    if (!strcmp(table->rows[n].parsed->name, name)) return 1;
  }
  *first = k;
  return cuplug__index_add(names, hash, k);
}

/* The rows of each operator together, the operators in the order of their first rows. */
static placed_row *sort_rows(const cuplug__table *table) {
  cuplug__index names = {0};
  placed_row *rows = calloc(table->n_rows, sizeof *rows);
  int is_fine = rows != NULL, is_sorted = 1;
  for (uint32_t k = 0; k < table->n_rows && is_fine; k++) {
    rows[k].row = k;
    is_fine = find_first(table, &names, k, &rows[k].first);
    is_sorted &= !k || rows[k].first >= rows[k - 1].first;
  }
  cuplug__index_end(&names);
  if (is_fine && !is_sorted) qsort(rows, table->n_rows, sizeof *rows, compare_firsts);
  if (is_fine) return rows;
  free(rows);
  return NULL;
}

/* The next operator, of which `overload` is the first row. */
static cuplug_operator *new_operator(cuplug__plugin *plugin, cuplug__overload *overload) {
  static _Atomic uint64_t n_made;
  cuplug_operator *op = &plugin->operators[plugin->n_operators++];
  op->number = ++n_made;
  op->plugin = plugin;
  op->overloads = overload;
  op->name = overload->signature->name;
  return op;
}

static size_t count_tensors(const cuplug_row *row) {
  return (size_t)(row->parsed->n_parameters + row->parsed->n_outputs);
}

static size_t count_all_tensors(const cuplug__table *table) {
  size_t n = 0;
  for (uint32_t k = 0; k < table->n_rows; k++) n += count_tensors(&table->rows[k]);
  return n;
}

static int fill(cuplug__plugin *plugin, const placed_row *rows, cuplug_error *error) {
  const uint32_t n_rows = plugin->table.n_rows;
  const char **tensors = plugin->tensors;
  cuplug_operator *op = NULL;
  int status = CUPLUG_OK;
  for (uint32_t k = 0; k < n_rows && !status; k++) {
    cuplug__overload *overload = &plugin->overloads[k];
    const cuplug_row *row = &plugin->table.rows[rows[k].row];
    cuplug__make_overload(overload, row, tensors);
    tensors += count_tensors(row);
    overload->faults = plugin->faults + (size_t)k * CUPLUG__N_FAULTS;
    overload->brief_bytes = is_brief(row) ? BRIEF_BYTES : -1;
    overload->states = plugin->states;
    if (*row->state.symbol) status = cuplug__make_states(&row->state, &overload->states, error);
    if (rows[k].first == rows[k].row) op = new_operator(plugin, overload);
    op->n_overloads++;
    if (!status && (k + 1 == n_rows || rows[k + 1].first != rows[k].first))
      status = cuplug__rows_make(op, error);
  }
  return status;
}

int cuplug__plugin_fill(cuplug__plugin *plugin, cuplug_error *error) {
  const uint32_t n_rows = plugin->table.n_rows;
  placed_row *rows = sort_rows(&plugin->table);
  plugin->operators = calloc(n_rows, sizeof(*plugin->operators));
  plugin->overloads = calloc(n_rows, sizeof(*plugin->overloads));
  plugin->tensors = calloc(count_all_tensors(&plugin->table) + 1, sizeof(*plugin->tensors));
  plugin->faults = calloc(n_rows, CUPLUG__N_FAULTS * sizeof(*plugin->faults));
  int status = cuplug__make_states(&plugin->table.state, &plugin->states, error);
  if (status) {
    free(rows);
    return status;
  }
  status = rows && plugin->operators && plugin->overloads && plugin->tensors && plugin->faults
               ? fill(plugin, rows, error)
               : cuplug__no_memory(error, doing);
  free(rows);
  return status;
}

void cuplug__plugin_free(cuplug__plugin *plugin) {
  for (uint32_t k = 0; k < plugin->n_operators; k++) free(plugin->operators[k].rows);
  for (uint32_t k = 0; plugin->overloads && k < plugin->table.n_rows; k++)
    if (plugin->overloads[k].states != plugin->states) free(plugin->overloads[k].states);
  free(plugin->states);
  cuplug__table_end(&plugin->table);
  cuplug__privates_end(&plugin->privates);
  free(plugin->path);
  free(plugin->operators);
  free(plugin->overloads);
  free(plugin->tensors);
  free(plugin->faults);
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

static void add(cuplug__plugin *plugin) {
  plugin->next = registry.plugins;
  registry.plugins = plugin;
}

void cuplug__registry_replace(cuplug__plugin *old, cuplug__plugin *fresh) {
  add(fresh);
  fresh->rank = old->rank;
  old->rank = 0;
  forget_answers();
}

int cuplug__registry_take(cuplug__candidate *candidate, const char *path, cuplug__plugin **plugin,
                          cuplug_error *error) {
  for (cuplug__plugin *p = registry.plugins; p; p = p->next) {
    *plugin = p;
    if (cuplug__identity_equal(&p->identity, &candidate->identity) && is_current(p))
      return CUPLUG_OK;
  }
  *plugin = cuplug__registry_loaded_from(path);
  if (*plugin) return CUPLUG_OK;
  int status = cuplug__plugin_make(candidate, path, plugin, error);
  if (!status) add(*plugin);
  return status;
}

int cuplug_add_directory(const char *path, cuplug_error *error) {
  int status = CUPLUG_OK;
  cuplug__clear(error);
  if (!path || *path != '/')
    return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                        "add_directory: path: \"%s\", an absolute path is wanted",
                        path ? path : "");
  cuplug__registry_lock();
  for (size_t k = 0; k < registry.n_added; k++)
    if (!strcmp(registry.added[k], path)) goto unlock;
  char **grown = realloc(registry.added, (registry.n_added + 1) * sizeof(*grown));
  if (grown) registry.added = grown;
  char *copy = grown ? strdup(path) : NULL;
  if (copy) {
    registry.added[registry.n_added++] = copy;
    forget_answers();
  } else {
    status = cuplug__no_memory(error, "adding a directory");
  }
unlock:
  cuplug__registry_unlock();
  return status;
}
