/* SPDX-License-Identifier: Apache-2.0 */
/* A byte of an array is at low + sum(|stride| * index) + byte of the element. Two arrays share one
 * if a sum of such terms, each with an index from 0 to its bound, has a certain value: with the
 * indices of the second array counted from their ends, all terms are positive. */
#include "arguments/overlap.h"

#include "arguments/lists.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_TERMS (2 * CUPLUG_MAX_NDIM + 2)
#define MAX_STEPS 10000

/* Terms of different steps, the largest first. */
typedef struct sum {
  int n, n_tried;
  uint64_t step[MAX_TERMS], bound[MAX_TERMS];
  uint64_t divisor[MAX_TERMS + 1], most[MAX_TERMS + 1]; /* of a term and all after it */
} sum;

static void add_term(sum *s, uint64_t step, uint64_t bound) {
  int at = 0;
  if (!step || !bound) return;
  while (at < s->n && s->step[at] > step) at++;
  if (at < s->n && s->step[at] == step) {
    s->bound[at] += bound;
    return;
  }
  for (int k = s->n++; k > at; k--) s->step[k] = s->step[k - 1], s->bound[k] = s->bound[k - 1];
  s->step[at] = step;
  s->bound[at] = bound;
}

static void add_terms(sum *s, const cuplug_tensor *x) {
  const uint64_t element = (uint64_t)cuplug_element_bytes(x);
  if (!x->strides) {
    add_term(s, 1, (uint64_t)cuplug__n_bytes(x) - 1);
    return;
  }
  for (int32_t k = 0; k < x->ndim; k++) {
    const uint64_t stride = (uint64_t)x->strides[k];
    add_term(s, (x->strides[k] < 0 ? -stride : stride) * element, (uint64_t)x->shape[k] - 1);
  }
  add_term(s, 1, element - 1);
}

static uint64_t common_divisor(uint64_t a, uint64_t b) {
  while (b) {
    const uint64_t rest = a % b;
    a = b, b = rest;
  }
  return a;
}

/* 1 if the terms from k on can be `value`: the largest step leaves few choices if the strides of
 * arrays are nested. */
static int can_be(sum *s, int k, uint64_t value) {
  if (k == s->n || value > s->most[k] || value % s->divisor[k]) return !value;
  const uint64_t step = s->step[k], rest = s->most[k + 1];
  const uint64_t high = cuplug__min(s->bound[k], value / step);
  const uint64_t low = value > rest ? (value - rest + step - 1) / step : 0;
  for (uint64_t x = high + 1; x-- > low;) {
    if (++s->n_tried > MAX_STEPS) return 1;
    if (can_be(s, k + 1, value - x * step)) return 1;
  }
  return 0;
}

int cuplug__overlap(const cuplug_tensor *a, const cuplug_tensor *b) {
  const cuplug__span x = cuplug__span_of(a), y = cuplug__span_of(b);
  sum s;
  if (!cuplug__spans_overlap(x, y)) return 0;
  if (cuplug__is_contiguous(a) && cuplug__is_contiguous(b)) return 1;
  s.n = s.n_tried = 0;
  add_terms(&s, a);
  add_terms(&s, b);
  s.divisor[s.n] = s.most[s.n] = 0;
  for (int k = s.n - 1; k >= 0; k--) {
    s.divisor[k] = common_divisor(s.step[k], s.divisor[k + 1]);
    s.most[k] = s.most[k + 1] + s.step[k] * s.bound[k];
  }
  const int is_shared = can_be(&s, 0, y.high - 1 - x.low);
  return s.n_tried > MAX_STEPS ? 2 : is_shared;
}

int cuplug__same_memory(const cuplug_tensor *a, const cuplug_tensor *b) {
  const int same = cuplug__is_contiguous(a) + cuplug__is_contiguous(b);
  if (cuplug__first_element(a) != cuplug__first_element(b) ||
      memcmp(&a->device, &b->device, CUPLUG__TYPE_BYTES) ||
      !cuplug__same_sizes(a->shape, b->shape, a->ndim))
    return 0;
  if (same) return same == 2;
  for (int32_t k = 0; k < a->ndim; k++)
    if (a->shape[k] > 1 && a->strides[k] != b->strides[k]) return 0;
  return 1;
}

/* ---- Lists of any length --------------------------------------------------------------------- */

/* The byte ranges of the arrays are sorted by their start, and each is compared with earlier ones
 * that end after it. */

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
