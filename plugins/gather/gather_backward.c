/* SPDX-License-Identifier: Apache-2.0 */
/* gather_backward(grad, index, source, mode, axis): the gradient of gather with respect to source,
 * NumPy's add.at along an axis: out = 0, then out[..., index[i], ...] += grad[..., i, ...].
 *
 *   grad    T[*g]       in the shape of gather(source, index, mode, axis)
 *   index, mode, axis   as for gather, including bad indices
 *   source  T[*s]       only its shape is used
 *   out     T[*s]
 *
 * T: floating and complex dtypes. float16 and bfloat16 are added as float32, and rounded once. The
 * host adds in the order of the indices, so that the bits are always the same. A GPU adds in any
 * order, and flushes sums below 2^-126 to 0, as its atomic additions do. Bytes moved: index and
 * grad once; out twice.
 *
 * On the host, chunks of indices are sorted into buckets, which are ranges of rows, in their order.
 * If rows are single numbers, these are sorted with them. One thread processes a bucket of all
 * chunks: no other adds to its rows, which stay in the cache. */
#include "gather/indices.h"

#include <cuplug/half.h>
#include <string.h>

CUPLUG_ENTRY int gather_backward_cuda(const cuplug_call *call);
CUPLUG_ENTRY int gather_one_backward_cuda(const cuplug_call *call);

#define PARALLEL_FROM 32768 /* numbers; below, waking threads costs more time than they save */
#define MOST_BUCKETS 256
#define CHUNK 16384      /* indices that one thread sorts */
#define COLUMNS 4096     /* numbers of a row that one thread adds */
#define NARROW 16        /* numbers; for such rows, adding takes no longer than sorting */
#define CACHED (1 << 18) /* numbers that stay in the cache while rows are added in any order */
#define FEW 512          /* indices whose rows are on the stack */

/* Index number `position` selects this row. */
typedef struct entry {
  int64_t row, position;
} entry;

/* This number is added to this row. */
typedef struct float_entry {
  int32_t row;
  float value;
} float_entry;
typedef struct double_entry {
  int64_t row;
  double value;
} double_entry;

/* Complex numbers are two adjacent numbers. */
typedef struct job {
  indices index;
  const void *grad;
  void *sums, *out; /* the same, except for 16-bit numbers, whose sums are float */
  int64_t n_outer, width, n_columns, n_buckets;
  uint32_t type;  /* bytes of a number */
  int shift;      /* row >> shift is its bucket */
  int64_t *rows;  /* number of rows that indices can select */
  void *sorted;   /* entries of each chunk, bucket by bucket; NULL if there is one bucket */
  int has_values; /* in its entries */
  int32_t (*ends)[MOST_BUCKETS]; /* of each chunk's buckets */
  int64_t n_parts;               /* parts of the n_outer to which one thread adds */
  _Atomic int64_t first_bad;
} job;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t parts_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

/* ---- Sorting --------------------------------------------------------------------------------- */

static void count(const job *j, int64_t c, int64_t n) {
  const int64_t *rows = j->rows + c * CHUNK;
  int32_t *begins = j->ends[c], at = 0;
  memset(begins, 0, sizeof *j->ends);
  for (int64_t i = 0; i < n; i++) begins[rows[i] >> j->shift]++;
  for (int64_t b = 0; b < j->n_buckets; b++) {
    const int32_t n_own = begins[b];
    begins[b] = at;
    at += n_own;
  }
}

/* Each entry advances the start of its bucket, which becomes its end. */
#define SORTING(name, type, entry, value)                                  \
  static void sort_##name(const job *j, int64_t c, int64_t n) {            \
    const int64_t *rows = j->rows + c * CHUNK;                             \
    const type *grad = (const type *)j->grad + c * CHUNK;                  \
    entry *sorted = (entry *)j->sorted + c * CHUNK;                        \
    for (int64_t i = 0; i < n; i++)                                        \
      sorted[j->ends[c][rows[i] >> j->shift]++] = (entry){rows[i], value}; \
    (void)grad;                                                            \
  }

SORTING(positions, char, entry, c *CHUNK + i)
SORTING(float16, uint16_t, float_entry, cuplug_float16_load(grad[i]))
SORTING(bfloat16, uint16_t, float_entry, cuplug_bfloat16_load(grad[i]))
SORTING(float32, float, float_entry, grad[i])
SORTING(float64, double, double_entry, grad[i])

static void sort(const job *j, int64_t c, int64_t n) {
  count(j, c, n);
  if (!j->has_values)
    sort_positions(j, c, n);
  else if (j->type == CUPLUG_FLOAT16)
    sort_float16(j, c, n);
  else if (j->type == CUPLUG_BFLOAT16)
    sort_bfloat16(j, c, n);
  else if (j->type == CUPLUG_FLOAT32)
    sort_float32(j, c, n);
  else
    sort_float64(j, c, n);
}

static int resolve_chunks(void *context, int64_t begin, int64_t end) {
  job *j = context;
  for (int64_t c = begin; c < end; c++) {
    const int64_t first = c * CHUNK, last = smaller(first + CHUNK, j->index.n);
    const int64_t stopped = resolve_range(&j->index, first, last, j->rows + first);
    if (stopped < last)
      note_first(&j->first_bad, stopped);
    else if (j->sorted)
      sort(j, c, last - first);
  }
  return CUPLUG_OK;
}

/* ---- Adding ---------------------------------------------------------------------------------- */

/* The work of one thread: the rows of a bucket in some of the parts, and some of their columns. */
typedef struct piece {
  int64_t bucket, first_row, last_row;
  int64_t first, last; /* positions in `sorted`, in one chunk, or indices */
  int64_t part, last_part, column, n_columns;
  const int64_t *rows; /* rows of the indices from `first` on, if they are not sorted */
} piece;

/* Returns the blocks of columns: one without columns, since the indices are still checked. */
static int64_t blocks_of(const job *j) { return j->width ? parts_of(j->width, j->n_columns) : 1; }

static piece piece_at(const job *j, int64_t k) {
  const int64_t bucket = k % j->n_buckets, n_blocks = blocks_of(j);
  const int64_t block = k / j->n_buckets % n_blocks, parts = k / j->n_buckets / n_blocks;
  piece p = {.bucket = bucket, .first_row = bucket << j->shift, .part = parts * j->n_parts};
  p.last_row = smaller((bucket + 1) << j->shift, j->index.m);
  p.last = j->index.n;
  p.last_part = smaller(p.part + j->n_parts, j->n_outer);
  p.column = block * j->n_columns;
  p.n_columns = smaller(j->n_columns, j->width - p.column);
  p.rows = j->rows;
  return p;
}

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* The numbers of a piece in one part: lines at a distance of `step`, from number `first` on. */
typedef struct lines {
  int64_t first, n, length, step;
} lines;

static lines lines_of(const job *j, const piece *p, int64_t part) {
  const int64_t n_rows = p->last_row - p->first_row;
  const int64_t first = (part * j->index.m + p->first_row) * j->width + p->column;
  if (p->n_columns == j->width) return (lines){first, 1, n_rows * j->width, 0};
  return (lines){first, n_rows, p->n_columns, j->width};
}

static void zero_lines(const job *j, const piece *p, int64_t part) {
  const lines x = lines_of(j, p, part);
  const int64_t bytes = j->type == CUPLUG_FLOAT64 ? sizeof(double) : sizeof(float);
  for (int64_t r = 0; r < x.n; r++)
    memset((char *)j->sums + (x.first + r * x.step) * bytes, 0, (size_t)(x.length * bytes));
}

#define ADDING(name, stored, computed, load)                                                  \
  ALWAYS_INLINE void add_to_##name(const job *j, const piece *p, int64_t part, int64_t width, \
                                   int64_t n_columns) {                                       \
    const stored *grad = (const stored *)j->grad + part * j->index.n * width + p->column;     \
    computed *sums = (computed *)j->sums + part * j->index.m * width + p->column;             \
    const entry *sorted = j->sorted;                                                          \
    for (int64_t k = p->first; k < p->last; k++) {                                            \
      const entry e = sorted ? sorted[k] : (entry){p->rows[k - p->first], k};                 \
      const stored *restrict from = grad + e.position * width;                                \
      computed *restrict to = sums + e.row * width;                                           \
      for (int64_t c = 0; c < n_columns; c++) to[c] += load(from[c]);                         \
    }                                                                                         \
  }                                                                                           \
  static void add_##name(const job *j, const piece *p, int64_t part) {                        \
    if (j->width == 1)                                                                        \
      add_to_##name(j, p, part, 1, 1);                                                        \
    else                                                                                      \
      add_to_##name(j, p, part, j->width, p->n_columns);                                      \
  }

ADDING(float16, uint16_t, float, cuplug_float16_load)
ADDING(bfloat16, uint16_t, float, cuplug_bfloat16_load)
ADDING(float32, float, float, )
ADDING(float64, double, double, )

#define ADDING_VALUES(name, computed)                                                    \
  static void add_##name##_values(const job *j, const piece *p) {                        \
    const name##_entry *sorted = j->sorted;                                              \
    computed *sums = j->sums;                                                            \
    for (int64_t k = p->first; k < p->last; k++) sums[sorted[k].row] += sorted[k].value; \
  }

ADDING_VALUES(float, float)
ADDING_VALUES(double, double)

static void add_lines(const job *j, const piece *p, int64_t part) {
  if (j->has_values && j->type == CUPLUG_FLOAT64) return add_double_values(j, p);
  if (j->has_values) return add_float_values(j, p);
  if (j->type == CUPLUG_FLOAT16) add_float16(j, p, part);
  if (j->type == CUPLUG_BFLOAT16) add_bfloat16(j, p, part);
  if (j->type == CUPLUG_FLOAT32) add_float32(j, p, part);
  if (j->type == CUPLUG_FLOAT64) add_float64(j, p, part);
}

static void round_lines(const job *j, const piece *p, int64_t part) {
  const lines x = lines_of(j, p, part);
  for (int64_t r = 0; r < x.n && j->sums != j->out; r++) {
    const float *from = (const float *)j->sums + x.first + r * x.step;
    uint16_t *to = (uint16_t *)j->out + x.first + r * x.step;
    if (j->type == CUPLUG_FLOAT16)
      for (int64_t c = 0; c < x.length; c++) to[c] = cuplug_float16_store(from[c]);
    else
      for (int64_t c = 0; c < x.length; c++) to[c] = cuplug_bfloat16_store(from[c]);
  }
}

/* Adds the entries of a bucket, chunk by chunk, or all indices. */
static void add_piece(const job *j, piece *p, int64_t part) {
  if (!j->sorted) return add_lines(j, p, part);
  for (int64_t c = 0; c < parts_of(j->index.n, CHUNK); c++) {
    p->first = c * CHUNK + (p->bucket ? j->ends[c][p->bucket - 1] : 0);
    p->last = c * CHUNK + j->ends[c][p->bucket];
    add_lines(j, p, part);
  }
}

static int sum_pieces(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  for (int64_t k = begin; k < end; k++) {
    piece p = piece_at(j, k);
    for (int64_t part = p.part; part < p.last_part; part++) {
      zero_lines(j, &p, part);
      add_piece(j, &p, part);
      round_lines(j, &p, part);
    }
  }
  return CUPLUG_OK;
}

/* Runs a job that is one piece. Returns the position of the first bad index, or n. */
static int64_t sum_at_once(const job *j) {
  int64_t rows[FEW];
  piece p = piece_at(j, 0);
  p.rows = rows;
  for (int64_t part = 0; part < j->n_outer; part++) zero_lines(j, &p, part);
  for (p.first = 0; p.first < j->index.n; p.first = p.last) {
    p.last = smaller(p.first + FEW, j->index.n);
    const int64_t stopped = resolve_range(&j->index, p.first, p.last, rows);
    if (stopped < p.last) return stopped;
    for (int64_t part = 0; part < j->n_outer; part++) add_lines(j, &p, part);
  }
  for (int64_t part = 0; part < j->n_outer; part++) round_lines(j, &p, part);
  return j->index.n;
}

/* ---- The complete operator ------------------------------------------------------------------ */

static int64_t n_pieces(const job *j) {
  return parts_of(j->n_outer, j->n_parts) * blocks_of(j) * j->n_buckets;
}

/* Sets the buckets, columns and parts for one thread: enough pieces to keep all threads busy. */
static void cut(job *j) {
  const int64_t of_a_part = (j->index.n + j->index.m) * j->width;
  j->n_buckets = 1;
  j->n_columns = j->width;
  j->n_parts = j->n_outer ? j->n_outer : 1;
  j->shift = 62;
  if (of_a_part * j->n_outer < PARALLEL_FROM) return;
  j->n_columns = smaller(j->width, COLUMNS);
  j->n_parts = 1 + PARALLEL_FROM / of_a_part;
  const int64_t most = MOST_BUCKETS / n_pieces(j);
  const int is_cached = j->width < NARROW && j->index.m * j->width < CACHED;
  if (most < 2 || is_cached) return;
  for (j->shift = 0; (j->index.m - 1) >> j->shift >= most;) j->shift++;
  j->n_buckets = ((j->index.m - 1) >> j->shift) + 1;
}

static int take_sums(const cuplug_call *call, job *j) {
  const uint64_t n = (uint64_t)(j->n_outer * j->index.m * j->width);
  if (j->type != CUPLUG_FLOAT16 && j->type != CUPLUG_BFLOAT16) return CUPLUG_OK;
  j->sums = cuplug_workspace(call, n * sizeof(float));
  return j->sums ? CUPLUG_OK : CUPLUG_ERROR_MEMORY;
}

static int take_rows(const cuplug_call *call, job *j) {
  const uint64_t n = (uint64_t)j->index.n, n_chunks = (uint64_t)parts_of(j->index.n, CHUNK);
  const int is_wide = j->type == CUPLUG_FLOAT64;
  j->rows = cuplug_workspace(call, n * sizeof *j->rows);
  if (!j->rows) return CUPLUG_ERROR_MEMORY;
  if (j->n_buckets == 1) return CUPLUG_OK;
  j->has_values = j->width * j->n_outer == 1 && (is_wide || j->index.m <= INT32_MAX);
  j->sorted =
      cuplug_workspace(call, n * (j->has_values && !is_wide ? sizeof(float_entry) : sizeof(entry)));
  if (!j->sorted) return CUPLUG_ERROR_MEMORY;
  j->ends = cuplug_workspace(call, n_chunks * sizeof *j->ends);
  return j->ends ? CUPLUG_OK : CUPLUG_ERROR_MEMORY;
}

static int find_rows(const cuplug_call *call, job *j) {
  const int status = take_rows(call, j);
  if (status) return status;
  return cuplug_parallel(call, parts_of(j->index.n, CHUNK), 1, resolve_chunks, j);
}

static int add_all(const cuplug_call *call, job *j) {
  cut(j);
  int status = take_sums(call, j);
  const int is_one = n_pieces(j) == 1;
  if (is_one && !status) j->first_bad = sum_at_once(j);
  if (!is_one && !status) status = find_rows(call, j);
  if (status) return status;
  if (j->first_bad < j->index.n) return fail_index(call, &j->index, j->first_bad);
  return is_one ? CUPLUG_OK : cuplug_parallel(call, n_pieces(j), 1, sum_pieces, j);
}

static int gather_backward(const cuplug_call *call, const cuplug_tensor *index, int64_t axis) {
  const cuplug_tensor *grad = &call->tensors[0], *source = &call->tensors[index ? 2 : 1];
  const gather_sizes sizes = gather_sizes_of(source, axis);
  const int status = gather_check_grad(call, grad, index, source, sizes.axis);
  if (status) return status;
  const uint32_t type = cuplug_type(source);
  const int is_complex = type == CUPLUG_COMPLEX64 || type == CUPLUG_COMPLEX128;
  job j = {.index = indices_of(call, index), .grad = grad->data, .n_outer = sizes.n_outer};
  j.index.m = sizes.m;
  j.first_bad = j.index.n;
  j.width = sizes.width * (1 + is_complex);
  j.type = type == CUPLUG_COMPLEX64 ? CUPLUG_FLOAT32 : is_complex ? CUPLUG_FLOAT64 : type;
  j.sums = j.out = call->outputs[0].data;
  if (j.n_outer == 0 || (sizes.m == 0 && j.index.n == 0)) return CUPLUG_OK;
  if (sizes.m == 0) return gather_fail_empty(call, sizes.axis);
  return add_all(call, &j);
}

CUPLUG_ENTRY int gather_backward_host(const cuplug_call *call) {
  return gather_backward(call, &call->tensors[1], call->scalars[1].i);
}

CUPLUG_ENTRY int gather_one_backward_host(const cuplug_call *call) {
  return gather_backward(call, NULL, call->scalars[2].i);
}

#define AXIS_RANGE "-max(len(s), 1) <= axis < max(len(s), 1)"
#define REST \
  "source: T[*s], mode: \"raise\" | \"wrap\" | \"clip\" = \"raise\", axis: int = 0) -> T[*s] "

CUPLUG_OPERATOR(gather_backward_cuda, gather_backward_host,
                "gather_backward(grad: T[*g], index: I[*n], " REST
                "where T: floating | complex, I: integer, " AXIS_RANGE,
                "The gradient of gather: zeros, with the rows of grad added at the given "
                "indices." CUPLUG_NONBLOCKING CUPLUG_GRADIENT(gather) CUPLUG_LINEAR(grad));
CUPLUG_OPERATOR(gather_one_backward_cuda, gather_one_backward_host,
                "gather_backward(grad: T[*g], index: int, " REST
                "where T: floating | complex, " AXIS_RANGE,
                "The gradient of gather at one index: grad lacks the axis." CUPLUG_NONBLOCKING
                    CUPLUG_GRADIENT(gather) CUPLUG_LINEAR(grad));
