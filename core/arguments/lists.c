/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments/lists.h"

#include "base/describe.h"
#include "base/layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Memory ---------------------------------------------------------------------------------- */

typedef struct block {
  struct block *next;
} block;

void *cuplug__frame_memory(const cuplug__match *m, size_t bytes) {
  block *made = malloc(sizeof *made + bytes);
  if (!made) {
    cuplug__no_memory(m->error, "reading lists of arguments");
    return NULL;
  }
  made->next = m->frame->blocks;
  m->frame->blocks = made;
  return made + 1;
}

void cuplug_free_blocks(void *blocks) {
  for (block *next, *one = blocks; one; one = next) {
    next = one->next;
    free(one);
  }
}

void cuplug__forget_lists(cuplug_frame *frame) {
  cuplug_free_blocks(frame->blocks);
  frame->blocks = NULL;
  frame->apart = NULL;
}

/* ---- Which lists there are ------------------------------------------------------------------- */

/* The list of parameter i; NULL if it is None or not a list of arrays. */
static const cuplug_argument *list_of(const cuplug__match *m, int32_t i) {
  const cuplug_argument *a = cuplug__argument(m, i);
  const cuplug_parameter *x = &m->s->parameters[i];
  return x->kind == CUPLUG_PARAMETER_ARRAYS && a->kind == CUPLUG_ARGUMENT_LIST ? a : NULL;
}

cuplug__item cuplug__find_apart(const cuplug__match *m, uint32_t k) {
  int32_t i = 0;
  for (const cuplug_argument *a; !(a = list_of(m, i)) || k >= a->list.n; i++)
    if (a) k -= a->list.n;
  return (cuplug__item){i, k};
}

/* An empty list does not define the names in it. */
static int check_empty(cuplug__match *m, int32_t i) {
  const cuplug_parameter *x = &m->s->parameters[i];
  const uint64_t dtypes = m->s->variables[x->type_variable].dtypes;
  int is_known = !(dtypes & (dtypes - 1)) || m->known_types >> x->type_variable & 1;
  for (int32_t k = 0; k < x->n_dims; k++) {
    const cuplug_dim *d = &x->dims[k];
    if (d->kind == CUPLUG_DIM_NAMED || d->kind == CUPLUG_DIM_VARIADIC)
      is_known = is_known && (m->known_sizes | m->s->each_names) >> d->value & 1;
  }
  if (is_known) return CUPLUG_OK;
  return cuplug__mismatch(m, i, CUPLUG_ERROR_VALUE,
                          "got an empty list, expected at least one array, which determines %s",
                          cuplug__describe_parameter(m->s, x).s);
}

/* All lists T[n][each] of a call have the same number of items. */
static int check_lengths(cuplug__match *m, int32_t i, int32_t *first) {
  const cuplug_argument *a = cuplug__argument(m, i);
  if (!m->s->parameters[i].is_each) return CUPLUG_OK;
  if (*first < 0) *first = i;
  const uint32_t expected = cuplug__argument(m, *first)->list.n;
  if (a->list.n == expected) return CUPLUG_OK;
  return cuplug__mismatch(m, i, CUPLUG_ERROR_VALUE,
                          "got a list of %" PRIu32 " arrays, expected %" PRIu32
                          " (as %s, item by item)",
                          a->list.n, expected, m->s->parameters[*first].name);
}

/* Counts the arrays in lists, and their dimensions. */
static int count(cuplug__match *m, uint64_t *n, uint64_t *n_dims) {
  int32_t first = -1;
  *n = *n_dims = 0;
  for (int32_t i = 0; i < m->s->n_parameters; i++) {
    const cuplug_parameter *x = &m->s->parameters[i];
    const cuplug_argument *a = cuplug__argument(m, i);
    if (x->kind != CUPLUG_PARAMETER_ARRAYS) continue;
    if (cuplug__is_left_out(x, a)) continue;
    if (a->kind != CUPLUG_ARGUMENT_LIST) return cuplug__report_mismatch(m, i, CUPLUG_ERROR_TYPE);
    if (check_lengths(m, i, &first)) return CUPLUG_ERROR_VALUE;
    *n += a->list.n;
    for (uint32_t k = 0; k < a->list.n && m->takes_strides; k++)
      if (a->list.items[k].kind == CUPLUG_ARGUMENT_ARRAY && a->list.items[k].tensor.ndim > 0)
        *n_dims += (uint32_t)a->list.items[k].tensor.ndim;
  }
  return CUPLUG_OK;
}

/* ---- Their items ----------------------------------------------------------------------------- */

/* For lists that are apart, buffers to fill: memory for tensors, and for strides of contiguous
 * ones. */
typedef struct apart {
  cuplug_tensor *to[CUPLUG_MAX_ARGUMENTS]; /* by parameter */
  uint64_t n_bytes;                        /* of all arrays */
  int64_t *words;
} apart;

/* An item that is apart is matched in the next tensor of the frame, which outputs take later. */
static int match_item(cuplug__match *m, int32_t i, uint32_t item, apart *all) {
  cuplug_frame *f = m->frame;
  const uint32_t k = f->n_tensors;
  const uint64_t bit = 1ull << k;
  m->item = item;
  const int status = cuplug__match_array(m, i, &m->args[i].list.items[item]);
  if (status || !all) return status;
  cuplug_tensor *to = &all->to[i][item];
  f->n_tensors = k;
  all->n_bytes += (uint64_t)f->n_bytes[k];
  if (f->copy_mask & bit) f->copy_mask = (f->copy_mask & ~bit) | CUPLUG_COPY_ITEMS;
  f->unaligned_stride_mask &= ~bit;
  if (m->inout_mask & bit) m->inout_mask = (m->inout_mask & ~bit) | CUPLUG__INOUT_ITEMS;
  *to = f->tensors[k];
  if (!m->takes_strides || to->strides) return CUPLUG_OK;
  to->strides = all->words; /* entries that take strides have them always */
  all->words += to->ndim;
  cuplug__contiguous_strides(to->ndim, to->shape, to->strides);
  return CUPLUG_OK;
}

/* Matches item k of some lists, which have the same number of items, before k + 1 of any. */
static int match_each(cuplug__match *m, const int32_t *lists, int32_t n_lists, apart *all) {
  for (uint32_t item = 0; n_lists && item < m->args[*lists].list.n; item++) {
    m->known_sizes &= ~m->s->each_names; /* names only in lists T[n][each] */
    for (int32_t k = 0; k < n_lists; k++) {
      const int status = match_item(m, lists[k], item, all);
      if (status) return status;
    }
  }
  m->item = -1;
  return CUPLUG_OK;
}

/* Matches all items. `all`: NULL if they are among the frame's tensors. */
static int match_items(cuplug__match *m, apart *all) {
  int32_t lists[CUPLUG_MAX_ARGUMENTS], n_lists = 0; /* T[n][each] */
  int status = CUPLUG_OK;
  for (int32_t i = 0; i < m->s->n_parameters && !status; i++) {
    if (!list_of(m, i)) continue;
    if (m->s->parameters[i].is_each)
      lists[n_lists++] = i;
    else
      status = match_each(m, &i, 1, all);
  }
  if (!status) status = match_each(m, lists, n_lists, all);
  for (int32_t i = 0; i < m->s->n_parameters && !status; i++) {
    const cuplug_argument *a = list_of(m, i);
    if (a && !a->list.n) status = check_empty(m, i);
  }
  return status;
}

static int match_apart(cuplug__match *m, uint64_t n, uint64_t n_dims) {
  cuplug_frame *f = m->frame;
  if (n > UINT32_MAX)
    return cuplug__fail(m->error, CUPLUG_ERROR_VALUE,
                        "%s: got 2^32 arrays or more in lists, expected fewer", m->s->name);
  cuplug_tensor *next = cuplug__frame_memory(m, (n + 1) * sizeof *next + n_dims * sizeof(int64_t));
  if (!next) return CUPLUG_ERROR_MEMORY;
  apart all = {.n_bytes = 0, .words = (int64_t *)(next + n)};
  f->apart = next;
  f->n_apart = (uint32_t)n;
  for (int32_t i = 0; i < m->s->n_parameters; i++) {
    const cuplug_argument *a = list_of(m, i);
    all.to[i] = next;
    if (a) next += a->list.n;
  }
  const int status = match_items(m, &all);
  if ((int64_t)all.n_bytes > m->largest_bytes) m->largest_bytes = (int64_t)all.n_bytes;
  return status;
}

int cuplug__match_lists(cuplug__match *m) {
  uint64_t n, n_dims;
  int status = count(m, &n, &n_dims);
  if (status) return status;
  const uint64_t room = CUPLUG_MAX_ARGUMENTS - m->frame->n_tensors - (uint32_t)m->s->n_outputs;
  if (m->s->n_each_lists || n > room) return match_apart(m, n, n_dims);
  m->n_items = (uint32_t)n;
  return match_items(m, NULL);
}

/* ---- Overlap of arrays that are apart -------------------------------------------------------- */

/* Sorts the byte ranges by their start, and compares each with those that begin in it. */

typedef struct range {
  cuplug__span span;
  const cuplug_tensor *tensor;
  uint64_t is_inout;
} range;

/* Merges two sorted runs, from `begin` and from `middle` on. */
static void merge(const range *from, range *to, size_t begin, size_t middle, size_t end) {
  size_t a = begin, b = middle;
  for (size_t k = begin; k < end; k++) {
    const int is_first = b == end || (a < middle && from[a].span.low <= from[b].span.low);
    to[k] = is_first ? from[a++] : from[b++];
  }
}

/* Sorts n ranges, with room for the same number; returns their address. Lists are mostly allocated
 * one array after the other, so runs are detected. */
static range *sort(range *ranges, range *room, size_t n) {
  for (size_t n_runs = 2; n_runs > 1;) {
    size_t begin = 0;
    for (n_runs = 0; begin < n; n_runs++) {
      size_t middle = begin + 1, end;
      while (middle < n && ranges[middle - 1].span.low <= ranges[middle].span.low) middle++;
      for (end = middle + (middle < n);
           end < n && ranges[end - 1].span.low <= ranges[end].span.low;)
        end++;
      merge(ranges, room, begin, middle, end);
      begin = end;
    }
    range *sorted = room;
    room = ranges;
    ranges = sorted;
  }
  return ranges;
}

static size_t add(range *to, size_t n, const cuplug_tensor *t, int is_inout) {
  if (t->ndim < 0 || !t->data) return n;
  const cuplug__span span = cuplug__span_of(t);
  if (span.low == span.high) return n;
  to[n] = (range){span, t, (uint64_t)is_inout};
  return n + 1;
}

static size_t collect(const cuplug__match *m, range *to) {
  const cuplug_frame *f = m->frame;
  const cuplug_tensor *t = f->apart;
  size_t n = 0;
  for (uint32_t k = 0; k < f->n_inputs; k++) n = add(to, n, &f->tensors[k], m->inout_mask >> k & 1);
  for (int32_t i = 0; i < m->s->n_parameters; i++) {
    const cuplug_argument *a = list_of(m, i);
    for (uint32_t k = 0; a && k < a->list.n; k++) n = add(to, n, t++, m->s->parameters[i].is_inout);
  }
  return n;
}

static cuplug__item item_of(const cuplug__match *m, const cuplug_tensor *t) {
  const cuplug_frame *f = m->frame;
  if (t >= f->apart && t < f->apart + f->n_apart)
    return cuplug__find_apart(m, (uint32_t)(t - f->apart));
  return (cuplug__item){f->parameter[t - f->tensors], -1};
}

static int refuse(cuplug__match *m, const range *x, const range *y) {
  const cuplug_tensor *changed = x->is_inout ? x->tensor : y->tensor;
  const cuplug__item item = item_of(m, changed);
  const cuplug__item other = item_of(m, changed == x->tensor ? y->tensor : x->tensor);
  char number[32] = "";
  if (other.number >= 0) snprintf(number, sizeof number, ": item %" PRId64, other.number);
  m->item = item.number;
  cuplug__mismatch(m, item.parameter, CUPLUG_ERROR_VALUE,
                   "it is changed in place and %s %s%s; pass a copy of one of them",
                   cuplug__overlap_verb(cuplug__overlap(x->tensor, y->tensor)),
                   m->s->parameters[other.parameter].name, number);
  m->item = -1;
  return CUPLUG_ERROR_VALUE;
}

/* Compares sorted ranges: arrays that are changed with all that begin in them, others only with the
 * changed ones. Of the latter, next[k] is the first after range k. */
static int sweep(cuplug__match *m, const range *ranges, uint32_t n, uint32_t *next) {
  for (uint32_t k = n, changed = n; k-- > 0; changed = ranges[k].is_inout ? k : changed)
    next[k] = changed;
  for (uint32_t k = 0; k < n; k++) {
    const uint64_t is_inout = ranges[k].is_inout;
    for (uint32_t j = is_inout ? k + 1 : next[k]; j < n && ranges[j].span.low < ranges[k].span.high;
         j = is_inout ? j + 1 : next[j])
      if (cuplug__overlap(ranges[k].tensor, ranges[j].tensor))
        return refuse(m, &ranges[k], &ranges[j]);
  }
  return CUPLUG_OK;
}

int cuplug__check_apart(cuplug__match *m) {
  const size_t most = m->frame->n_inputs + (size_t)m->frame->n_apart;
  range *ranges = cuplug__frame_memory(m, most * (2 * sizeof *ranges + sizeof(uint32_t)));
  if (!ranges) return CUPLUG_ERROR_MEMORY;
  const size_t n = collect(m, ranges);
  uint32_t *next = (uint32_t *)(ranges + 2 * most);
  return sweep(m, sort(ranges, ranges + most, n), (uint32_t)n, next);
}
