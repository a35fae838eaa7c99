/* SPDX-License-Identifier: Apache-2.0 */
/* select(x, mask): the elements where mask is true, in C order, as NumPy's x[mask].
 *   x T[*s], mask bool[*s]; out T[?]
 * select_backward(grad, mask): its gradient: these elements at their positions, 0 elsewhere.
 *   grad T[n], mask bool[*s], true n times; out T[*s]. Another n raises ValueError and, on a GPU,
 *   which does not wait for the number, IndexError in a later call.
 * nonzero(x): the positions of elements other than 0, in C order, as NumPy's nonzero. NaN is not 0.
 *   x T[*s]; out int64[len(s), ?]: a row of positions for each dimension
 *
 * T: any dtype, except in select one that has a zero; moved as bytes. Bytes moved: mask or x twice,
 * since the number of elements must be known before an output exists; on a GPU once, and six bytes
 * for 32 elements twice; selected elements once more each way. On the host, each thread counts in a
 * chunk, and then writes after the elements of the chunks before it. */
#include "indexing/flags.h"

#include <string.h>

CUPLUG_ENTRY int select_cuda(const cuplug_call *call);
CUPLUG_ENTRY int select_backward_cuda(const cuplug_call *call);
CUPLUG_ENTRY int nonzero_cuda(const cuplug_call *call);

#define CHUNK 16384 /* elements that one thread scans */

/* Flags of n elements. The chunks before number c have ends[c - 1] true ones. */
typedef struct job {
  const cuplug_call *call;
  flags_of flags;
  const char *from;
  char *to;
  int64_t n, element_bytes;
  int64_t *ends;
} job;

static int64_t n_chunks(const job *j) { return (j->n + CHUNK - 1) / CHUNK; }

static int count_chunks(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  uint8_t flags[CHUNK];
  for (int64_t c = begin; c < end; c++) {
    const int64_t first = c * CHUNK, n = j->n - first < CHUNK ? j->n - first : CHUNK;
    j->ends[c] = read_flags(&j->flags, first, n, flags);
  }
  return CUPLUG_OK;
}

/* Returns the number of true flags, or -1 if memory is exhausted. */
static int64_t count_all(const cuplug_call *call, job *j) {
  int64_t total = 0;
  j->ends = cuplug_workspace(call, (uint64_t)(n_chunks(j) + 1) * sizeof *j->ends);
  if (!j->ends || cuplug_parallel(call, n_chunks(j), 4, count_chunks, j)) return -1;
  for (int64_t c = 0; c < n_chunks(j); c++) j->ends[c] = total += j->ends[c];
  return total;
}

#define SPARSE 16 /* elements per true flag from which on eight flags are tested together */

static int are_sparse(int64_t n_true, int64_t n) { return n_true < n / SPARSE; }

/* The next true flag from number i on. One exists. */
static int64_t next_true(const uint8_t *flags, int64_t n, int64_t i) {
  uint64_t eight;
  for (; i + 8 <= n; i += 8) {
    memcpy(&eight, flags + i, sizeof eight);
    if (eight) return i + __builtin_ctzll(eight) / 8; /* little-endian: the first byte is lowest */
  }
  while (!flags[i]) i++;
  return i;
}

/* Runs the statement after it for number i of each true flag of n, `last - at` of them. If they are
 * dense, it runs for each element: the next one overwrites its output unless its flag is true. */
#define EACH_TRUE(...)                                 \
  if (are_sparse(last - at, n)) {                      \
    for (int64_t i = -1; at < last; at++) {            \
      i = next_true(flags, n, i + 1);                  \
      __VA_ARGS__;                                     \
    }                                                  \
  } else {                                             \
    for (int64_t i = 0; at < last; at += flags[i++]) { \
      __VA_ARGS__;                                     \
    }                                                  \
  }

#define COMPACT(T)                              \
  {                                             \
    const T *from = (const T *)j->from + first; \
    T *to = (T *)j->to;                         \
    EACH_TRUE(to[at] = from[i])                 \
  }

static void compact(const job *j, const uint8_t *flags, int64_t first, int64_t n, int64_t at,
                    int64_t last) {
  ELEMENTS_BY_WIDTH(j->element_bytes, COMPACT)
}

#define EXPAND(T)                                                         \
  {                                                                       \
    const T *from = (const T *)j->from, zero = {0};                       \
    T *to = (T *)j->to + first;                                           \
    for (int64_t i = 0; i < n; i++) to[i] = flags[i] ? from[at++] : zero; \
  }

static void expand(const job *j, const uint8_t *flags, int64_t first, int64_t n, int64_t at,
                   int64_t last) {
  (void)last;
  ELEMENTS_BY_WIDTH(j->element_bytes, EXPAND)
}

/* The positions in a chunk, one row for each dimension of x: initially the elements' numbers in the
 * last one, whose excess over a row's size carries to the row before. */
static void locate(const job *j, const uint8_t *flags, int64_t first, int64_t n, int64_t at,
                   int64_t last) {
  const cuplug_tensor *x = &j->call->tensors[0];
  const int64_t n_found = j->call->outputs[0].shape[1], begin = at;
  int64_t *row = (int64_t *)j->call->outputs[0].data + (x->ndim - 1) * n_found;
  EACH_TRUE(row[at] = first + i)
  for (int32_t d = x->ndim - 1; d > 0; d--, row -= n_found) {
    const int64_t size = x->shape[d];
    int64_t outer = -1; /* the numbers ascend, so many have the same quotient */
    for (at = begin; at < last; at++) {
      if (row[at] - outer * size >= size) outer = row[at] / size;
      row[at - n_found] = outer;
      row[at] -= outer * size;
    }
  }
}

/* For n flags from element `first` on. The output has numbers at to last - 1 of them. */
typedef void write_chunk(const job *j, const uint8_t *flags, int64_t first, int64_t n, int64_t at,
                         int64_t last);

/* Elements that another thread has changed since they were counted would not fit. */
static int write_chunks(const job *j, int64_t begin, int64_t end, write_chunk *write) {
  uint8_t flags[CHUNK];
  for (int64_t c = begin; c < end; c++) {
    const int64_t first = c * CHUNK, n = j->n - first < CHUNK ? j->n - first : CHUNK;
    const int64_t at = c ? j->ends[c - 1] : 0;
    if (read_flags(&j->flags, first, n, flags) != j->ends[c] - at)
      return cuplug_failf(j->call, CUPLUG_ERROR_VALUE,
                          "%s: got elements that change during the call, expected a copy of them",
                          j->call->n_tensors == 1 ? "x" : "mask");
    write(j, flags, first, n, at, j->ends[c]);
  }
  return CUPLUG_OK;
}

static int compact_chunks(void *context, int64_t begin, int64_t end) {
  return write_chunks(context, begin, end, compact);
}
static int expand_chunks(void *context, int64_t begin, int64_t end) {
  return write_chunks(context, begin, end, expand);
}
static int locate_chunks(void *context, int64_t begin, int64_t end) {
  return write_chunks(context, begin, end, locate);
}

static job job_of(const cuplug_call *call, const cuplug_tensor *flags) {
  return (job){.call = call,
               .flags = flags_of_tensor(flags),
               .from = call->tensors[0].data,
               .n = cuplug_n_elements(flags),
               .element_bytes = cuplug_element_bytes(&call->tensors[0])};
}

CUPLUG_ENTRY int select_host(const cuplug_call *call) {
  job j = job_of(call, &call->tensors[1]);
  const int64_t n_found = count_all(call, &j);
  if (n_found < 0) return CUPLUG_ERROR_MEMORY;
  const int status = cuplug_output(call, 2, &n_found);
  if (status) return status;
  j.to = call->outputs[0].data;
  return cuplug_parallel(call, n_chunks(&j), 4, compact_chunks, &j);
}

CUPLUG_ENTRY int select_backward_host(const cuplug_call *call) {
  job j = job_of(call, &call->tensors[1]);
  const int64_t n_found = count_all(call, &j), n = call->tensors[0].shape[0];
  if (n_found < 0) return CUPLUG_ERROR_MEMORY;
  if (n_found != n)
    return cuplug_failf(call, CUPLUG_ERROR_VALUE,
                        "grad: got %lld elements, expected %lld, as many as mask has true ones",
                        (long long)n, (long long)n_found);
  j.to = call->outputs[0].data;
  return cuplug_parallel(call, n_chunks(&j), 4, expand_chunks, &j);
}

CUPLUG_ENTRY int nonzero_host(const cuplug_call *call) {
  job j = job_of(call, &call->tensors[0]);
  const int64_t n_found = count_all(call, &j);
  if (n_found < 0) return CUPLUG_ERROR_MEMORY;
  const int64_t shape[2] = {call->tensors[0].ndim, n_found};
  const int status = cuplug_output(call, 1, shape);
  return status ? status : cuplug_parallel(call, n_chunks(&j), 4, locate_chunks, &j);
}

#define PROPERTIES CUPLUG_NONBLOCKING CUPLUG_DETERMINISTIC

CUPLUG_OPERATOR(select_cuda, select_host, "select(x: T[*s], mask: bool[*s]) -> T[?] where T: any",
                "The elements where mask is true, in C order: NumPy's x[mask]." PROPERTIES
                    CUPLUG_GRADIENT(select_backward) CUPLUG_LINEAR(x));
CUPLUG_OPERATOR(
    select_backward_cuda, select_backward_host,
    "select_backward(grad: T[n], mask: bool[*s]) -> T[*s] where T: " ELEMENTS_WITH_ZERO,
    "The gradient of select: the elements of grad where mask is true, else 0." PROPERTIES
        CUPLUG_GRADIENT(select) CUPLUG_LINEAR(grad));
CUPLUG_OPERATOR(nonzero_cuda, nonzero_host,
                "nonzero(x: T[*s]) -> int64[len(s), ?] where T: " ELEMENTS_WITH_ZERO ", len(s) > 0",
                "The positions of nonzero elements: a row for each dimension." PROPERTIES);
