/* SPDX-License-Identifier: Apache-2.0 */
#include "linalg/product.h"

#include "linalg/plans.h"

#include <cuplug/format.h>

#include <string.h>

#define MAX_ALIGNMENT 256 /* bytes of alignment that the library distinguishes */
#define MAX_BATCH INT32_MAX

/* ---- Arrays as the library's matrices -------------------------------------------------------- */

/* A factor or the output: matrices of `rows` times `columns`. `row` and `column` are the distances
 * of elements. */
typedef struct operand {
  const factor *from;
  int64_t rows, columns, row, column;
} operand;

static int64_t at_least(int64_t n, int64_t least) { return n < least ? least : n; }

static int64_t stride_of(const cuplug_tensor *x, int32_t d) {
  int64_t step = 1;
  if (x->strides) return x->strides[d];
  for (int32_t k = x->ndim - 1; k > d; k--) step *= x->shape[k];
  return step;
}

static operand operand_of(const factor *f) {
  const cuplug_tensor *x = f->x;
  const int32_t row = x->ndim - 2 + f->is_adjoint, column = x->ndim - 1 - f->is_adjoint;
  return (operand){f, x->shape[row], x->shape[column], stride_of(x, row), stride_of(x, column)};
}

static int is_complex(const cuplug_tensor *x) {
  return cuplug_type(x) == CUPLUG_COMPLEX64 || cuplug_type(x) == CUPLUG_COMPLEX128;
}

/* Sets the library's matrix, which is the transposed one. Returns 0 if neither its rows nor its
 * columns are contiguous. Conjugate numbers require contiguous columns. */
static int set_matrix(matrix *to, const operand *o) {
  const int64_t rows = o->rows, columns = o->columns;
  const int is_conjugate = o->from->is_adjoint && is_complex(o->from->x);
  const int has_rows = !is_conjugate && (columns == 1 || o->column == 1) &&
                       (rows == 1 || o->row >= at_least(columns, 1));
  const int has_columns =
      (rows == 1 || o->row == 1) && (columns == 1 || o->column >= at_least(rows, 1));
  to->operation = has_rows ? PLAIN : is_conjugate ? ADJOINT : TRANSPOSED;
  to->rows = (uint64_t)(has_rows ? columns : rows);
  to->columns = (uint64_t)(has_rows ? rows : columns);
  if (has_rows)
    to->leading = rows == 1 ? columns : o->row;
  else
    to->leading = columns == 1 ? rows : o->column;
  return has_rows || has_columns;
}

static int set_operand(const cuplug_call *call, matrix *to, const operand *o) {
  const int is_adjoint = o->from->is_adjoint;
  if (set_matrix(to, o)) return CUPLUG_OK;
  return cuplug_failf(call, CUPLUG_ERROR_VALUE,
                      "%s: got matrices with strides (%lld, %lld), expected contiguous rows or "
                      "columns; pass a copy",
                      o->from->name, (long long)(is_adjoint ? o->column : o->row),
                      (long long)(is_adjoint ? o->row : o->column));
}

/* ---- Loop dimensions ------------------------------------------------------------------------- */

enum { X, Y, OUT };

/* The loop dimensions of a product, innermost first: the n_kept ones of the output, then those that
 * are summed. */
typedef struct loops {
  int32_t n, n_kept;
  int64_t sizes[64], steps[3][64]; /* of x, y and out, in elements */
} loops;

/* The size of a loop dimension of an array, where d = 0 is the innermost; 1 if it lacks the
 * dimension. */
static int64_t loop_size(const cuplug_tensor *x, int32_t d) {
  return d < x->ndim - 2 ? x->shape[x->ndim - 3 - d] : 1;
}

static void move_loop(loops *to, int32_t k, const loops *from, int32_t d) {
  to->sizes[k] = from->sizes[d];
  for (int a = 0; a < 3; a++) to->steps[a][k] = from->steps[a][d];
}

static void drop_loop(loops *l, int32_t d) {
  l->n_kept -= d < l->n_kept;
  l->n--;
  for (; d < l->n; d++) move_loop(l, d, l, d + 1);
}

/* Adds loop dimension d of the arrays. It is merged with the one before if all arrays continue in
 * one step. */
static int add_loop(const cuplug_call *call, const operand o[3], int32_t d, loops *l) {
  int64_t size = 1;
  const int32_t k = l->n;
  for (int a = 0; a < 3; a++) {
    const int64_t own = loop_size(o[a].from->x, d);
    if (size != 1 && own != 1 && own != size)
      return cuplug_failf(call, CUPLUG_ERROR_VALUE,
                          "%s: got size %lld in a loop dimension, expected %lld or 1",
                          o[a].from->name, (long long)own, (long long)size);
    if (size == 1) size = own;
  }
  if (size == 1) return CUPLUG_OK;
  int is_merged = k > 0;
  for (int a = 0; a < 3; a++) {
    const cuplug_tensor *x = o[a].from->x;
    l->steps[a][k] = loop_size(x, d) == 1 ? 0 : stride_of(x, x->ndim - 3 - d);
    is_merged = is_merged && l->steps[a][k] == l->steps[a][k - 1] * l->sizes[k - 1];
  }
  if (is_merged)
    l->sizes[k - 1] *= size;
  else
    l->sizes[l->n++] = size;
  return CUPLUG_OK;
}

static int set_loops(const cuplug_call *call, const operand o[3], loops *l) {
  loops all = {0};
  int32_t n = 2;
  for (int a = 0; a < 3; a++) n = (int32_t)at_least(o[a].from->x->ndim, n);
  for (int32_t d = 0; d < n - 2; d++)
    if (add_loop(call, o, d, &all)) return CUPLUG_ERROR_VALUE;
  l->n = 0;
  for (int is_summed = 0; is_summed < 2; is_summed++) {
    for (int32_t d = 0; d < all.n; d++)
      if ((all.steps[OUT][d] == 0) == is_summed) move_loop(l, l->n++, &all, d);
    if (!is_summed) l->n_kept = l->n;
  }
  return CUPLUG_OK;
}

/* Merges n lines along a loop dimension with rows, if they continue in one step. */
static int join(int64_t *n, int64_t *line, int64_t size, int64_t step) {
  if (*n == 1) *line = step;
  if (step != *line * *n) return 0;
  *n *= size;
  return 1;
}

/* One matrix x with more rows, if one y multiplies all of them. */
static void join_rows(loops *l, operand o[3]) {
  operand x = o[X], out = o[OUT];
  matrix of_x, of_out;
  if (!l->n_kept || l->steps[Y][0]) return;
  if (!join(&x.rows, &x.row, l->sizes[0], l->steps[X][0])) return;
  if (!join(&out.rows, &out.row, l->sizes[0], l->steps[OUT][0])) return;
  if (!set_matrix(&of_x, &x) || !set_matrix(&of_out, &out) || of_out.operation) return;
  o[X] = x, o[OUT] = out;
  drop_loop(l, 0);
}

/* One product with longer sums, if products are summed. */
static void join_sums(loops *l, operand o[3]) {
  const int32_t d = l->n_kept;
  operand x = o[X], y = o[Y];
  matrix of_x, of_y;
  if (l->n == d) return;
  if (!join(&x.columns, &x.column, l->sizes[d], l->steps[X][d])) return;
  if (!join(&y.rows, &y.row, l->sizes[d], l->steps[Y][d])) return;
  if (!set_matrix(&of_x, &x) || !set_matrix(&of_y, &y)) return;
  o[X] = x, o[Y] = y;
  drop_loop(l, d);
}

/* The common alignment of all matrices of an array. */
static uint32_t alignment_of(const operand *o, const loops *l, int array) {
  const cuplug_tensor *x = o->from->x;
  uintptr_t bits = (uintptr_t)x->data | MAX_ALIGNMENT;
  for (int32_t d = 0; d < l->n; d++)
    bits |= (uintptr_t)l->steps[array][d] * (uintptr_t)cuplug_element_bytes(x);
  return (uint32_t)(bits & -bits);
}

/* ---- The complete product -------------------------------------------------------------------- */

typedef struct job {
  const cuplug_call *call;
  blas *blas;
  operand operands[3];
  loops loops;
  key key;
  int is_added;
} job;

/* Computes products from one index of the loop dimensions outside of the batch to the next. */
typedef struct place {
  int64_t at[64], offsets[3];
} place;

static void *here(const job *j, const place *p, int array) {
  const cuplug_tensor *x = j->operands[array].from->x;
  return (char *)x->data + p->offsets[array] * cuplug_element_bytes(x);
}

static int step_on(const loops *l, int32_t first, place *p) {
  for (int32_t d = first; d < l->n; d++) {
    for (int a = 0; a < 3; a++) p->offsets[a] += l->steps[a][d];
    if (++p->at[d] < l->sizes[d]) return 1;
    for (int a = 0; a < 3; a++) p->offsets[a] -= l->steps[a][d] * l->sizes[d];
    p->at[d] = 0;
  }
  return 0;
}

/* 1 if the output already contains a part of the sum. */
static int is_begun(const job *j, const place *p) {
  int begun = j->is_added;
  for (int32_t d = j->loops.n_kept; d < j->loops.n; d++) begun |= p->at[d] > 0;
  return begun;
}

static int multiply(const job *j) {
  static const double one[2] = {1, 0}, zero[2] = {0, 0};
  static const float single_one[2] = {1, 0}, single_zero[2] = {0, 0};
  const int is_double = j->key.type == CUPLUG_FLOAT64 || j->key.type == CUPLUG_COMPLEX128;
  const void *alpha = is_double ? (const void *)one : single_one;
  const void *nothing = is_double ? (const void *)zero : single_zero;
  const cublas *f = &j->blas->functions;
  place at = {0};
  plan *p;
  int code = find_plan(j->blas, &j->key, &p);
  const size_t bytes = code ? 0 : p->choice.workspace_bytes;
  void *workspace = bytes ? cuplug_workspace(j->call, bytes) : NULL;
  if (bytes && !workspace) return CUPLUG_ERROR_MEMORY;
  do {
    if (!code)
      code = f->multiply(j->blas->handle, p->operation, alpha, here(j, &at, Y), p->a,
                         here(j, &at, X), p->b, is_begun(j, &at) ? alpha : nothing,
                         here(j, &at, OUT), p->d, here(j, &at, OUT), p->d, p->choice.algorithm,
                         workspace, bytes, j->call->stream);
    if (code) return cuplug_failf(j->call, CUPLUG_ERROR_CUDA, "cuBLAS: %s", f->status_text(code));
  } while (step_on(&j->loops, j->loops.n_kept > 0, &at));
  return CUPLUG_OK;
}

static int set_key(job *j) {
  const loops *l = &j->loops;
  key *k = &j->key;
  matrix *const matrices[3] = {&k->b, &k->a, &k->d};
  k->type = cuplug_type(j->operands[OUT].from->x);
  k->n_batch = 1;
  for (int a = 0; a < 3; a++) {
    const operand *o = &j->operands[a];
    if (set_operand(j->call, matrices[a], o)) return CUPLUG_ERROR_VALUE;
    matrices[a]->alignment = alignment_of(o, l, a);
    if (l->n_kept) matrices[a]->offset = l->steps[a][0];
  }
  if (k->d.operation)
    return cuplug_fail(j->call, CUPLUG_ERROR_VALUE,
                       "out: got contiguous columns, expected contiguous rows");
  if (!l->n_kept) return CUPLUG_OK;
  if (l->sizes[0] > MAX_BATCH)
    return cuplug_failf(j->call, CUPLUG_ERROR_VALUE, "x: got %lld matrices, expected at most %d",
                        (long long)l->sizes[0], MAX_BATCH);
  k->n_batch = (int32_t)l->sizes[0];
  return CUPLUG_OK;
}

/* A sum of no products is 0. */
static int clear(const job *j) {
  const cuplug_tensor *out = j->operands[OUT].from->x;
  const int64_t bytes = cuplug_n_elements(out) * cuplug_element_bytes(out);
  if (j->is_added ||
      !j->blas->clear((uint64_t)(uintptr_t)out->data, 0, (size_t)bytes, j->call->stream))
    return CUPLUG_OK;
  return cuplug_fail(j->call, CUPLUG_ERROR_CUDA, "clearing an output failed");
}

int product(const cuplug_call *call, factor x, factor y, const cuplug_tensor *out, int is_added) {
  const factor to = {out, "out", 0};
  job j; /* the key's padding is also compared */
  memset(&j, 0, sizeof j);
  j.call = call, j.blas = call->state, j.is_added = is_added;
  j.operands[X] = operand_of(&x), j.operands[Y] = operand_of(&y), j.operands[OUT] = operand_of(&to);
  int status = set_loops(call, j.operands, &j.loops);
  if (status || !cuplug_n_elements(out)) return status;
  if (!cuplug_n_elements(x.x)) return clear(&j);
  join_rows(&j.loops, j.operands);
  join_sums(&j.loops, j.operands);
  status = set_key(&j);
  if (status) return status;
  pthread_mutex_lock(&j.blas->lock);
  status = multiply(&j);
  pthread_mutex_unlock(&j.blas->lock);
  return status;
}
