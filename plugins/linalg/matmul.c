/* SPDX-License-Identifier: Apache-2.0 */
/* matmul(x, y) = x @ y by cuBLASLt: NumPy's product of matrices, out[..., i, j] = sum_l x[..., i,
 * l] y[..., l, j].
 *
 *   x       T[..., m, k]     strided: rows or columns of each matrix are contiguous
 *   y       T[..., k, n]     likewise; the loop dimensions broadcast, without a copy
 *   out     T[..., m, n]
 *
 * T: float16, bfloat16 (summed in float32), float32, float64, complex64, complex128. The library's
 * choice of an algorithm is kept for each combination of dtype, sizes, strides and alignment. */
#include "linalg/cublas.h"

#include <cuplug/format.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORKSPACE ((uint64_t)32 << 20) /* bytes that cuBLAS recommends for Hopper */
#define MAX_PLANS 256                      /* that are kept */
#define MAX_ALIGNMENT 256                  /* bytes that the library distinguishes */
#define MAX_BATCH INT32_MAX

/* A matrix as the library has it: columns are contiguous, `leading` elements from each other. */
typedef struct matrix {
  uint64_t rows, columns;
  int64_t leading, offset; /* elements to the next of the batch */
  int32_t is_transposed;   /* the operation transposes it */
  uint32_t alignment;      /* bytes */
} matrix;

typedef struct key {
  uint32_t type;
  int32_t n_batch;
  matrix a, b, d;
} key;

typedef struct plan {
  key key;
  void *operation, *a, *b, *d;
  cublas_choice choice;
} plan;

/* The state of a GPU. */
typedef struct blas {
  cublas functions;
  void *handle;
  pthread_mutex_t lock; /* of the plans */
  plan plans[MAX_PLANS];
  int n_plans, oldest;
} blas;

CUPLUG_ENTRY int make_blas(const cuplug_call *call, void **state) {
  blas *new = calloc(1, sizeof *new);
  if (!new) return cuplug_fail(call, CUPLUG_ERROR_MEMORY, "got no memory for a handle of cuBLAS");
  void *addresses[CUPLUG_MAX_FUNCTIONS];
  int status = library_open(call, &cublas_library, addresses), code = 0;
  if (!status) memcpy(&new->functions, addresses, sizeof new->functions);
  if (!status && (code = new->functions.create(&new->handle)))
    status = cuplug_failf(call, CUPLUG_ERROR_CUDA, "cuBLAS: %s", new->functions.status_text(code));
  if (status) {
    free(new);
    return status;
  }
  pthread_mutex_init(&new->lock, NULL);
  *state = new;
  return CUPLUG_OK;
}

/* ---- Arrays as matrices of the library ------------------------------------------------------- */

static int64_t at_least(int64_t n, int64_t least) { return n < least ? least : n; }

/* A matrix of `rows` times `columns`, `row` and `column` elements from one to the next, as the
 * library has the transposed one. Returns 0 if neither its rows nor its columns are contiguous. */
static int set_matrix(matrix *x, int64_t rows, int64_t columns, int64_t row, int64_t column) {
  const int has_rows = (columns == 1 || column == 1) && (rows == 1 || row >= at_least(columns, 1));
  const int has_columns = (rows == 1 || row == 1) && (columns == 1 || column >= at_least(rows, 1));
  x->is_transposed = !has_rows;
  x->rows = (uint64_t)(has_rows ? columns : rows);
  x->columns = (uint64_t)(has_rows ? rows : columns);
  x->leading = has_rows ? rows == 1 ? columns : row : columns == 1 ? rows : column;
  return has_rows || has_columns;
}

static int64_t stride_of(const cuplug_tensor *x, int32_t d) {
  int64_t step = 1;
  if (x->strides) return x->strides[d];
  for (int32_t k = x->ndim - 1; k > d; k--) step *= x->shape[k];
  return step;
}

static int set_operand(const cuplug_call *call, const char *name, const cuplug_tensor *x,
                       matrix *to) {
  const int32_t last = x->ndim - 1;
  const int64_t row = stride_of(x, last - 1), column = stride_of(x, last);
  if (set_matrix(to, x->shape[last - 1], x->shape[last], row, column)) return CUPLUG_OK;
  return cuplug_failf(call, CUPLUG_ERROR_VALUE,
                      "%s: got matrices with strides (%lld, %lld), expected contiguous rows or "
                      "columns; pass a copy",
                      name, (long long)row, (long long)column);
}

/* ---- Loop dimensions ------------------------------------------------------------------------- */

/* The products of a call: batches of n_batch, one for each index of the n_outer dimensions. */
typedef struct loops {
  int32_t n_outer;
  int64_t sizes[64], steps[3][64]; /* of x, y and out, in elements */
} loops;

/* Merges neighboring loop dimensions where all three arrays go on in one step. */
static void set_loops(const cuplug_tensor *const arrays[3], loops *l) {
  l->n_outer = 0;
  for (int32_t d = arrays[2]->ndim - 3; d >= 0; d--) {
    const int64_t size = arrays[2]->shape[d];
    const int32_t k = l->n_outer;
    int is_merged = k > 0;
    for (int a = 0; a < 3; a++) {
      l->steps[a][k] = size == 1 ? 0 : stride_of(arrays[a], d);
      is_merged = is_merged && l->steps[a][k] == l->steps[a][k - 1] * l->sizes[k - 1];
    }
    if (size == 1) continue;
    if (is_merged)
      l->sizes[k - 1] *= size;
    else
      l->sizes[l->n_outer++] = size;
  }
}

/* Takes the matrices of x along the innermost loop dimension as one with more rows, if all are
 * multiplied by one y, and those of x and of the output go on in one step. */
static int join(const loops *l, int array, const cuplug_tensor *x, matrix *to) {
  const int64_t m = x->shape[x->ndim - 2], step = l->steps[array][0];
  const int64_t row = m == 1 ? step : stride_of(x, x->ndim - 2);
  if (step != row * m) return 0;
  return set_matrix(to, m * l->sizes[0], x->shape[x->ndim - 1], row, stride_of(x, x->ndim - 1)) &&
         !to->is_transposed;
}

static void join_rows(loops *l, const cuplug_tensor *x, const cuplug_tensor *out, matrix *of_x,
                      matrix *of_out) {
  matrix joined = *of_x, joined_out = *of_out;
  if (!l->n_outer || l->steps[1][0]) return;
  if (!join(l, 0, x, &joined) || !join(l, 2, out, &joined_out)) return;
  *of_x = joined, *of_out = joined_out;
  l->n_outer--;
  memmove(l->sizes, l->sizes + 1, sizeof l->sizes - sizeof *l->sizes);
  for (int a = 0; a < 3; a++)
    memmove(l->steps[a], l->steps[a] + 1, sizeof l->steps[a] - sizeof *l->steps[a]);
}

/* The alignment that all matrices of an array have. */
static uint32_t alignment_of(const cuplug_tensor *x, const loops *l, int array) {
  uintptr_t bits = (uintptr_t)x->data | MAX_ALIGNMENT;
  for (int32_t d = 0; d < l->n_outer; d++)
    bits |= (uintptr_t)l->steps[array][d] * (uintptr_t)cuplug_element_bytes(x);
  return (uint32_t)(bits & -bits);
}

/* ---- Plans, under the lock ------------------------------------------------------------------- */

static const struct {
  uint32_t type;
  int data, compute, scale;
} kinds[] = {
    {CUPLUG_FLOAT16, CUBLAS_R_16F, CUBLAS_IN_32F, CUBLAS_R_32F},
    {CUPLUG_BFLOAT16, CUBLAS_R_16BF, CUBLAS_IN_32F, CUBLAS_R_32F},
    {CUPLUG_FLOAT32, CUBLAS_R_32F, CUBLAS_IN_32F, CUBLAS_R_32F},
    {CUPLUG_FLOAT64, CUBLAS_R_64F, CUBLAS_IN_64F, CUBLAS_R_64F},
    {CUPLUG_COMPLEX64, CUBLAS_C_32F, CUBLAS_IN_32F, CUBLAS_C_32F},
    {CUPLUG_COMPLEX128, CUBLAS_C_64F, CUBLAS_IN_64F, CUBLAS_C_64F},
};

static int kind_of(uint32_t type) {
  int k = 0;
  while (kinds[k].type != type) k++;
  return k;
}

static void destroy(const cublas *f, plan *p) {
  if (p->operation) f->operation_destroy(p->operation);
  if (p->a) f->layout_destroy(p->a);
  if (p->b) f->layout_destroy(p->b);
  if (p->d) f->layout_destroy(p->d);
  memset(p, 0, sizeof *p);
}

static int make_layout(const cublas *f, void **layout, int data, const matrix *x, int32_t n_batch) {
  int code = f->layout_create(layout, data, x->rows, x->columns, x->leading);
  if (!code) code = f->layout_set(*layout, CUBLAS_BATCH_COUNT, &n_batch, sizeof n_batch);
  return code ? code : f->layout_set(*layout, CUBLAS_BATCH_OFFSET, &x->offset, sizeof x->offset);
}

static int choose(const blas *b, plan *p) {
  const cublas *f = &b->functions;
  const uint32_t alignments[4] = {p->key.a.alignment, p->key.b.alignment, p->key.d.alignment,
                                  p->key.d.alignment};
  const uint64_t most = MAX_WORKSPACE;
  void *preference;
  int n_found = 0, code = f->preference_create(&preference);
  if (code) return code;
  code = f->preference_set(preference, CUBLAS_MAX_WORKSPACE, &most, sizeof most);
  for (int k = 0; !code && k < 4; k++)
    code = f->preference_set(preference, CUBLAS_MIN_ALIGNMENT_OF_A + k, &alignments[k],
                             sizeof alignments[k]);
  if (!code)
    code = f->choose(b->handle, p->operation, p->a, p->b, p->d, p->d, preference, 1, &p->choice,
                     &n_found);
  f->preference_destroy(preference);
  return code ? code : n_found ? p->choice.status : 15; /* CUBLAS_STATUS_NOT_SUPPORTED */
}

static int make_plan(const blas *b, plan *p, const key *k) {
  const cublas *f = &b->functions;
  const int kind = kind_of(k->type);
  p->key = *k;
  int code = f->operation_create(&p->operation, kinds[kind].compute, kinds[kind].scale);
  if (!code)
    code = f->operation_set(p->operation, CUBLAS_TRANSPOSE_A, &k->a.is_transposed, sizeof(int32_t));
  if (!code)
    code = f->operation_set(p->operation, CUBLAS_TRANSPOSE_B, &k->b.is_transposed, sizeof(int32_t));
  if (!code) code = make_layout(f, &p->a, kinds[kind].data, &k->a, k->n_batch);
  if (!code) code = make_layout(f, &p->b, kinds[kind].data, &k->b, k->n_batch);
  if (!code) code = make_layout(f, &p->d, kinds[kind].data, &k->d, k->n_batch);
  return code ? code : choose(b, p);
}

static int find_plan(blas *b, const key *k, plan **found) {
  for (int i = 0; i < b->n_plans; i++)
    if (!memcmp(&b->plans[i].key, k, sizeof *k)) return *found = &b->plans[i], 0;
  *found = &b->plans[b->n_plans < MAX_PLANS ? b->n_plans : b->oldest];
  if (b->n_plans == MAX_PLANS) b->oldest = (b->oldest + 1) % MAX_PLANS;
  destroy(&b->functions, *found);
  const int code = make_plan(b, *found, k);
  if (code)
    destroy(&b->functions, *found);
  else if (b->n_plans < MAX_PLANS)
    b->n_plans++;
  return code;
}

/* ---- All ------------------------------------------------------------------------------------- */

static void *here(const cuplug_call *call, int array, const int64_t offsets[3]) {
  const cuplug_tensor *x = &call->tensors[array]; /* the output is the last of three */
  return (char *)x->data + offsets[array] * cuplug_element_bytes(x);
}

static int multiply(const cuplug_call *call, blas *b, const key *k, const loops *l) {
  static const double one[2] = {1, 0}, zero[2] = {0, 0};
  static const float single_one[2] = {1, 0}, single_zero[2] = {0, 0};
  const int is_double = k->type == CUPLUG_FLOAT64 || k->type == CUPLUG_COMPLEX128;
  const void *alpha = is_double ? (const void *)one : single_one;
  const void *beta = is_double ? (const void *)zero : single_zero;
  int64_t at[64] = {0}, offsets[3] = {0};
  plan *p;
  int code = find_plan(b, k, &p);
  if (code) goto failed;
  void *scratch =
      p->choice.workspace_bytes ? cuplug_workspace(call, p->choice.workspace_bytes) : NULL;
  if (p->choice.workspace_bytes && !scratch) return CUPLUG_ERROR_MEMORY;
  for (int32_t d = 0; d < at_least(l->n_outer, 1);) {
    code = b->functions.multiply(b->handle, p->operation, alpha, here(call, 1, offsets), p->a,
                                 here(call, 0, offsets), p->b, beta, here(call, 2, offsets), p->d,
                                 here(call, 2, offsets), p->d, p->choice.algorithm, scratch,
                                 p->choice.workspace_bytes, call->stream);
    if (code) goto failed;
    for (d = 1; d < l->n_outer; d++) { /* to the next index of the outer dimensions */
      for (int a = 0; a < 3; a++) offsets[a] += l->steps[a][d];
      if (++at[d] < l->sizes[d]) break;
      for (int a = 0; a < 3; a++) offsets[a] -= l->steps[a][d] * l->sizes[d];
      at[d] = 0;
    }
  }
  return CUPLUG_OK;
failed:
  return cuplug_failf(call, CUPLUG_ERROR_CUDA, "cuBLAS: %s", b->functions.status_text(code));
}

CUPLUG_ENTRY int matmul_cuda(const cuplug_call *call) {
  const cuplug_tensor *x = &call->tensors[0], *y = &call->tensors[1], *out = &call->outputs[0];
  blas *b = call->state;
  loops l;
  key k;
  if (!cuplug_n_elements(out)) return CUPLUG_OK;
  memset(&k, 0, sizeof k); /* its padding is compared, too */
  k.type = cuplug_type(x);
  int status = set_operand(call, "y", y, &k.a);
  if (!status) status = set_operand(call, "x", x, &k.b);
  if (!status) status = set_operand(call, "out", out, &k.d);
  if (status) return status;
  if (k.d.is_transposed)
    return cuplug_fail(call, CUPLUG_ERROR_VALUE,
                       "out: got contiguous columns, expected contiguous rows");
  set_loops((const cuplug_tensor *const[]){x, y, out}, &l);
  join_rows(&l, x, out, &k.b, &k.d);
  k.a.alignment = alignment_of(y, &l, 1);
  k.b.alignment = alignment_of(x, &l, 0);
  k.d.alignment = alignment_of(out, &l, 2);
  k.n_batch = 1;
  if (l.n_outer) {
    if (l.sizes[0] > MAX_BATCH)
      return cuplug_failf(call, CUPLUG_ERROR_VALUE, "x: got %lld matrices, expected at most %d",
                          (long long)l.sizes[0], MAX_BATCH);
    k.n_batch = (int32_t)l.sizes[0];
    k.a.offset = l.steps[1][0], k.b.offset = l.steps[0][0], k.d.offset = l.steps[2][0];
  }
  pthread_mutex_lock(&b->lock);
  status = multiply(call, b, &k, &l);
  pthread_mutex_unlock(&b->lock);
  return status;
}

CUPLUG_CUDA_OPERATOR(
    matmul_cuda,
    "matmul(x: T[..., m, k], y: T[..., k, n]) -> T[..., m, n] where "
    "T: float16 | bfloat16 | float32 | float64 | complex64 | complex128, k > 0",
    "The product of matrices, by cuBLASLt." CUPLUG_CUDA_TAKES_STRIDES CUPLUG_STATE(make_blas));
CUPLUG_PLUGIN(linalg, "1.0.0");
