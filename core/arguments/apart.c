/* SPDX-License-Identifier: Apache-2.0 */
/* Whether arrays that are changed in place share memory with others, for lists of any length: the
 * bytes that each array spans are sorted by their begin, and each is compared with those before it
 * that end behind it. */
#include "arguments/apart.h"

#include "arguments/lists.h"
#include "arguments/overlap.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

/* Sorts n ranges, with room for as many; returns where they are then. Lists are mostly made one
 * array after the other, so runs are looked for. */
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
    const cuplug_parameter *x = &m->s->parameters[i];
    const cuplug_argument *a = cuplug__argument(m, i);
    if (x->kind != CUPLUG_PARAMETER_ARRAYS || a->kind != CUPLUG_ARGUMENT_LIST) continue;
    for (uint32_t k = 0; k < a->list.n; k++) n = add(to, n, t++, x->is_inout);
  }
  return n;
}

/* ---- The sweep ------------------------------------------------------------------------------- */

/* Numbers of ranges that have not ended. */
typedef struct open {
  uint32_t *numbers;
  size_t n;
} open;

/* Leaves out those that end before range k; returns one that shares memory with it, NULL: none. */
static const range *meets(const range *ranges, uint32_t k, open *before) {
  const range *found = NULL;
  size_t n = 0;
  for (size_t at = 0; at < before->n; at++) {
    const range *other = &ranges[before->numbers[at]];
    if (other->span.high <= ranges[k].span.low) continue;
    before->numbers[n++] = before->numbers[at];
    if (!found && cuplug__overlap(other->tensor, ranges[k].tensor)) found = other;
  }
  before->n = n;
  return found;
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

static int sweep(cuplug__match *m, const range *ranges, uint32_t n, uint32_t *numbers) {
  open read = {numbers, 0}, changed = {numbers + n, 0};
  for (uint32_t k = 0; k < n; k++) {
    const range *other = meets(ranges, k, &changed);
    if (!other && ranges[k].is_inout) other = meets(ranges, k, &read);
    if (other) return refuse(m, other, &ranges[k]);
    open *own = ranges[k].is_inout ? &changed : &read;
    own->numbers[own->n++] = k;
  }
  return CUPLUG_OK;
}

int cuplug__check_apart(cuplug__match *m) {
  const size_t most = m->frame->n_inputs + (size_t)m->frame->n_apart;
  range *ranges = cuplug__frame_memory(m, most * (2 * sizeof *ranges + 2 * sizeof(uint32_t)));
  if (!ranges) return CUPLUG_ERROR_MEMORY;
  const size_t n = collect(m, ranges);
  uint32_t *numbers = (uint32_t *)(ranges + 2 * most);
  return sweep(m, sort(ranges, ranges + most, n), (uint32_t)n, numbers);
}
