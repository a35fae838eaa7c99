/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting along an axis: lines of m elements. Equal elements keep their order, also if
 * `descending`. NaN is larger than all numbers: last, or first if descending.
 *
 * sort(x, axis, descending): the elements in order.                  x, out T[*s]
 *   Zeros keep their signs and NaNs their bits, in the order of x.
 * argsort(x, axis, descending): their positions in that order.       x T[*s], out int64[*s]
 * sort_by(source, x, axis, descending): source in the order of x.    source, out V[*s], x T[*s]
 * sort_backward(grad, x, axis, descending): the gradient of both: grad[j] at the position from
 *   which element number j of the order of x came.                   grad, out V[*s], x T[*s]
 *
 * T: bool, integers, floating dtypes. An array without dimensions is a line of one element. Numbers
 * become unsigned keys of the same order. Keys without positions are sorted by vectors, and bytes
 * by counting. With positions, words of both are sorted by vectors if they have enough bits, else
 * the keys digit by digit. Bytes moved: for each byte of T, the keys and positions twice; by
 * vectors, x once, and the keys twice for each halving until caches hold them. */
#include "sorting/host/radix.h"

CUPLUG_ENTRY int sort_cuda(const cuplug_call *call);
CUPLUG_ENTRY int argsort_cuda(const cuplug_call *call);
CUPLUG_ENTRY int sort_by_cuda(const cuplug_call *call);
CUPLUG_ENTRY int sort_backward_cuda(const cuplug_call *call);

#define AT_ONCE (1 << 14)  /* elements that are worth a thread */
#define TOGETHER (1 << 11) /* elements that are tested together */

/* The output after lines are sorted. */
typedef struct writing {
  const sorting *s;
  elements_axis axis;
  order order;
  const void *from;
  void *out;
  int64_t element_bytes;
} writing;

/* For key number i of [begin, end): `line` begins at element `first`, and i is number j in it. */
#define FOR_KEYS(w, begin, end, BODY)                                                     \
  for (int64_t i = begin; i < end;) {                                                     \
    const int64_t line = i / (w)->s->m, last = (line + 1) * (w)->s->m;                    \
    const int64_t first = elements_line(&(w)->axis, line), width = (w)->axis.width;       \
    for (int64_t j = i - line * (w)->s->m; i < (last < end ? last : end); i++, j++) BODY; \
  }

static int write_numbers(void *context, int64_t begin, int64_t end) {
  const writing *w = context;
  const order o = w->order;
#define CASE(T)           \
  FOR_KEYS(w, begin, end, \
           ((T *)w->out)[first + j * width] = (T)order_bits(&o, ((const T *)w->s->keys)[i]))
  switch (o.n_bytes) {
  case 1:
    CASE(uint8_t)
    break;
  case 2:
    CASE(uint16_t)
    break;
  case 4:
    CASE(uint32_t)
    break;
  default:
    CASE(uint64_t)
  }
#undef CASE
  return CUPLUG_OK;
}

static int write_index(void *context, int64_t begin, int64_t end) {
  const writing *w = context;
  FOR_KEYS(w, begin, end, ((int64_t *)w->out)[first + j * width] = w->s->index[i])
  return CUPLUG_OK;
}

static int write_taken(void *context, int64_t begin, int64_t end) {
  const writing *w = context;
#define CASE(V)                               \
  FOR_KEYS(w, begin, end,                     \
           ((V *)w->out)[first + j * width] = \
               ((const V *)w->from)[first + w->s->index[i] * width])
  ELEMENTS_BY_WIDTH(w->element_bytes, CASE)
#undef CASE
  return CUPLUG_OK;
}

static int write_back(void *context, int64_t begin, int64_t end) {
  const writing *w = context;
#define CASE(V)                                            \
  FOR_KEYS(w, begin, end,                                  \
           ((V *)w->out)[first + w->s->index[i] * width] = \
               ((const V *)w->from)[first + j * width])
  ELEMENTS_BY_WIDTH(w->element_bytes, CASE)
#undef CASE
  return CUPLUG_OK;
}

/* Sorted lines of numbers get the zeros and NaNs of x. Short lines are tested together for any. */
static int restore(void *context, int64_t begin, int64_t end) {
  const writing *w = context;
  const int64_t m = w->axis.m, n_bytes = w->order.n_bytes;
  const int64_t at_once = w->axis.width == 1 && m < TOGETHER / 4 ? 1 + TOGETHER / (m + 1) : 1;
  for (int64_t line = begin, n; line < end; line += n) {
    n = end - line < at_once ? end - line : at_once;
    const char *x = (const char *)w->from + line * m * n_bytes;
    if (at_once > 1 && !sorting_has_unequal(&w->order, x, n * m)) continue;
    for (int64_t k = line; k < line + n; k++) {
      const int64_t at = elements_line(&w->axis, k) * n_bytes;
      sorting_restore(&w->order, (const char *)w->from + at, w->axis.width, m, (char *)w->out + at,
                      m);
    }
  }
  return CUPLUG_OK;
}

/* Sorts x, and writes the output that `write` computes from it and from the first array. */
static int sort(const cuplug_call *call, const cuplug_tensor *x, cuplug_body *write) {
  sorting s;
  writing w = {.s = &s, .from = call->tensors[0].data, .out = call->outputs[0].data};
  w.axis = elements_around(x, call->scalars[0].i);
  w.order = order_of(x, call->scalars[1].i != 0);
  w.element_bytes = cuplug_element_bytes(&call->tensors[0]);
  const int64_t n_lines = w.axis.n_outer * w.axis.width;
  const int is_alone = write == write_numbers, is_index = write == write_index;
  int status = sorting_begin(&s, call, w.order.n_bytes, n_lines, w.axis.m,
                             is_alone ? SORTING_ALONE : SORTING_PLACES,
                             w.axis.width == 1 && (is_alone || is_index) ? w.out : NULL);
  if (!status) status = sorting_load(&s, x, &w.axis, &w.order);
  const int is_done = s.keys == w.out && (s.by || s.width == 1);
  if (!status) status = is_done ? sorting_run_by_vectors(&s, &w.order) : sorting_run(&s);
  if (status || s.index == w.out) return status;
  if (!is_done) status = cuplug_parallel(call, n_lines * s.m, AT_ONCE, write, &w);
  if (status || !is_alone || !w.order.infinity) return status;
  return cuplug_parallel(call, n_lines, 1 + AT_ONCE / (s.m + 1), restore, &w);
}

CUPLUG_ENTRY int sort_host(const cuplug_call *call) {
  return sort(call, &call->tensors[0], write_numbers);
}
CUPLUG_ENTRY int argsort_host(const cuplug_call *call) {
  return sort(call, &call->tensors[0], write_index);
}
CUPLUG_ENTRY int sort_by_host(const cuplug_call *call) {
  return sort(call, &call->tensors[1], write_taken);
}
CUPLUG_ENTRY int sort_backward_host(const cuplug_call *call) {
  return sort(call, &call->tensors[1], write_back);
}

#define REST ", axis: int = -1, descending: bool = False) -> "
#define SORTABLE "T: bool | integer | floating, -max(len(s), 1) <= axis < max(len(s), 1)"

CUPLUG_OPERATOR(sort_cuda, sort_host, "sort(x: T[*s]" REST "T[*s] where " SORTABLE,
                "The elements sorted along an axis." CUPLUG_ALONG(axis)
                    CUPLUG_NONBLOCKING CUPLUG_DETERMINISTIC CUPLUG_GRADIENT(sort_backward));
CUPLUG_OPERATOR(argsort_cuda, argsort_host, "argsort(x: T[*s]" REST "int64[*s] where " SORTABLE,
                "The indices that sort the elements stably." CUPLUG_ALONG(axis)
                    CUPLUG_DETERMINISTIC);
CUPLUG_OPERATOR(sort_by_cuda, sort_by_host,
                "sort_by(source: V[*s], x: T[*s]" REST "V[*s] where V: any, " SORTABLE,
                "The elements of source, in the order that sorts x." CUPLUG_ALONG(axis)
                    CUPLUG_DETERMINISTIC CUPLUG_GRADIENT(sort_backward) CUPLUG_LINEAR(source));
CUPLUG_OPERATOR(
    sort_backward_cuda, sort_backward_host,
    "sort_backward(grad: V[*s], x: T[*s]" REST "V[*s] where V: floating | complex, " SORTABLE,
    "The gradient of sort: grad at the original positions of the elements." CUPLUG_ALONG(axis)
        CUPLUG_DETERMINISTIC CUPLUG_GRADIENT(sort_by) CUPLUG_LINEAR(grad));
CUPLUG_PLUGIN(sorting, "1.0.0");
