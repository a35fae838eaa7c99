/* SPDX-License-Identifier: Apache-2.0 */
/* topk(x, k, axis, largest): the k largest or smallest elements along an axis, in order, and their
 * positions. Of equal elements, the first come first. NaN is larger than all numbers.
 *   x T[*s]; values T[..., k, ...], indices int64[..., k, ...]: k in place of the axis
 * topk_backward(grad_values, indices, x, axis): its gradient: zeros, with grad_values at the
 * indices. No index may occur twice in a line. Bad indices raise IndexError.
 *   grad_values T[*g], indices int64[*g]; x T[*s], only its shape is used; out T[*s]
 *
 * A line is read once. Keys that are smaller than the k smallest ones so far are set aside. When
 * the memory for them is full, only the k smallest are kept, which are found by counting the keys
 * up to a bound. At the end these k are sorted. Bytes moved: x once. */
#include "sorting/host/radix.h"
#include "vectors.h"

#include <stdlib.h>
#include <string.h>

CUPLUG_ENTRY int topk_cuda(const cuplug_call *call);
CUPLUG_ENTRY int topk_backward_cuda(const cuplug_call *call);
CUPLUG_ENTRY int topk_backward_backward_cuda(const cuplug_call *call);

#define AT_ONCE (1 << 15) /* elements that are worth a thread */

#define BLOCK 1024 /* elements that are read as keys */
#define GROUP 64   /* keys that are tested together: a block is a multiple of them */
#define ROOM 1024  /* minimum number of keys that are set aside */

typedef struct job {
  const cuplug_call *call;
  sorting top;
  elements_axis axis, axis_of_top;
  order order;
  const char *x;
  void *values;
  int64_t *indices, element_bytes, room;
} job;

/* Keys of a line that may be among its k smallest ones, in the order in which they were read. */
typedef struct aside {
  void *keys;
  int64_t *index, n;
  uint64_t below; /* only smaller keys matter from then on, */
  int is_full;    /* after there were k */
} aside;

/* keep: of more than k keys, keeps the k smallest ones, of equal ones the first. Key number k is
 * found by bisection, since counting smaller ones takes few vector instructions. add: adds n <=
 * BLOCK keys of a line, the first with number `first`, for which memory is available. */
#define ASIDE(K, name)                                                                \
  VECTORS static int64_t count_##name(const K *keys, int64_t n, K most) {             \
    int64_t n_found = 0;                                                              \
    for (int64_t begin = 0; begin < n; begin += BLOCK) {                              \
      const int64_t end = begin + BLOCK < n ? begin + BLOCK : n;                      \
      K found = 0;                                                                    \
      for (int64_t i = begin; i < end; i++) found += keys[i] <= most;                 \
      n_found += (int64_t)found;                                                      \
    }                                                                                 \
    return n_found;                                                                   \
  }                                                                                   \
  VECTORS static void find_limits_##name(const K *keys, int64_t n, K *low, K *high) { \
    K least_key = keys[0], greatest = keys[0];                                        \
    for (int64_t i = 1; i < n; i++) {                                                 \
      least_key = keys[i] < least_key ? keys[i] : least_key;                          \
      greatest = keys[i] > greatest ? keys[i] : greatest;                             \
    }                                                                                 \
    *low = least_key, *high = greatest;                                               \
  }                                                                                   \
  static void keep_##name(aside *a, int64_t k) {                                      \
    K *keys = a->keys, low, high;                                                     \
    int64_t n_less = 0, at = 0; /* of keys smaller than `low` */                      \
    find_limits_##name(keys, a->n, &low, &high);                                      \
    while (low < high && n_less < k) {                                                \
      const K middle = low + (high - low) / 2;                                        \
      const int64_t n = count_##name(keys, a->n, middle);                             \
      if (n > k)                                                                      \
        high = middle;                                                                \
      else                                                                            \
        low = middle + 1, n_less = n;                                                 \
    }                                                                                 \
    int64_t left = k - n_less;                                                        \
    for (int64_t i = 0; at < k; i++) {                                                \
      const K key = keys[i];                                                          \
      const int is_last = key == low;                                                 \
      keys[at] = key;                                                                 \
      a->index[at] = a->index[i];                                                     \
      at += key < low || (is_last && left > 0);                                       \
      left -= is_last;                                                                \
    }                                                                                 \
    a->n = k, a->below = low, a->is_full = 1;                                         \
  }                                                                                   \
  VECTORS static void add_##name(aside *a, const K *from, int64_t n, int64_t first) { \
    const K below = (K)a->below;                                                      \
    K *keys = a->keys;                                                                \
    int64_t *index = a->index, at = a->n;                                             \
    if (!a->is_full) {                                                                \
      memcpy(keys + at, from, (size_t)n * sizeof *keys);                              \
      for (int64_t i = 0; i < n; i++) index[at + i] = first + i;                      \
      a->n += n;                                                                      \
      return;                                                                         \
    }                                                                                 \
    for (int64_t begin = 0; begin < n; begin += GROUP) {                              \
      const int64_t end = begin + GROUP < n ? begin + GROUP : n;                      \
      K found = 0;                                                                    \
      for (int64_t i = begin; i < end; i++) found |= from[i] < below;                 \
      for (int64_t i = begin; found && i < end; i++) {                                \
        keys[at] = from[i];                                                           \
        index[at] = first + i;                                                        \
        at += from[i] < below;                                                        \
      }                                                                               \
    }                                                                                 \
    a->n = at;                                                                        \
  }

ASIDE(uint32_t, narrow)
ASIDE(uint64_t, wide)

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The first block is small, so that few later keys are smaller than its k smallest ones. */
static void choose_line(const job *j, int64_t line, aside *a) {
  const int64_t m = j->axis.m, k = j->top.m, step = j->axis.width, n_bytes = j->order.n_bytes;
  const int is_wide = n_bytes == 8;
  const int64_t first = least(BLOCK, GROUP + (2 * k + GROUP - 1) / GROUP * GROUP);
  const char *x = j->x + elements_line(&j->axis, line) * n_bytes;
  uint64_t block[BLOCK];
  a->n = 0, a->is_full = 0;
  for (int64_t begin = 0, n; begin < m; begin += n) {
    n = least(m - begin, a->is_full ? BLOCK : first);
    if (a->n + n > j->room || (!a->is_full && a->n >= first && first < BLOCK))
      is_wide ? keep_wide(a, k) : keep_narrow(a, k);
    sorting_read(&j->order, x + begin * step * n_bytes, step, n, j->top.width, block);
    is_wide ? add_wide(a, block, n, begin) : add_narrow(a, (const uint32_t *)block, n, begin);
  }
  if (a->n > k) is_wide ? keep_wide(a, k) : keep_narrow(a, k);
  memcpy((char *)j->top.keys + line * k * (is_wide ? 8 : 4), a->keys,
         (size_t)(k * (is_wide ? 8 : 4)));
  memcpy(j->top.index + line * k, a->index, (size_t)k * sizeof *a->index);
}

static int choose_lines(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  aside a = {.index = malloc((size_t)(j->room + 1) * (sizeof *a.index + sizeof(uint64_t)))};
  if (!a.index) return cuplug_fail(j->call, CUPLUG_ERROR_MEMORY, "no memory for keys");
  a.keys = a.index + j->room + 1;
  for (int64_t line = begin; line < end; line++) choose_line(j, line, &a);
  free(a.index);
  return CUPLUG_OK;
}

static int write_lines(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  const int64_t width = j->axis.width, k = j->top.m;
  for (int64_t line = begin; line < end; line++) {
    const int64_t from = elements_line(&j->axis, line), to = elements_line(&j->axis_of_top, line);
    const int64_t *index = j->top.index + line * k;
    for (int64_t i = 0; i < k; i++) j->indices[to + i * width] = index[i];
#define CASE(T)                   \
  for (int64_t i = 0; i < k; i++) \
    ((T *)j->values)[to + i * width] = ((const T *)(const void *)j->x)[from + index[i] * width];
    ELEMENTS_BY_WIDTH(j->element_bytes, CASE)
#undef CASE
  }
  return CUPLUG_OK;
}

CUPLUG_ENTRY int topk_host(const cuplug_call *call) {
  const cuplug_tensor *x = &call->tensors[0];
  const int64_t k = call->scalars[0].i, axis = call->scalars[1].i;
  job j = {.call = call, .axis = elements_around(x, axis), .x = x->data};
  const int64_t n_lines = j.axis.n_outer * j.axis.width, grain = 1 + AT_ONCE / (j.axis.m + 1);
  if (k == 0 || n_lines == 0) return CUPLUG_OK;
  j.order = order_of(x, call->scalars[2].i != 0);
  j.axis_of_top = (elements_axis){j.axis.n_outer, k, j.axis.width};
  j.values = call->outputs[0].data;
  j.indices = call->outputs[1].data;
  j.element_bytes = cuplug_element_bytes(x);
  j.room = 4 * k + ROOM + BLOCK;
  if (j.room > j.axis.m) j.room = j.axis.m;
  int status = sorting_begin(&j.top, call, j.order.n_bytes, n_lines, k, SORTING_GIVEN, NULL);
  if (!status) status = cuplug_parallel(call, n_lines, grain, choose_lines, &j);
  if (!status) status = sorting_run(&j.top);
  return status ? status : cuplug_parallel(call, n_lines, grain, write_lines, &j);
}

/* ---- The gradient ---------------------------------------------------------------------------- */

/* Moves line after line back to the first output, or from where it was moved. Returns the position
 * of a bad index, or -1. */
static int64_t put_back(const cuplug_call *call, elements_axis axis, elements_axis chosen,
                        int is_back) {
  const int64_t *indices = call->tensors[1].data;
  const void *x = call->tensors[0].data;
  void *out = call->outputs[0].data;
  for (int64_t line = 0; line < axis.n_outer * axis.width; line++) {
    const int64_t from = elements_line(&chosen, line), to = elements_line(&axis, line);
    for (int64_t i = 0; i < chosen.m; i++) {
      const int64_t at = from + i * axis.width, index = indices[at];
      if (index < 0 || index >= axis.m) return at;
      const int64_t place = to + index * axis.width;
#define CASE(T) ((T *)out)[is_back ? place : at] = ((const T *)x)[is_back ? at : place];
      ELEMENTS_BY_WIDTH(cuplug_element_bytes(&call->tensors[0]), CASE)
#undef CASE
    }
  }
  return -1;
}

static int check_index(const cuplug_call *call, int64_t bad, elements_axis axis) {
  if (bad < 0) return CUPLUG_OK;
  return cuplug_failf(call, CUPLUG_ERROR_INDEX,
                      "indices: index %lld at position %lld is out of bounds for size %lld",
                      (long long)((const int64_t *)call->tensors[1].data)[bad], (long long)bad,
                      (long long)axis.m);
}

CUPLUG_ENTRY int topk_backward_host(const cuplug_call *call) {
  const cuplug_tensor *x = &call->tensors[2], *out = &call->outputs[0];
  const int status =
      elements_check_beside(call, "grad_values", &call->tensors[0], x, call->scalars[0].i);
  if (status) return status;
  memset(out->data, 0, (size_t)(cuplug_n_elements(out) * cuplug_element_bytes(out)));
  const elements_axis axis = elements_around(x, call->scalars[0].i);
  return check_index(
      call, put_back(call, axis, elements_around(&call->tensors[0], call->scalars[0].i), 1), axis);
}

CUPLUG_ENTRY int topk_backward_backward_host(const cuplug_call *call) {
  const cuplug_tensor *x = &call->tensors[0], *indices = &call->tensors[1];
  const int status = elements_check_beside(call, "indices", indices, x, call->scalars[0].i);
  if (status) return status;
  const elements_axis axis = elements_around(x, call->scalars[0].i);
  return check_index(call, put_back(call, axis, elements_around(indices, call->scalars[0].i), 0),
                     axis);
}

#define NO_MORE "g[axis % len(s)] <= s[axis % len(s)]"
#define OF_TOP "[*s[:axis % len(s)], k, *s[axis % len(s) + 1:]]"

CUPLUG_OPERATOR(topk_cuda, topk_host,
                "topk(x: T[*s], k: int, axis: int = -1, largest: bool = True) -> "
                "(values: T" OF_TOP ", indices: int64" OF_TOP
                ") where T: bool | integer | floating, "
                "-len(s) <= axis < len(s), 0 <= k <= s[axis % len(s)]",
                "The k largest elements along an axis in descending order, or the smallest in "
                "ascending order, and their positions." CUPLUG_ALONG(axis)
                    CUPLUG_DETERMINISTIC CUPLUG_GRADIENT(topk_backward));
CUPLUG_OPERATOR(
    topk_backward_cuda, topk_backward_host,
    "topk_backward(grad_values: T[*g], indices: int64[*g], x: T[*s], axis: int = -1) -> "
    "T[*s] where T: floating, -len(s) <= axis < len(s), len(g) == len(s), " NO_MORE,
    "The gradient of topk: zeros, with grad_values at the indices." CUPLUG_ALONG(axis)
        CUPLUG_GRADIENT(topk_backward_backward) CUPLUG_LINEAR(grad_values));
CUPLUG_OPERATOR(topk_backward_backward_cuda, topk_backward_backward_host,
                "topk_backward_backward(x: T[*s], indices: int64[*g], axis: int = -1) -> T[*g] "
                "where T: floating, -len(s) <= axis < len(s), len(g) == len(s), " NO_MORE,
                "The gradient of topk_backward: the elements of x at the indices." CUPLUG_ALONG(
                    axis) CUPLUG_DETERMINISTIC CUPLUG_GRADIENT(topk_backward) CUPLUG_LINEAR(x));
