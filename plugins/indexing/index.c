/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of an array by positions along its first axes, with one array of positions for each axis.
 *
 * index(x, indices): out[i] = x[indices[0][i], indices[1][i], ...], NumPy's x[rows, columns]
 *   x T[*s]; indices: a list of at most len(s) arrays I[*n]; out T[*n, *s[len(indices):]]
 * index_put(x, indices, values): x[indices[0][i], ...] = values[i], in place
 *   values T[*v]: the number of elements that index would return, or one for all
 * index_backward(grad, indices, x): the gradient of index: zeros, to which grad is added
 * index_put_backward(grad, indices, values): the gradients of index_put: grad, with 0 at written
 *   positions; and grad there, for one value of each position, or the sum for a single value
 *
 * I: int32 or int64; -size <= position < size, negative ones count from the end. Others raise
 * IndexError: on the host before anything is written, and on a GPU in a later call, where their
 * values are skipped. Of several values for one position, one remains, on the host the last. Bytes
 * moved: positions and values once, a line of memory for each row; row numbers once each way. */
#include "indexing/index.h"
#include "indexing/concat.h"
#include "indexing/scatter.h"
#include "vectors.h"

CUPLUG_ENTRY int index_cuda(const cuplug_call *call);
CUPLUG_ENTRY int index_put_cuda(const cuplug_call *call);
CUPLUG_ENTRY int index_backward_cuda(const cuplug_call *call);
CUPLUG_ENTRY int index_put_backward_cuda(const cuplug_call *call);

#define BLOCK 1024      /* numbers that stay in the first-level cache */
#define LEAST (1 << 14) /* numbers that are worth a thread */

typedef struct numbering {
  const cuplug_call *call;
  index_axes axes;
  int64_t *numbers;
} numbering;

/* Runs the statement after it for n positions, and returns whether all are within the size. Each is
 * read once, since another thread may write to it. */
#define EACH(T, ...)                                                                   \
  for (int64_t i = 0; i < n; i++) {                                                    \
    const int64_t position = ((const T *)indices)[first + i];                          \
    const uint64_t wrapped = (uint64_t)position + (uint64_t)(position < 0 ? size : 0); \
    bad |= wrapped >= (uint64_t)size;                                                  \
    __VA_ARGS__;                                                                       \
  }
#define EACH_OF_TYPE(...)      \
  int bad = 0;                 \
  if (type == CUPLUG_INT32)    \
    EACH(int32_t, __VA_ARGS__) \
  else                         \
    EACH(int64_t, __VA_ARGS__) \
  return !bad;

VECTORS static int are_within(const void *indices, uint32_t type, int64_t first, int64_t n,
                              int64_t size){EACH_OF_TYPE()}

/* The same, and adds the positions, times the step. */
VECTORS static int add_axis(const void *indices, uint32_t type, int64_t first, int64_t n,
                            int64_t size, int64_t step, uint64_t *numbers) {
  EACH_OF_TYPE(numbers[i] += wrapped * (uint64_t)step)
}

static int fail_position(const numbering *j, int32_t axis, int64_t first, int64_t n) {
  const index_axes *a = &j->axes;
  const places p = {.indices = a->indices[axis], .type = a->type};
  int64_t k = first, size = a->sizes[axis], seen = 0;
  for (; k < first + n; k++) {
    seen = places_index(&p, k);
    if (seen < -size || seen >= size) break;
  }
  if (k == first + n) /* another thread has changed it meanwhile */
    return cuplug_failf(j->call, CUPLUG_ERROR_INDEX,
                        "indices[%d]: got elements that change during the call, expected a copy",
                        (int)axis);
  return cuplug_failf(j->call, CUPLUG_ERROR_INDEX,
                      "indices[%d]: index %lld at position %lld is out of bounds for size %lld",
                      (int)axis, (long long)seen, (long long)k, (long long)size);
}

static int number(void *context, int64_t begin, int64_t end) {
  const numbering *j = context;
  const index_axes *a = &j->axes;
  for (int64_t first = begin; first < end; first += BLOCK) {
    const int64_t n = end - first < BLOCK ? end - first : BLOCK;
    uint64_t *numbers = (uint64_t *)j->numbers + first;
    memset(numbers, 0, (size_t)n * sizeof *numbers);
    for (int32_t k = 0; k < a->n_axes; k++)
      if (!add_axis(a->indices[k], a->type, first, n, a->sizes[k], a->steps[k], numbers))
        return fail_position(j, k, first, n);
  }
  return CUPLUG_OK;
}

/* Positions along one axis are row numbers themselves. */
static int check_positions(void *context, int64_t begin, int64_t end) {
  const numbering *j = context;
  const index_axes *a = &j->axes;
  if (are_within(a->indices[0], a->type, begin, end - begin, a->sizes[0])) return CUPLUG_OK;
  return fail_position(j, 0, begin, end - begin);
}

/* All positions are checked before a value is moved. */
static int find_numbers(numbering *j, places *p) {
  const index_axes *a = &j->axes;
  if (a->n == 0) return *p = index_places(a, a->indices[0], a->type), CUPLUG_OK;
  if (a->n_axes == 1) {
    *p = index_places(a, a->indices[0], a->type);
    return cuplug_parallel(j->call, a->n, LEAST, check_positions, j);
  }
  j->numbers = cuplug_workspace(j->call, (uint64_t)a->n * sizeof *j->numbers);
  *p = index_places(a, j->numbers, CUPLUG_INT64);
  return j->numbers ? cuplug_parallel(j->call, a->n, LEAST, number, j) : CUPLUG_ERROR_MEMORY;
}

/* Rows of `data`, which has the sizes of x, and the values of another array. */
static int move_values(const cuplug_call *call, const cuplug_tensor *x, void *data,
                       const cuplug_tensor *values, move *m) {
  numbering j = {.call = call};
  job moving = {
      .call = call, .x = data, .values = values->data, .element_bytes = cuplug_element_bytes(x)};
  int status = index_axes_of(call, x, values, m == put, &j.axes);
  if (status || j.axes.n == 0) return status;
  if ((status = find_numbers(&j, &moving.places))) return status;
  if (cuplug_n_elements(values) == moving.places.n) return move_all(&moving, m);
  if (moving.element_bytes <= PUT_ONE_BYTES) return move_all(&moving, put_one);
  moving.values = cuplug_workspace(call, (uint64_t)(moving.places.n * moving.element_bytes));
  if (!moving.values) return CUPLUG_ERROR_MEMORY;
  repeat_value(moving.values, values->data, moving.places.n, moving.element_bytes);
  return move_all(&moving, put);
}

CUPLUG_ENTRY int index_host(const cuplug_call *call) {
  const cuplug_tensor *x = &call->tensors[0];
  return move_values(call, x, x->data, &call->outputs[0], take);
}

CUPLUG_ENTRY int index_put_host(const cuplug_call *call) {
  const cuplug_tensor *x = &call->tensors[0];
  return move_values(call, x, x->data, &call->tensors[1], put);
}

CUPLUG_ENTRY int index_backward_host(const cuplug_call *call) {
  const int status = fill(call, NULL);
  if (status) return status;
  return move_values(call, &call->tensors[1], call->outputs[0].data, &call->tensors[0], add);
}

CUPLUG_ENTRY int index_put_backward_host(const cuplug_call *call) {
  const cuplug_tensor *grad = &call->tensors[0], *out = &call->outputs[1];
  numbering j = {.call = call};
  job moving = {.call = call, .element_bytes = cuplug_element_bytes(grad)};
  int status = index_axes_of(call, grad, &call->tensors[1], 1, &j.axes);
  if (!status) status = find_numbers(&j, &moving.places);
  if (status) return status;
  const int64_t n = moving.places.n, bytes = n * moving.element_bytes;
  const int is_one_for_all = cuplug_n_elements(out) != n;
  moving.values =
      is_one_for_all ? cuplug_workspace(call, (uint64_t)(bytes ? bytes : 1)) : out->data;
  if (is_one_for_all && !moving.values) return CUPLUG_ERROR_MEMORY;
  status = find_gradients(&moving);
  if (!status && is_one_for_all) sum_columns(moving.values, n, 1, out->data, cuplug_type(out));
  return status;
}

#define POSITIONS "I: int32 | int64, 0 < len(indices), len(indices) <= len(s)"

CUPLUG_OPERATOR(
    index_cuda, index_host,
    "index(x: T[*s], indices: I[*n][]) -> T[*n, *s[len(indices):]] "
    "where T: any, " POSITIONS,
    "Rows at positions along the first axes: NumPy's x[rows, columns]." CUPLUG_NONBLOCKING
        CUPLUG_DETERMINISTIC CUPLUG_GRADIENT(index_backward) CUPLUG_LINEAR(x));
CUPLUG_OPERATOR(index_put_cuda, index_put_host,
                "index_put(inout x: T[*s], indices: I[*n][], values: T[*v]) "
                "where T: any, " POSITIONS,
                "Writes rows to positions along the first axes, in place." CUPLUG_NONBLOCKING
                    CUPLUG_GRADIENT(index_put_backward) CUPLUG_LINEAR(x, values));
CUPLUG_OPERATOR(index_put_backward_cuda, index_put_backward_host,
                "index_put_backward(grad: T[*s], indices: I[*n][], values: T[*v]) "
                "-> (grad_x: T[*s], grad_values: T[*v]) where T: floating | complex, " POSITIONS,
                "The gradients of index_put." CUPLUG_NONBLOCKING CUPLUG_GRADIENT(index_put)
                    CUPLUG_LINEAR(grad));
CUPLUG_OPERATOR(index_backward_cuda, index_backward_host,
                "index_backward(grad: T[*g], indices: I[*n][], x: T[*s]) -> T[*s] "
                "where T: floating | complex, " POSITIONS,
                "The gradient of index: zeros, with grad added at the positions." CUPLUG_NONBLOCKING
                    CUPLUG_GRADIENT(index) CUPLUG_LINEAR(grad));
