/* SPDX-License-Identifier: Apache-2.0 */
#include "base/layout.h"

#include <string.h>

static int is_empty(const cuplug_tensor *x) {
  for (int32_t k = 0; k < x->ndim; k++)
    if (x->shape[k] == 0) return 1;
  return 0;
}

static uint64_t magnitude(int64_t x) { return x < 0 ? -(uint64_t)x : (uint64_t)x; }

int cuplug__has_contiguous_strides(const cuplug_tensor *x) {
  int64_t expected = 1;
  int contiguous = 1;
  for (int32_t k = x->ndim - 1; k >= 0; k--) {
    if (x->shape[k] == 0) return 1;
    if (x->shape[k] != 1 && x->strides[k] != expected) contiguous = 0;
    if (__builtin_mul_overflow(expected, x->shape[k], &expected)) contiguous = 0;
  }
  return contiguous;
}

int cuplug__has_possible_strides(const cuplug_tensor *x) {
  int64_t reach, first = 0, last = 0;
  if (!x->strides || is_empty(x)) return 1;
  for (int32_t k = 0; k < x->ndim; k++) {
    int64_t *end = x->strides[k] < 0 ? &first : &last;
    if (__builtin_mul_overflow(x->shape[k] - 1, x->strides[k], &reach) ||
        __builtin_add_overflow(*end, reach, end))
      return 0;
  }
  /* In bytes, such that their sum also fits. */
  const int64_t most = INT64_MAX / 2 / cuplug_element_bytes(x) - 1;
  return first >= -most && last <= most;
}

cuplug__span cuplug__strided_span(const cuplug_tensor *x) {
  const uintptr_t data = (uintptr_t)cuplug__first_element(x);
  int64_t element = cuplug_element_bytes(x), first = 0, last = 0;
  /* First: without elements the other sizes may be of any product. */
  if (is_empty(x)) return (cuplug__span){data, data};
  for (int32_t k = 0; k < x->ndim; k++) {
    int64_t reach = (x->shape[k] - 1) * x->strides[k];
    *(reach < 0 ? &first : &last) += reach;
  }
  return (cuplug__span){data + (uintptr_t)(first * element),
                        data + (uintptr_t)((last + 1) * element)};
}

/* Returns 1 if dimension `a` is inside dimension b, -1 if it is outside, 0 if either order is
 * possible: a stride of 0 is not ordered. Of equal strides, the dimension of size 1 is inside. */
static int compare(const cuplug_tensor *x, int32_t a, int32_t b) {
  const uint64_t first = magnitude(x->strides[a]), second = magnitude(x->strides[b]);
  if (!first || !second) return 0;
  if (first != second) return first < second ? 1 : -1;
  return (x->shape[a] == 1) - (x->shape[b] == 1);
}

/* By insertion: undecided comparisons are skipped. */
void cuplug__sort_dims(const cuplug_tensor *x, int32_t *dims) {
  for (int32_t n = 0; n < x->ndim; n++) {
    dims[n] = n;
    for (int32_t k = n - 1, at = n; x->strides && k >= 0; k--) {
      const int order = compare(x, dims[k], dims[at]);
      if (order < 0) break;
      if (!order) continue;
      const int32_t moved = dims[at];
      dims[at] = dims[k], dims[k] = moved, at = k;
    }
  }
}

int cuplug__shares_elements(const cuplug_tensor *x) {
  int32_t dims[CUPLUG_MAX_NDIM];
  uint64_t reach = 0;
  if (!x->strides || is_empty(x)) return 0;
  cuplug__sort_dims(x, dims);
  for (int32_t k = x->ndim - 1; k >= 0; k--) {
    const uint64_t stride = magnitude(x->strides[dims[k]]), n = (uint64_t)x->shape[dims[k]];
    if (n > 1 && stride <= reach) return 1;
    reach += (n - 1) * stride;
  }
  return 0;
}

/* ---- Overlap --------------------------------------------------------------------------------- */

/* A byte of an array is at low + sum(|stride| * index) + byte of the element. Two arrays share one
 * if a sum of such terms, each with an index from 0 to its bound, has a certain value: with the
 * indices of the second array counted from their ends, all terms are positive. */

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

/* 1 if the sum of the terms from k on can be `value`: the largest step leaves few choices if the
 * strides of arrays are nested. */
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
