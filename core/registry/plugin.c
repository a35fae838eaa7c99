/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/plugin.h"

#include "base/dtype.h"
#include "base/status.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_alike(const cuplug_parameter *x, const cuplug_parameter *y) {
  int same = x->type_variable == y->type_variable && x->n_dims == y->n_dims &&
             !((x->words ^ y->words) & CUPLUG_WORD_HOST);
  for (int32_t k = 0; same && k < x->n_dims; k++)
    same = x->dims[k].kind == y->dims[k].kind && x->dims[k].value == y->dims[k].value &&
           x->dims[k].kind < CUPLUG_DIM_FORMULA;
  return same;
}

static void read_tensors(cuplug__callable *o) {
  const cuplug_signature *s = o->signature;
  const cuplug_parameter *arrays[CUPLUG_MAX_ARGUMENTS];
  uint8_t n = 0, *like = o->like;
  for (int32_t i = 0; i < s->n_parameters + s->n_outputs; i++) {
    const cuplug_parameter *x = &s->parameters[i];
    if (i < s->n_parameters && x->kind > CUPLUG_PARAMETER_INOUT) {
      o->scalars[o->n_scalars++] = (uint8_t)i;
      continue;
    }
    o->n_arrays += i < s->n_parameters;
    like[n] = 0;
    while (like[n] < n && (arrays[like[n]]->has_default || !is_alike(x, arrays[like[n]])))
      like[n]++;
    arrays[n++] = x;
  }
}

static int make_states(const cuplug__state_key *key, cuplug__states **states, cuplug_error *error) {
  *states = NULL;
  if (!*key->symbol) return CUPLUG_OK;
  *states = calloc(1, sizeof **states);
  if (!*states) return cuplug__no_memory(error, "registering a plugin");
  (*states)->symbol = key->symbol;
  (*states)->is_exclusive = key->is_exclusive;
  return CUPLUG_OK;
}

void cuplug__make_overload(cuplug__callable *o, const cuplug_overload *row) {
  o->row = row;
  o->signature = row->parsed;
  o->prefers_host =
      *row->host_entry && !(*row->cuda_entry && row->flags & CUPLUG_OVERLOAD_PREFERS_CUDA);
  read_tensors(o);
}

/* The single arrays and the outputs, by number; "" without a name. */
static const char *array_name(const cuplug_signature *s, uint32_t number) {
  for (int32_t i = 0; i < s->n_parameters + s->n_outputs; i++)
    if ((i >= s->n_parameters || s->parameters[i].kind <= CUPLUG_PARAMETER_INOUT) && !number--)
      return s->parameters[i].name;
  return "";
}

static const char *list_name(const cuplug_signature *s) {
  const cuplug_parameter *x = s->parameters;
  while (x->kind != CUPLUG_PARAMETER_ARRAYS) x++;
  return x->name;
}

void cuplug__name_tensor(char text[CUPLUG__NAME_BYTES], const cuplug__callable *o, uint32_t tensor,
                         uint32_t n_inputs) {
  const cuplug_signature *s = o->signature;
  const int is_output = tensor != UINT32_MAX && tensor >= n_inputs;
  const int is_in_list = s->n_lists && !is_output && tensor >= o->n_arrays;
  const char *name =
      is_in_list ? "" : array_name(s, is_output ? o->n_arrays + (tensor - n_inputs) : tensor);
  if (tensor == UINT32_MAX) /* of a list that is apart */
    snprintf(text, CUPLUG__NAME_BYTES, "%s", s->n_lists == 1 ? list_name(s) : "a list");
  else if (is_in_list && s->n_lists == 1)
    snprintf(text, CUPLUG__NAME_BYTES, "%s[%u]", list_name(s), tensor - o->n_arrays);
  else if (*name || is_output)
    snprintf(text, CUPLUG__NAME_BYTES, "%s", *name ? name : "its output");
  else
    snprintf(text, CUPLUG__NAME_BYTES, "array %u", tensor);
}

/* ---- Which rows may take some arguments ------------------------------------------------------ */

/* The class of an argument: its kind, after the dtypes of arrays. Arrays also have a rank. */
enum {
  N_KINDS = CUPLUG__N_DTYPES + CUPLUG_ARGUMENT_DTYPE + 1,
  MAX_RANK = 7, /* and more */
  N_CODES = N_KINDS + MAX_RANK + 1
};

struct cuplug__overload_sets {
  uint32_t n_words, n_parameters; /* of the row with most of them */
  uint64_t words[];               /* [parameter][code][word] */
};

static size_t place_of(const cuplug__overload_sets *sets, uint32_t parameter, uint32_t code) {
  return ((size_t)parameter * N_CODES + code) * sets->n_words;
}

static void add(cuplug__overload_sets *sets, uint32_t parameter, uint32_t code, uint32_t row) {
  sets->words[place_of(sets, parameter, code) + row / 64] |= 1ull << row % 64;
}

static void add_kind(cuplug__overload_sets *sets, uint32_t parameter, int32_t kind, uint32_t row) {
  add(sets, parameter, CUPLUG__N_DTYPES + (uint32_t)kind, row);
}

/* ---- Made ------------------------------------------------------------------------------------ */

static void add_array(cuplug__overload_sets *sets, uint32_t i, const cuplug_parameter *x,
                      uint64_t dtypes, uint32_t row) {
  int32_t n_groups = 0;
  for (int32_t k = 0; k < x->n_dims; k++)
    n_groups += x->dims[k].kind == CUPLUG_DIM_VARIADIC || x->dims[k].kind == CUPLUG_DIM_LOOP;
  const int32_t least = x->n_dims - n_groups;
  for (uint32_t k = 0; k < CUPLUG__N_DTYPES; k++)
    if (dtypes >> k & 1) add(sets, i, k, row);
  for (int32_t rank = 0; rank <= MAX_RANK; rank++)
    if (rank == MAX_RANK || (n_groups ? rank >= least : rank == least))
      add(sets, i, N_KINDS + (uint32_t)rank, row);
}

/* The kinds of numbers that are converted to one of the dtypes. */
static void add_numbers(cuplug__overload_sets *sets, uint32_t i, uint64_t dtypes, uint32_t row) {
  const uint64_t booleans = cuplug__dtype_bits("bool"), complexes = cuplug__dtype_bits("complex");
  const uint64_t integers = cuplug__dtype_bits("integer");
  add_kind(sets, i, CUPLUG_ARGUMENT_BOOL, row);
  if (!(dtypes & ~booleans)) return;
  for (int32_t kind = CUPLUG_ARGUMENT_INT; kind <= CUPLUG_ARGUMENT_HUGE_INT; kind++)
    add_kind(sets, i, kind, row);
  if (dtypes & ~(booleans | integers)) add_kind(sets, i, CUPLUG_ARGUMENT_FLOAT, row);
  if (dtypes & complexes) add_kind(sets, i, CUPLUG_ARGUMENT_COMPLEX, row);
}

/* Kinds of parameters, and of arguments other than arrays and numbers. */
static const int32_t other_kinds[][2] = {{CUPLUG_PARAMETER_LIST, CUPLUG_ARGUMENT_LIST},
                                         {CUPLUG_PARAMETER_ARRAYS, CUPLUG_ARGUMENT_LIST},
                                         {CUPLUG_PARAMETER_HANDLE, CUPLUG_ARGUMENT_HANDLE},
                                         {CUPLUG_PARAMETER_DTYPE, CUPLUG_ARGUMENT_DTYPE},
                                         {CUPLUG_PARAMETER_DTYPE, CUPLUG_ARGUMENT_STRING},
                                         {CUPLUG_PARAMETER_STRING, CUPLUG_ARGUMENT_STRING},
                                         {CUPLUG_PARAMETER_CHOICE, CUPLUG_ARGUMENT_STRING}};

static void add_parameter(cuplug__overload_sets *sets, uint32_t i, const cuplug_signature *s,
                          uint32_t row) {
  if (i >= (uint32_t)s->n_parameters) {
    add_kind(sets, i, CUPLUG_ARGUMENT_ABSENT, row);
    return;
  }
  const cuplug_parameter *x = &s->parameters[i];
  const uint64_t dtypes = x->type_variable < 0 ? 0 : s->variables[x->type_variable].dtypes;
  if (x->has_default) add_kind(sets, i, CUPLUG_ARGUMENT_ABSENT, row);
  if (x->default_kind == CUPLUG_ARGUMENT_NONE) add_kind(sets, i, CUPLUG_ARGUMENT_NONE, row);
  if (x->kind <= CUPLUG_PARAMETER_INOUT) add_array(sets, i, x, dtypes, row);
  if (x->kind == CUPLUG_PARAMETER_SCALAR || x->kind == CUPLUG_PARAMETER_LIST)
    add_numbers(sets, i, dtypes, row);
  for (size_t k = 0; k < sizeof other_kinds / sizeof *other_kinds; k++)
    if (other_kinds[k][0] == x->kind) add_kind(sets, i, other_kinds[k][1], row);
}

int cuplug__overloads_make(cuplug_operator *op, cuplug_error *error) {
  uint32_t n_parameters = 0;
  if (op->n_overloads < 2) return CUPLUG_OK;
  for (uint32_t k = 0; k < op->n_overloads; k++)
    if ((uint32_t)op->overloads[k].signature->n_parameters > n_parameters)
      n_parameters = (uint32_t)op->overloads[k].signature->n_parameters;
  const uint32_t n_words = (op->n_overloads + 63) / 64;
  const size_t n = (size_t)n_parameters * N_CODES * n_words;
  op->rows = calloc(1, sizeof *op->rows + n * sizeof *op->rows->words);
  if (!op->rows) return cuplug__no_memory(error, "registering an operator");
  op->rows->n_words = n_words;
  op->rows->n_parameters = n_parameters;
  for (uint32_t k = 0; k < op->n_overloads; k++)
    for (uint32_t i = 0; i < n_parameters; i++)
      add_parameter(op->rows, i, op->overloads[k].signature, k);
  return CUPLUG_OK;
}

/* ---- Queries --------------------------------------------------------------------------------- */

static uint32_t rank_of(const cuplug_argument *a) {
  const int32_t ndim = a->tensor.ndim;
  return N_KINDS + (ndim < 0 || ndim > MAX_RANK ? MAX_RANK : (uint32_t)ndim);
}

/* The sets that an overload must be in, by their first words. Returns their number; -1: none is in
 * all of them. */
static int32_t choose_sets(const cuplug__overload_sets *sets, const cuplug_argument *args,
                           uint32_t n_args, const uint64_t *chosen[]) {
  const uint64_t *words = sets->words;
  int32_t n = 0;
  for (uint32_t i = n_args; i < sets->n_parameters; i++)
    chosen[n++] = words + place_of(sets, i, CUPLUG__N_DTYPES + CUPLUG_ARGUMENT_ABSENT);
  for (uint32_t i = 0; i < n_args; i++) {
    const cuplug_argument *a = &args[i];
    uint32_t code = CUPLUG__N_DTYPES + a->kind;
    if (a->kind == CUPLUG_ARGUMENT_ARRAY) {
      const uint64_t bit = cuplug__dtype_bit(cuplug_type(&a->tensor));
      if (!bit) return -1;
      code = (uint32_t)__builtin_ctzll(bit);
      chosen[n++] = words + place_of(sets, i, rank_of(a));
    } else if (a->kind > CUPLUG_ARGUMENT_DTYPE) {
      return -1;
    }
    chosen[n++] = words + place_of(sets, i, code);
  }
  return n;
}

uint32_t cuplug__overloads_next(const cuplug_operator *op, const cuplug_argument *args,
                                uint32_t n_args, uint32_t from) {
  const cuplug__overload_sets *sets = op->rows;
  const uint64_t *chosen[2 * CUPLUG_MAX_ARGUMENTS];
  if (n_args > sets->n_parameters) return op->n_overloads;
  const int32_t n = choose_sets(sets, args, n_args, chosen);
  uint64_t mask = ~0ull << from % 64;
  for (uint32_t w = from / 64; n >= 0 && w < sets->n_words; w++, mask = ~0ull) {
    uint64_t rows = mask;
    for (int32_t k = 0; k < n && rows; k++) rows &= chosen[k][w];
    if (rows) return w * 64 + (uint32_t)__builtin_ctzll(rows);
  }
  return op->n_overloads;
}

/* ---- Plugins --------------------------------------------------------------------------------- */

static const char doing[] = "registering a plugin";

/* With arrays of up to this size an entry that never waits takes a few microseconds. */
#define INLINE_CALL_BYTES 16384

static cuplug_operator **named_like(const cuplug__plugin *plugin, const char *name) {
  return &plugin->named_like[cuplug__hash_text(name) % plugin->table.n_rows];
}

cuplug_operator *cuplug__plugin_operator(const cuplug__plugin *plugin, const char *name) {
  cuplug_operator *op = *named_like(plugin, name);
  while (op && strcmp(op->name, name) != 0) op = op->next;
  return op;
}

/* The operators, in the order of their first overloads, with their numbers of overloads. */
static void name_operators(cuplug__plugin *plugin) {
  static _Atomic uint64_t n_made;
  for (uint32_t k = 0; k < plugin->table.n_rows; k++) {
    const char *name = plugin->table.rows[k].parsed->name;
    cuplug_operator *op = cuplug__plugin_operator(plugin, name);
    if (!op) {
      cuplug_operator **first = named_like(plugin, name);
      op = &plugin->operators[plugin->n_operators++];
      op->number = ++n_made;
      op->plugin = plugin;
      op->name = name;
      op->next = *first;
      *first = op;
    }
    op->n_overloads++;
  }
}

static int make_overload(cuplug__plugin *plugin, const cuplug_overload *row, cuplug_error *error) {
  cuplug_operator *op = cuplug__plugin_operator(plugin, row->parsed->name);
  cuplug__callable *overload = &op->overloads[op->n_overloads++];
  const uint32_t when = row->flags & (CUPLUG_OVERLOAD_NONBLOCKING | CUPLUG_OVERLOAD_PREFERS_CUDA);
  const int is_short = *row->host_entry && when == CUPLUG_OVERLOAD_NONBLOCKING;
  cuplug__make_overload(overload, row);
  overload->inline_call_bytes = is_short ? INLINE_CALL_BYTES : -1;
  overload->states = plugin->states;
  return *row->state.symbol ? make_states(&row->state, &overload->states, error) : CUPLUG_OK;
}

int cuplug__plugin_fill(cuplug__plugin *plugin, cuplug_error *error) {
  const uint32_t n_rows = plugin->table.n_rows;
  plugin->operators = calloc(n_rows, sizeof(*plugin->operators));
  cuplug__callable *next = plugin->overloads = calloc(n_rows, sizeof(*plugin->overloads));
  plugin->named_like = calloc(n_rows, sizeof *plugin->named_like);
  if (!plugin->operators || !plugin->overloads || !plugin->named_like)
    return cuplug__no_memory(error, doing);
  name_operators(plugin);
  int status = make_states(&plugin->table.state, &plugin->states, error);
  for (uint32_t k = 0; k < plugin->n_operators; k++) {
    plugin->operators[k].overloads = next;
    next += plugin->operators[k].n_overloads;
    plugin->operators[k].n_overloads = 0;
  }
  for (uint32_t k = 0; k < n_rows && !status; k++)
    status = make_overload(plugin, &plugin->table.rows[k], error);
  for (uint32_t k = 0; k < plugin->n_operators && !status; k++)
    status = cuplug__overloads_make(&plugin->operators[k], error);
  return status;
}

void cuplug__privates_end(cuplug__privates *privates) {
  for (size_t k = 0; k < privates->n_files; k++) {
    free(privates->files[k].needed);
    free(privates->files[k].soname);
    free(privates->files[k].path);
  }
  free(privates->files);
  *privates = (cuplug__privates){0};
}

void cuplug__plugin_free(cuplug__plugin *plugin) {
  for (uint32_t k = 0; k < plugin->n_operators; k++) free(plugin->operators[k].rows);
  for (uint32_t k = 0; plugin->overloads && k < plugin->table.n_rows; k++)
    if (plugin->overloads[k].states != plugin->states) free(plugin->overloads[k].states);
  free(plugin->states);
  cuplug__table_end(&plugin->table);
  cuplug__privates_end(&plugin->privates);
  free(plugin->named_like);
  free(plugin->path);
  free(plugin->operators);
  free(plugin->overloads);
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
  return plugin->library || (cuplug__identity_of(AT_FDCWD, plugin->path, &now) &&
                             cuplug__identity_equal(&now, &plugin->identity));
}
