/* SPDX-License-Identifier: Apache-2.0 */
/* gather(source, index, mode, axis): NumPy's take along an axis,
 * out[..., i, ...] = source[..., index[i], ...].
 *
 *   source  T[*s]          any dtype; moved as bytes
 *   index   I[*n]          any integer dtype, or a Python integer, whose axis is then dropped
 *   mode    "raise"        -m <= index < m, negative ones count from the end; else IndexError
 *           "wrap"         index modulo m
 *           "clip"         the nearest of 0 ... m - 1
 *   axis    int            -len(s) <= axis < len(s), the first without; m is its size
 *   out     T[*n, *row]    with axis 0; else *n stands where the axis stood
 *
 * From an empty axis (m = 0) nothing can be taken: IndexError, unless out is empty, too. Of
 * several bad indices the host names the first; a GPU names one of them, and 2^63 - 1 for what is
 * larger. Bytes moved: index once; the chosen rows of source once; out once. */
#include <cuplug/format.h>
#include <cuplug/plugin.h>

#include <stdatomic.h>
#include <string.h>

CUPLUG_ENTRY int gather_cuda(const cuplug_call *call);
CUPLUG_ENTRY int gather_one_cuda(const cuplug_call *call);

#define AHEAD 128           /* rows asked for before they are copied */
#define CACHED (1 << 20)    /* bytes of a source whose rows need not be asked for */
#define PARALLEL_FROM 32768 /* elements; below, waking threads costs more than they save */
#define CHUNK 4096          /* rows of a thread's piece of work */
#define BLOCK 512           /* indices that are resolved before their rows are copied */

enum { RAISE, WRAP, CLIP };

/* Of `n_outer` parts of source, each of m rows, the same n rows are taken. */
typedef struct job {
  const char *source;
  const void *index;
  char *out;
  int64_t n_outer, m, n, row_bytes, mode;
  uint32_t index_type;
} job;

/* Of the two dtypes with loops of their own. */
static inline int64_t index_at(const job *j, int64_t i) {
  return j->index_type == CUPLUG_INT64 ? ((const int64_t *)j->index)[i]
                                       : ((const int32_t *)j->index)[i];
}

/* Of any; what no int64 holds becomes one that means the same. */
static int64_t any_index_at(const job *j, int64_t i) {
  const void *x = j->index;
  switch (j->index_type) {
  case CUPLUG_INT8:
    return ((const int8_t *)x)[i];
  case CUPLUG_INT16:
    return ((const int16_t *)x)[i];
  case CUPLUG_UINT8:
    return ((const uint8_t *)x)[i];
  case CUPLUG_UINT16:
    return ((const uint16_t *)x)[i];
  case CUPLUG_UINT32:
    return ((const uint32_t *)x)[i];
  case CUPLUG_UINT64: {
    const uint64_t u = ((const uint64_t *)x)[i];
    return u <= INT64_MAX    ? (int64_t)u
           : j->mode == WRAP ? (int64_t)(u % (uint64_t)j->m)
                             : INT64_MAX;
  }
  default:
    return index_at(j, i);
  }
}

/* The row that an index means, or -1 for none. */
static inline int64_t resolve(const job *j, int64_t index) {
  const int64_t m = j->m;
  if (j->mode == RAISE) {
    index += index < 0 ? m : 0;
    return (uint64_t)index < (uint64_t)m ? index : -1;
  }
  if (j->mode == CLIP) return index < 0 ? 0 : index < m ? index : m - 1;
  index %= m;
  return index < 0 ? index + m : index;
}

static inline void ask_for(const void *source, int64_t row, int64_t bytes) {
  __builtin_prefetch((const char *)((uintptr_t)source + (uintptr_t)(row * bytes)), 0, 2);
}

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Copies rows [begin, end) of `bytes` each. Returns the position of the first bad index, or `end`.
 * `ahead`: the memory of the rows that come so much later is asked for, so that many loads are
 * under way at once; to ask for memory that is not there does nothing. */
ALWAYS_INLINE int64_t copy_rows(job j, int64_t begin, int64_t end, int64_t bytes, int64_t ahead) {
  for (int64_t i = begin; i < end; i++) {
    if (ahead) ask_for(j.source, resolve(&j, index_at(&j, i + ahead)), bytes);
    const int64_t row = resolve(&j, index_at(&j, i));
    if (row < 0) return i;
    memcpy(j.out + i * bytes, j.source + row * bytes, (size_t)bytes);
  }
  return end;
}

/* Of the rows asked for, the last are for whoever copies the range after this one. */
ALWAYS_INLINE int64_t copy_range(job j, int64_t begin, int64_t end, int64_t bytes) {
  int64_t last = j.m * bytes > CACHED ? j.n - AHEAD : begin;
  last = last < begin ? begin : last < end ? last : end;
  const int64_t stopped = copy_rows(j, begin, last, bytes, AHEAD);
  return stopped < last ? stopped : copy_rows(j, last, end, bytes, 0);
}

/* In each branch the compiler knows what index_at and resolve ask for: the loops do not ask. */
ALWAYS_INLINE int64_t gather_rows(job j, int64_t begin, int64_t end, int64_t bytes) {
  if (j.mode != RAISE) return copy_range(j, begin, end, bytes);
  if (j.index_type == CUPLUG_INT64) return copy_range(j, begin, end, bytes);
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

/* ---- Other axes and dtypes of index: they are resolved block by block -------------------------
 */

/* Copies rows of n_outer parts, from part `outer` on. */
ALWAYS_INLINE void copy_block(const job *j, const int64_t *rows, int64_t n_rows, int64_t first,
                              int64_t outer, int64_t n_outer, int64_t bytes) {
  const int is_large = j->m * bytes > CACHED;
  for (int64_t o = outer; o < outer + n_outer; o++) {
    const char *source = j->source + o * j->m * bytes;
    char *out = j->out + (o * j->n + first) * bytes;
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
  for (int64_t i = first; i < end; i++) {
    rows[i - first] = resolve(j, any_index_at(j, i));
    if (rows[i - first] < 0) return i;
  }
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

/* ---- All of it ------------------------------------------------------------------------------ */

/* Pieces of work: `n_indices` of the n for `n_outer` of the parts. */
typedef struct pieces {
  int64_t n_indices, n_outer, along, count;
} pieces;

static pieces cut(const job *j, int is_plain) {
  const int64_t largest = is_plain ? CHUNK : BLOCK;
  pieces p = {.n_indices = j->n < largest ? j->n : largest};
  p.n_outer = CHUNK / p.n_indices;
  if (is_plain || p.n_outer > j->n_outer) p.n_outer = j->n_outer;
  p.along = (j->n + p.n_indices - 1) / p.n_indices;
  p.count = p.along * ((j->n_outer + p.n_outer - 1) / p.n_outer);
  return p;
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Returns the position of the first bad index in piece k, or n. */
static int64_t gather_piece(const job *j, const pieces *p, int is_plain, int64_t k) {
  const int64_t begin = k % p->along * p->n_indices, end = smaller(begin + p->n_indices, j->n);
  const int64_t outer = k / p->along * p->n_outer,
                n_outer = smaller(p->n_outer, j->n_outer - outer);
  const int64_t stopped =
      is_plain ? gather_range(j, begin, end) : gather_block(j, begin, end, outer, n_outer);
  return stopped < end ? stopped : j->n;
}

/* What the threads of a call share. */
typedef struct work {
  const job *job;
  pieces pieces;
  int is_plain;
  _Atomic int64_t first_bad; /* position of the first bad index that was met so far, or n */
} work;

/* Whether later indices are bad, too, does not matter once there is one. */
static int gather_body(void *context, int64_t begin, int64_t end) {
  work *w = context;
  for (int64_t k = begin; k < end; k++) {
    int64_t first = atomic_load_explicit(&w->first_bad, memory_order_relaxed);
    if (k % w->pieces.along * w->pieces.n_indices >= first) continue;
    const int64_t bad = gather_piece(w->job, &w->pieces, w->is_plain, k);
    while (bad < first &&
           !atomic_compare_exchange_weak_explicit(&w->first_bad, &first, bad, memory_order_relaxed,
                                                  memory_order_relaxed))
      ;
  }
  return CUPLUG_OK;
}

/* Gathers all, in parallel where it pays. `bad` becomes the position of the first bad index, or n.
 */
static int gather_all(const cuplug_call *call, const job *j, int64_t *bad) {
  const int has_loop = j->index_type == CUPLUG_INT64 || j->index_type == CUPLUG_INT32;
  const int is_plain = j->n_outer == 1 && has_loop, is_small = j->n * j->n_outer < PARALLEL_FROM;
  if (is_plain && is_small) {
    *bad = gather_range(j, 0, j->n);
    return CUPLUG_OK;
  }
  work w = {j, cut(j, is_plain), is_plain, j->n};
  const int status = is_small ? gather_body(&w, 0, w.pieces.count)
                              : cuplug_parallel(call, w.pieces.count, 1, gather_body, &w);
  *bad = w.first_bad;
  return status;
}

static int64_t product(const int64_t *sizes, int64_t n) {
  int64_t result = 1;
  for (int64_t k = 0; k < n; k++) result *= sizes[k];
  return result;
}

static int gather(const cuplug_call *call, job j, int64_t axis) {
  const cuplug_tensor *source = &call->tensors[0];
  const int64_t at = axis < 0 ? axis + source->ndim : axis;
  j.source = source->data;
  j.out = call->outputs[0].data;
  j.n_outer = product(source->shape, at);
  j.m = source->shape[at];
  j.row_bytes = product(source->shape + at + 1, source->ndim - at - 1);
  j.row_bytes *= cuplug_element_bytes(source);
  if (j.n == 0 || j.n_outer == 0) return CUPLUG_OK;
  if (j.m == 0)
    return cuplug_failf(call, CUPLUG_ERROR_INDEX,
                        "source: seen an empty axis %lld, wanted at least one row to take from",
                        (long long)at);
  int64_t bad;
  const int status = gather_all(call, &j, &bad);
  if (status || bad == j.n) return status;
  const long long index = any_index_at(&j, bad);
  if (j.index == &call->scalars[0].i)
    return cuplug_failf(call, CUPLUG_ERROR_INDEX,
                        "index: index %lld is out of bounds for size %lld", index, (long long)j.m);
  return cuplug_failf(call, CUPLUG_ERROR_INDEX,
                      "index: index %lld at position %lld is out of bounds for size %lld", index,
                      (long long)bad, (long long)j.m);
}

CUPLUG_ENTRY int gather_host(const cuplug_call *call) {
  const cuplug_tensor *index = &call->tensors[1];
  const job j = {.index = index->data,
                 .index_type = cuplug_type(index),
                 .n = cuplug_n_elements(index),
                 .mode = call->scalars[0].i};
  return gather(call, j, call->n_scalars > 1 ? call->scalars[1].i : 0);
}

CUPLUG_ENTRY int gather_one_host(const cuplug_call *call) {
  const job j = {
      .index = &call->scalars[0].i, .index_type = CUPLUG_INT64, .n = 1, .mode = call->scalars[1].i};
  return gather(call, j, call->scalars[2].i);
}

#define MODES "mode: \"raise\" | \"wrap\" | \"clip\" = \"raise\""
#define AXIS_RANGE "-len(s) <= axis < len(s)"

CUPLUG_OPERATOR(gather_cuda, gather_host,
                "gather(source: T[m, *row], index: I[*n], " MODES ") -> T[*n, *row] "
                "where T: any, I: integer",
                "Rows of source at the given indices: NumPy's take along axis 0." CUPLUG_NEVER_WAITS
                    CUPLUG_INDEPENDENT(n, row));
CUPLUG_OPERATOR(gather_cuda, gather_host,
                "gather(source: T[*s], index: I[*n], " MODES ", axis: int = 0) -> "
                "T[*s[:axis % len(s)], *n, *s[axis % len(s) + 1:]] "
                "where T: any, I: integer, " AXIS_RANGE,
                "The same along any axis." CUPLUG_NEVER_WAITS CUPLUG_INDEPENDENT(n));
CUPLUG_OPERATOR(gather_one_cuda, gather_one_host,
                "gather(source: T[*s], index: int, " MODES ", axis: int = 0) -> "
                "T[*s[:axis % len(s)], *s[axis % len(s) + 1:]] where T: any, " AXIS_RANGE,
                "At one index; the axis is dropped." CUPLUG_NEVER_WAITS);
CUPLUG_PLUGIN(gather, "1.0.0");
