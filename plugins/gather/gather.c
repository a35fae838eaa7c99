/* SPDX-License-Identifier: Apache-2.0 */
/* gather(source, index, mode, axis): NumPy's take along an axis,
 * out[..., i, ...] = source[..., index[i], ...].
 *
 *   source  T[*s]          any dtype; moved as bytes
 *   index   I[*n]          any integer dtype, or a Python integer, whose axis is then dropped
 *   mode    "raise"        -m <= index < m, negative ones count from the end; else IndexError
 *           "wrap"         index modulo m
 *           "clip"         the closest of 0 ... m - 1
 *   axis    int            -len(s) <= axis < len(s), 0 if absent; m is its size. A source without
 *                          dimensions has the shape (1,)
 *   out     T[*n, *row]    with axis 0; else *n replaces the axis
 *
 * An empty axis (m = 0) raises IndexError, unless out is also empty. Of several bad indices, the
 * host reports the first, and a GPU one of them, and 2^63 - 1 for larger values. Bytes moved: index
 * once; the selected rows of source once; out once. */
#include "gather/indices.h"

#include <string.h>

CUPLUG_ENTRY int gather_cuda(const cuplug_call *call);
CUPLUG_ENTRY int gather_one_cuda(const cuplug_call *call);

#define AHEAD 128               /* rows that are prefetched before they are copied */
#define CACHED (1 << 20)        /* bytes of a source whose rows need no prefetch */
#define PARALLEL_FROM (3 << 16) /* bytes; below, waking threads costs more time than they save */
#define CHUNK (3 << 14)         /* bytes per piece of work of a thread, including indices */
#define BLOCK 512               /* indices that are resolved before their rows are copied */

/* From each of `n_outer` parts of source, with m rows, the same n rows are copied. */
typedef struct job {
  const char *source;
  char *out;
  indices index;
  int64_t n_outer, row_bytes;
} job;

static inline void ask_for(const void *source, int64_t row, int64_t bytes) {
  __builtin_prefetch((const char *)((uintptr_t)source + (uintptr_t)(row * bytes)), 0, 2);
}

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Copies rows [begin, end) of `bytes` each. Returns the position of the first bad index, or `end`.
 * `ahead`: the distance of rows that are prefetched, so that many loads are in flight at once;
 * prefetching an invalid address does nothing. */
ALWAYS_INLINE int64_t copy_rows(job j, int64_t begin, int64_t end, int64_t bytes, int64_t ahead) {
  for (int64_t i = begin; i < end; i++) {
    if (ahead) ask_for(j.source, resolve(&j.index, index_at(&j.index, i + ahead)), bytes);
    const int64_t row = resolve(&j.index, index_at(&j.index, i));
    if (row < 0) return i;
    memcpy(j.out + i * bytes, j.source + row * bytes, (size_t)bytes);
  }
  return end;
}

/* The last prefetched rows belong to the range after this one. */
ALWAYS_INLINE int64_t copy_range(job j, int64_t begin, int64_t end, int64_t bytes) {
  int64_t last = j.index.m * bytes > CACHED ? j.index.n - AHEAD : begin;
  last = last < begin ? begin : last < end ? last : end;
  const int64_t stopped = copy_rows(j, begin, last, bytes, AHEAD);
  return stopped < last ? stopped : copy_rows(j, last, end, bytes, 0);
}

/* In each branch, the choices of index_at and resolve are constants for the compiler. */
ALWAYS_INLINE int64_t gather_rows(job j, int64_t begin, int64_t end, int64_t bytes) {
  if (j.index.mode != GATHER_RAISE) return copy_range(j, begin, end, bytes);
  if (j.index.type == CUPLUG_INT64) return copy_range(j, begin, end, bytes);
  return copy_range(j, begin, end, bytes);
}

static int64_t gather_range(const job *j, int64_t begin, int64_t end) {
  switch (j->row_bytes) {
  case 1:
    return gather_rows(*j, begin, end, 1);
  case 2:
    return gather_rows(*j, begin, end, 2);
  case 4:
    return gather_rows(*j, begin, end, 4);
  case 8:
    return gather_rows(*j, begin, end, 8);
  case 16:
    return gather_rows(*j, begin, end, 16);
  default:
    return gather_rows(*j, begin, end, j->row_bytes);
  }
}

/* ---- Other axes and dtypes of index, which are resolved block by block ----------------------- */

/* Copies rows of n_outer parts, from part `outer` on. */
ALWAYS_INLINE void copy_block(const job *j, const int64_t *rows, int64_t n_rows, int64_t first,
                              int64_t outer, int64_t n_outer, int64_t bytes) {
  const int is_large = j->index.m * bytes > CACHED;
  for (int64_t o = outer; o < outer + n_outer; o++) {
    const char *source = j->source + o * j->index.m * bytes;
    char *out = j->out + (o * j->index.n + first) * bytes;
    for (int64_t k = 0; is_large && k < n_rows && k < AHEAD; k++) ask_for(source, rows[k], bytes);
    for (int64_t k = 0; k < n_rows; k++) {
      if (is_large && k + AHEAD < n_rows) ask_for(source, rows[k + AHEAD], bytes);
      memcpy(out + k * bytes, source + rows[k] * bytes, (size_t)bytes);
    }
  }
}

/* Returns the position of the first bad index of [first, end), or `end`. */
static int64_t gather_block(const job *j, int64_t first, int64_t end, int64_t outer,
                            int64_t n_outer) {
  int64_t rows[BLOCK];
  const int64_t stopped = resolve_range(&j->index, first, end, rows);
  if (stopped < end) return stopped;
  switch (j->row_bytes) {
  case 1:
    copy_block(j, rows, end - first, first, outer, n_outer, 1);
    break;
  case 2:
    copy_block(j, rows, end - first, first, outer, n_outer, 2);
    break;
  case 4:
    copy_block(j, rows, end - first, first, outer, n_outer, 4);
    break;
  case 8:
    copy_block(j, rows, end - first, first, outer, n_outer, 8);
    break;
  default:
    copy_block(j, rows, end - first, first, outer, n_outer, j->row_bytes);
  }
  return end;
}

/* ---- The complete operator ------------------------------------------------------------------ */

/* Pieces of work: `n_indices` of the n for `n_outer` of the parts. */
typedef struct pieces {
  int64_t n_indices, n_outer, along, count;
} pieces;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Returns the bytes moved for a row with its index, including resolving it. */
static int64_t cost_of_row(const job *j) { return j->row_bytes + 8; }

static pieces cut(const job *j, int is_plain) {
  const int64_t n_rows = 1 + (CHUNK - 1) / cost_of_row(j);
  pieces p = {.n_indices = smaller(j->index.n, is_plain ? n_rows : smaller(n_rows, BLOCK))};
  p.n_outer = is_plain ? j->n_outer : smaller(1 + (n_rows - 1) / p.n_indices, j->n_outer);
  p.along = (j->index.n + p.n_indices - 1) / p.n_indices;
  p.count = p.along * ((j->n_outer + p.n_outer - 1) / p.n_outer);
  return p;
}

/* Returns the position of the first bad index in piece k, or n. */
static int64_t gather_piece(const job *j, const pieces *p, int is_plain, int64_t k) {
  const int64_t begin = k % p->along * p->n_indices,
                end = smaller(begin + p->n_indices, j->index.n);
  const int64_t outer = k / p->along * p->n_outer,
                n_outer = smaller(p->n_outer, j->n_outer - outer);
  const int64_t stopped =
      is_plain ? gather_range(j, begin, end) : gather_block(j, begin, end, outer, n_outer);
  return stopped < end ? stopped : j->index.n;
}

/* The state shared by the threads of a call. */
typedef struct work {
  const job *job;
  pieces pieces;
  int is_plain;
  _Atomic int64_t first_bad; /* position of the first bad index found so far, or n */
} work;

/* After one bad index, later ones do not matter. */
static int gather_body(void *context, int64_t begin, int64_t end) {
  work *w = context;
  for (int64_t k = begin; k < end; k++) {
    const int64_t first = atomic_load_explicit(&w->first_bad, memory_order_relaxed);
    if (k % w->pieces.along * w->pieces.n_indices >= first) continue;
    note_first(&w->first_bad, gather_piece(w->job, &w->pieces, w->is_plain, k));
  }
  return CUPLUG_OK;
}

/* Gathers all rows, in parallel if that saves time. `bad` receives the position of the first bad
 * index, or n. */
static int gather_all(const cuplug_call *call, const job *j, int64_t *bad) {
  const int has_loop = j->index.type == CUPLUG_INT64 || j->index.type == CUPLUG_INT32;
  const int is_plain = j->n_outer == 1 && has_loop,
            is_small = j->index.n * j->n_outer < PARALLEL_FROM / cost_of_row(j);
  if (is_plain && is_small) {
    *bad = gather_range(j, 0, j->index.n);
    return CUPLUG_OK;
  }
  work w = {j, cut(j, is_plain), is_plain, j->index.n};
  const int status = is_small ? gather_body(&w, 0, w.pieces.count)
                              : cuplug_parallel(call, w.pieces.count, 1, gather_body, &w);
  *bad = w.first_bad;
  return status;
}

static int gather(const cuplug_call *call, indices index, int64_t axis) {
  const cuplug_tensor *source = &call->tensors[0];
  const gather_sizes sizes = gather_sizes_of(source, axis);
  job j = {source->data, call->outputs[0].data, index, sizes.n_outer,
           sizes.width * cuplug_element_bytes(source)};
  j.index.m = sizes.m;
  if (index.n == 0 || j.n_outer == 0) return CUPLUG_OK;
  if (sizes.m == 0) return gather_fail_empty(call, sizes.axis);
  int64_t bad;
  const int status = gather_all(call, &j, &bad);
  return status || bad == index.n ? status : fail_index(call, &j.index, bad);
}

CUPLUG_ENTRY int gather_host(const cuplug_call *call) {
  return gather(call, indices_of(call, &call->tensors[1]),
                call->n_scalars > 1 ? call->scalars[1].i : 0);
}

CUPLUG_ENTRY int gather_one_host(const cuplug_call *call) {
  return gather(call, indices_of(call, NULL), call->scalars[2].i);
}

#define MODES "mode: \"raise\" | \"wrap\" | \"clip\" = \"raise\""
#define PROPERTIES \
  CUPLUG_NONBLOCKING CUPLUG_DETERMINISTIC CUPLUG_GRADIENT(gather_backward) CUPLUG_LINEAR(source)
#define DOCS                                                                       \
  CUPLUG_DOC(source, "Array of any dtype.")                                        \
  CUPLUG_DOC(index, "Positions along the axis; negative ones count from the end.") \
  CUPLUG_DOC(mode, "For positions out of range: an error, modulo the size, or the closest one.")
#define AXIS_RANGE "-max(len(s), 1) <= axis < max(len(s), 1)"
#define AXIS "axis % max(len(s), 1)"

CUPLUG_OPERATOR(gather_cuda, gather_host,
                "gather(source: T[m, *row], index: I[*n], " MODES ") -> T[*n, *row] "
                "where T: any, I: integer",
                "Rows of source at the given indices: NumPy's take along axis 0." DOCS PROPERTIES
                    CUPLUG_INDEPENDENT(n, row));
CUPLUG_OPERATOR(gather_cuda, gather_host,
                "gather(source: T[*s], index: I[*n], " MODES ", axis: int = 0) -> "
                "T[*s[:" AXIS "], *n, *s[" AXIS " + 1:]] "
                "where T: any, I: integer, " AXIS_RANGE,
                "Elements of source at the given indices along an axis." DOCS CUPLUG_DOC(
                    axis, "Dimension of source.") PROPERTIES CUPLUG_INDEPENDENT(n));
CUPLUG_OPERATOR(gather_one_cuda, gather_one_host,
                "gather(source: T[*s], index: int, " MODES ", axis: int = 0) -> "
                "T[*s[:" AXIS "], *s[" AXIS " + 1:]] where T: any, " AXIS_RANGE,
                "The elements of source at one index along an axis, without that axis." PROPERTIES);
CUPLUG_PLUGIN(gather, "1.0.0");
