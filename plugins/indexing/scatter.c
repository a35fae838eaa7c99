/* SPDX-License-Identifier: Apache-2.0 */
/* Elements by their positions along an axis, which differ in each line. indices I[*n], int32 or
 * int64, has the number of dimensions of x T[*s], and its sizes except along the axis. -m <= index
 * < m, negative ones count from the end, and others raise IndexError.
 *
 * take_along_axis(source, indices, axis): out[..i..] = source[..indices[..i..]..]    out T[*n]
 * take_along_axis_backward(grad, indices, source, axis): its gradient: zeros, with grad added at
 *   the indices                                                            grad T[*n], out T[*s]
 * put_along_axis(x, indices, values, axis): x[..indices[..i..]..] = values[..i..], in place
 * scatter(x, indices, values, axis): the same in a copy                    values T[*n], out T[*s]
 * scatter_backward(grad, indices, axis): the gradients of both: grad, with 0 at written elements;
 *   and grad at the indices, for one of the values of each element
 * scatter_add(x, indices, values, axis): a copy to which values are added
 * scatter_add_backward(grad, indices, axis): its gradients: grad; and grad at the indices
 * put(x, indices, values): x[indices[i]] = values[i], rows of x, in place
 *                                              x T[m, *row], indices I[n], values T[n, *row]
 * put_backward(grad, indices): the gradients of put, as in scatter_backward
 *
 * All values for one element are added: on the host in their order, on a GPU in any order. Of
 * several values written to one element, one remains: on the host the last. (On a GPU, gradients
 * may belong to another one.) float16 and bfloat16 are rounded after each addition. After a bad
 * index, the written elements are unspecified. Bytes moved: indices and values once, a line of
 * memory for each element; copies twice x. If threads of the host sort the values first, values and
 * positions three times, and x once: buckets.c. */
#include "indexing/scatter.h"
#include "vectors.h"

#include <complex.h>
#include <cuplug/half.h>
#include <string.h>

CUPLUG_ENTRY int take_along_axis_cuda(const cuplug_call *call);
CUPLUG_ENTRY int take_along_axis_backward_cuda(const cuplug_call *call);
CUPLUG_ENTRY int put_along_axis_cuda(const cuplug_call *call);
CUPLUG_ENTRY int scatter_cuda(const cuplug_call *call);
CUPLUG_ENTRY int scatter_backward_cuda(const cuplug_call *call);
CUPLUG_ENTRY int scatter_add_cuda(const cuplug_call *call);
CUPLUG_ENTRY int scatter_add_backward_cuda(const cuplug_call *call);
CUPLUG_ENTRY int put_cuda(const cuplug_call *call);
CUPLUG_ENTRY int put_backward_cuda(const cuplug_call *call);

#define WIDE 16         /* elements of a row, which are vectorized */
#define LEAST (1 << 14) /* values that are worth a thread */

#define TAKE(T) \
  for (int64_t k = 0; k < n; k++) ((T *)j->values)[first + k] = ((const T *)j->x)[at[k]];
#define PUT(T) \
  for (int64_t k = 0; k < n; k++) ((T *)j->x)[at[k]] = ((const T *)j->values)[first + k];
#define CLEAR(T)                                                     \
  for (int64_t k = 0; k < n; k++) {                                  \
    ((T *)j->x)[at[k]] = (T){0};                                     \
    j->last[at[k]] = j->numbers ? j->numbers[first + k] : first + k; \
  }
#define TAKE_LAST(T)              \
  for (int64_t k = 0; k < n; k++) \
    ((T *)j->values)[first + k] = j->last[at[k]] == first + k ? ((const T *)j->x)[at[k]] : (T){0};

void take(const job *j, const int64_t *at, int64_t first, int64_t n) {
  ELEMENTS_BY_WIDTH(j->element_bytes, TAKE)
}
void put(const job *j, const int64_t *at, int64_t first, int64_t n) {
  ELEMENTS_BY_WIDTH(j->element_bytes, PUT)
}
/* Several threads may write one element. */
#define PUT_ONE(T)                                                    \
  {                                                                   \
    const T value = *(const T *)j->values;                            \
    _Pragma("GCC unroll 4") for (int64_t k = 0; k < n; k++)           \
        __atomic_store_n((T *)j->x + at[k], value, __ATOMIC_RELAXED); \
  }                                                                   \
  break;
void put_one(const job *j, const int64_t *at, int64_t first, int64_t n) {
  (void)first;
  switch (j->element_bytes) {
  case 1:
    PUT_ONE(uint8_t)
  case 2:
    PUT_ONE(uint16_t)
  case 4:
    PUT_ONE(uint32_t)
  default:
    PUT_ONE(uint64_t)
  }
}
static void clear(const job *j, const int64_t *at, int64_t first, int64_t n) {
  ELEMENTS_BY_WIDTH(j->element_bytes, CLEAR)
}
static void take_last(const job *j, const int64_t *at, int64_t first, int64_t n) {
  ELEMENTS_BY_WIDTH(j->element_bytes, TAKE_LAST)
}

#define ADD(T, load, store)                                                           \
  for (int64_t k = 0; k < n; k++)                                                     \
    ((T *)j->x)[at[k]] =                                                              \
        (T)store(load(((T *)j->x)[at[k]]) + load(((const T *)j->values)[first + k])); \
  break;

void add(const job *j, const int64_t *at, int64_t first, int64_t n) {
  switch (cuplug_type(&j->call->outputs[0])) {
  case CUPLUG_INT8:
  case CUPLUG_UINT8:
    ADD(uint8_t, , )
  case CUPLUG_INT16:
  case CUPLUG_UINT16:
    ADD(uint16_t, , )
  case CUPLUG_INT32:
  case CUPLUG_UINT32:
    ADD(uint32_t, , )
  case CUPLUG_INT64:
  case CUPLUG_UINT64:
    ADD(uint64_t, , )
  case CUPLUG_FLOAT16:
    ADD(uint16_t, cuplug_float16_load, cuplug_float16_store)
  case CUPLUG_BFLOAT16:
    ADD(uint16_t, cuplug_bfloat16_load, cuplug_bfloat16_store)
  case CUPLUG_FLOAT32:
    ADD(float, , )
  case CUPLUG_FLOAT64:
    ADD(double, , )
  case CUPLUG_COMPLEX64:
    ADD(float complex, , )
  default:
    ADD(double complex, , )
  }
}

int fail_index(const job *j, int64_t e) {
  const int64_t number = places_number(&j->places, e);
  return cuplug_failf(j->call, CUPLUG_ERROR_INDEX,
                      "indices: index %lld at position %lld is out of bounds for size %lld",
                      (long long)places_index(&j->places, number), (long long)number,
                      (long long)j->places.x.m);
}

/* Finds the elements of x for values `first` to first + n - 1. Returns their number before a bad
 * index. */
static inline __attribute__((always_inline)) int64_t find_run(places p, int64_t first, int64_t n,
                                                              int64_t *at) {
  int64_t column = first % p.x.width, row = first / p.x.width % p.n_along;
  int64_t base = first / p.x.width / p.n_along * p.x.m;
  for (int64_t k = 0; k < n; k++) {
    int64_t index = places_index(&p, p.has_rows ? row : first + k);
    index += index < 0 ? p.x.m : 0;
    if ((uint64_t)index >= (uint64_t)p.x.m) return k;
    at[k] = (base + index) * p.x.width + column;
    if (++column < p.x.width) continue;
    column = 0;
    if (++row < p.n_along) continue;
    row = 0;
    base += p.x.m;
  }
  return n;
}

/* For a line of m elements, which begins with element `base`. Returns whether all indices are
 * valid. */
#define FIND_IN_LINE(T)                                                                    \
  for (int64_t k = 0; k < n; k++) {                                                        \
    int64_t index = ((const T *)indices)[first + k]; /* read once: others may change it */ \
    index += index < 0 ? m : 0;                                                            \
    is_bad |= (index < 0) | (index >= m);                                                  \
    at[k] = (int64_t)((uint64_t)base + (uint64_t)index);                                   \
  }
VECTORS static int find_in_line(const void *indices, uint32_t type, int64_t first, int64_t n,
                                int64_t m, int64_t base, int64_t *at) {
  int is_bad = 0;
  if (type == CUPLUG_INT32)
    FIND_IN_LINE(int32_t)
  else
    FIND_IN_LINE(int64_t)
  return !is_bad;
}

/* For n adjacent elements, the first of them element `base` of row 0 of `width`. Returns the same.
 */
VECTORS static int find_in_row(const int64_t *indices, int64_t n, int64_t m, int64_t width,
                               int64_t base, int64_t *at) {
  int is_bad = 0;
  for (int64_t k = 0; k < n; k++) {
    int64_t index = indices[k]; /* read once, since others may change it */
    index += index < 0 ? m : 0;
    is_bad |= (index < 0) | (index >= m);
    at[k] = (int64_t)((uint64_t)index * (uint64_t)width + (uint64_t)(base + k));
  }
  return !is_bad;
}

/* The function of find_run for rows that are long enough for vectors. */
static int64_t find_in_rows(const places *p, int64_t first, int64_t n, int64_t *at) {
  const int64_t *indices = (const int64_t *)p->indices + first;
  const int64_t width = p->x.width;
  for (int64_t k = 0, part; k < n; k += part) {
    const int64_t row = (first + k) / width, column = (first + k) % width;
    const int64_t base = row / p->n_along * p->x.m * width + column;
    part = width - column < n - k ? width - column : n - k;
    if (!find_in_row(indices + k, part, p->x.m, width, base, at + k))
      return k + find_run(*p, first + k, part, at + k);
  }
  return n;
}

/* The function of find_run for lines of contiguous elements. */
static int64_t find_in_lines(const places *p, int64_t first, int64_t n, int64_t *at) {
  for (int64_t k = 0, part; k < n; k += part) {
    const int64_t line = (first + k) / p->n_along, rest = (line + 1) * p->n_along - first - k;
    part = rest < n - k ? rest : n - k;
    if (!find_in_line(p->indices, p->type, first + k, part, p->x.m, line * p->x.m, at + k))
      return k + find_run(*p, first + k, part, at + k);
  }
  return n;
}

/* In each branch, the choices of the loop are constants for the compiler. */
static int64_t find_all(const places *p, int64_t first, int64_t n, int64_t *at) {
  places known = *p;
  if (p->has_rows) return find_run(*p, first, n, at);
  if (p->x.width == 1) return find_in_lines(p, first, n, at);
  if (p->type != CUPLUG_INT64) return find_run(*p, first, n, at);
  if (p->x.width >= WIDE) return find_in_rows(p, first, n, at);
  known.type = CUPLUG_INT64;
  known.has_rows = 0;
  return find_run(known, first, n, at);
}

int find_places(const job *j, int64_t first, int64_t n, int64_t *at) {
  const int64_t n_found = find_all(&j->places, first, n, at);
  return n_found < n ? fail_index(j, first + n_found) : CUPLUG_OK;
}

static int move_parts(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  int64_t at[RUN];
  const int64_t last = end * j->n_each < j->places.n ? end * j->n_each : j->places.n;
  for (int64_t first = begin * j->n_each; first < last; first += RUN) {
    const int64_t n = last - first < RUN ? last - first : RUN;
    const int status = find_places(j, first, n, at);
    if (status) return status;
    j->move(j, at, first, n);
  }
  return CUPLUG_OK;
}

/* All threads move elements that are written by a single value, or by equal ones. Otherwise one
 * thread moves the values for one part of x, or those for one bucket. */
int move_all(job *j, move *m) {
  j->move = m;
  const int is_alone = m == take || m == take_last || m == put_one;
  const int64_t of_part = j->places.n_along * j->places.x.width;
  j->n_each = is_alone ? RUN : of_part;
  if (j->places.n == 0) return CUPLUG_OK;
  if (can_move_rows(j)) return move_rows(j);
  if (!is_alone && wants_buckets(j)) return move_in_buckets(j);
  const int64_t n_parts = (j->places.n + j->n_each - 1) / j->n_each;
  return cuplug_parallel(j->call, n_parts, 1 + LEAST / j->n_each, move_parts, j);
}

static job job_of(const cuplug_call *call, const cuplug_tensor *x, void *data, void *values,
                  int64_t axis, int has_rows) {
  return (job){.call = call,
               .places = places_of(&call->tensors[1], x, axis, has_rows),
               .x = data,
               .values = values,
               .element_bytes = cuplug_element_bytes(x)};
}

/* Checks the indices, which must have the sizes of x, except along the axis. */
static int check(const cuplug_call *call, const cuplug_tensor *x) {
  return elements_check_beside(call, "indices", &call->tensors[1], x, call->scalars[0].i);
}

CUPLUG_ENTRY int take_along_axis_host(const cuplug_call *call) {
  const cuplug_tensor *x = &call->tensors[0];
  job j = job_of(call, x, x->data, call->outputs[0].data, call->scalars[0].i, 0);
  const int status = check(call, x);
  return status ? status : move_all(&j, take);
}

CUPLUG_ENTRY int take_along_axis_backward_host(const cuplug_call *call) {
  const cuplug_tensor *x = &call->tensors[2], *out = &call->outputs[0];
  job j = job_of(call, x, out->data, call->tensors[0].data, call->scalars[0].i, 0);
  int status = check(call, x);
  if (!status) status = fill(call, NULL);
  return status ? status : move_all(&j, add);
}

CUPLUG_ENTRY int put_along_axis_host(const cuplug_call *call) {
  const cuplug_tensor *x = &call->tensors[0];
  job j = job_of(call, x, x->data, call->tensors[2].data, call->scalars[0].i, 0);
  const int status = check(call, x);
  return status ? status : move_all(&j, put);
}

CUPLUG_ENTRY int put_host(const cuplug_call *call) {
  const cuplug_tensor *x = &call->tensors[0];
  job j = job_of(call, x, x->data, call->tensors[2].data, 0, 1);
  j.places.has_rows = j.places.x.width > 1; /* rows of one element are one line */
  return move_all(&j, put);
}

/* Moves values to or from `out`, a copy of the first array. */
static int change_copy(const cuplug_call *call, job *j, move *m) {
  const cuplug_tensor *x = &call->tensors[0];
  int status = check(call, x);
  if (!status) status = fill(call, x->data);
  return status ? status : move_all(j, m);
}

static int change(const cuplug_call *call, move *m) {
  job j = job_of(call, &call->tensors[0], call->outputs[0].data, call->tensors[2].data,
                 call->scalars[0].i, 0);
  return change_copy(call, &j, m);
}

CUPLUG_ENTRY int scatter_host(const cuplug_call *call) { return change(call, put); }
CUPLUG_ENTRY int scatter_add_host(const cuplug_call *call) { return change(call, add); }

CUPLUG_ENTRY int scatter_add_backward_host(const cuplug_call *call) {
  job j = job_of(call, &call->tensors[0], call->outputs[0].data, call->outputs[1].data,
                 call->scalars[0].i, 0);
  return change_copy(call, &j, take);
}

int find_gradients(job *j) {
  const cuplug_tensor *grad = &j->call->tensors[0];
  j->last = cuplug_workspace(j->call, (uint64_t)(cuplug_n_elements(grad) + 1) * sizeof *j->last);
  if (!j->last) return CUPLUG_ERROR_MEMORY;
  job clearing = *j; /* only the numbers of the values matter */
  clearing.x = j->call->outputs[0].data, clearing.values = NULL;
  int status = fill(j->call, grad->data);
  if (!status) status = move_all(&clearing, clear);
  j->x = grad->data;
  return status ? status : move_all(j, take_last);
}

CUPLUG_ENTRY int scatter_backward_host(const cuplug_call *call) {
  const cuplug_tensor *grad = &call->tensors[0];
  job j = job_of(call, grad, NULL, call->outputs[1].data, call->scalars[0].i, 0);
  const int status = check(call, grad);
  return status ? status : find_gradients(&j);
}

CUPLUG_ENTRY int put_backward_host(const cuplug_call *call) {
  job j = job_of(call, &call->tensors[0], NULL, call->outputs[1].data, 0, 1);
  j.places.has_rows = j.places.x.width > 1; /* rows of one element are one line */
  return find_gradients(&j);
}

#define AXIS "axis: int = -1"
#define PLACES "I: int32 | int64, -len(s) <= axis < len(s), len(n) == len(s)"
#define CHANGED "x: T[*s], indices: I[*n], values: T[*n], " AXIS ") "
#define GRADIENTS "grad: T[*s], indices: I[*n], " AXIS ") -> (grad_x: T[*s], grad_values: T[*n]) "

CUPLUG_OPERATOR(
    take_along_axis_cuda, take_along_axis_host,
    "take_along_axis(source: T[*s], indices: I[*n], " AXIS ") -> T[*n] "
    "where T: any, " PLACES,
    "Elements at positions along an axis, with separate positions for each segment." CUPLUG_ALONG(
        axis) CUPLUG_NONBLOCKING CUPLUG_DETERMINISTIC CUPLUG_GRADIENT(take_along_axis_backward)
        CUPLUG_LINEAR(source));
CUPLUG_OPERATOR(
    take_along_axis_backward_cuda, take_along_axis_backward_host,
    "take_along_axis_backward(grad: T[*n], indices: I[*n], source: T[*s], " AXIS ") "
    "-> T[*s] where T: floating | complex, " PLACES,
    "The gradient of take_along_axis: zeros, with grad added at the indices." CUPLUG_ALONG(axis)
        CUPLUG_NONBLOCKING CUPLUG_GRADIENT(take_along_axis) CUPLUG_LINEAR(grad));
CUPLUG_OPERATOR(put_along_axis_cuda, put_along_axis_host,
                "put_along_axis(inout " CHANGED "where T: any, " PLACES,
                "Writes values to positions along an axis, in place." CUPLUG_ALONG(axis)
                    CUPLUG_NONBLOCKING CUPLUG_GRADIENT(scatter_backward) CUPLUG_LINEAR(x, values));
CUPLUG_OPERATOR(scatter_cuda, scatter_host, "scatter(" CHANGED "-> T[*s] where T: any, " PLACES,
                "A copy of x with values at positions along an axis." CUPLUG_ALONG(axis)
                    CUPLUG_NONBLOCKING CUPLUG_GRADIENT(scatter_backward) CUPLUG_LINEAR(x, values));
CUPLUG_OPERATOR(scatter_add_cuda, scatter_add_host,
                "scatter_add(" CHANGED "-> T[*s] where T: integer | floating | complex, " PLACES,
                "A copy of x with values added at positions along an axis." CUPLUG_ALONG(axis)
                    CUPLUG_NONBLOCKING CUPLUG_GRADIENT(scatter_add_backward)
                        CUPLUG_LINEAR(x, values));
CUPLUG_OPERATOR(scatter_backward_cuda, scatter_backward_host,
                "scatter_backward(" GRADIENTS "where T: floating | complex, " PLACES,
                "The gradients of scatter and of put_along_axis." CUPLUG_ALONG(axis)
                    CUPLUG_NONBLOCKING CUPLUG_DETERMINISTIC CUPLUG_GRADIENT(scatter)
                        CUPLUG_LINEAR(grad));
CUPLUG_OPERATOR(scatter_add_backward_cuda, scatter_add_backward_host,
                "scatter_add_backward(" GRADIENTS "where T: floating | complex, " PLACES,
                "The gradients of scatter_add." CUPLUG_ALONG(axis)
                    CUPLUG_NONBLOCKING CUPLUG_DETERMINISTIC CUPLUG_GRADIENT(scatter_add)
                        CUPLUG_LINEAR(grad));
CUPLUG_OPERATOR(put_cuda, put_host,
                "put(inout x: T[m, *row], indices: I[n], values: T[n, *row]) "
                "where T: any, I: int32 | int64",
                "Writes rows to positions along the first axis, in place." CUPLUG_NONBLOCKING
                    CUPLUG_GRADIENT(put_backward) CUPLUG_LINEAR(x, values));
CUPLUG_OPERATOR(put_backward_cuda, put_backward_host,
                "put_backward(grad: T[m, *row], indices: I[n]) "
                "-> (grad_x: T[m, *row], grad_values: T[n, *row]) "
                "where T: floating | complex, I: int32 | int64",
                "The gradients of put." CUPLUG_NONBLOCKING CUPLUG_DETERMINISTIC CUPLUG_GRADIENT(put)
                    CUPLUG_LINEAR(grad));
CUPLUG_PLUGIN(indexing, "1.0.0");
