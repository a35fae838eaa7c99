/* SPDX-License-Identifier: Apache-2.0 */
/* Factorizations of matrices by cuSOLVER, and solutions with them. `info` is 0 for success. The
 * caller reads it, so that nothing waits here.
 *
 *   cholesky(x)               L with L L^H = x for Hermitian matrices, whose lower triangles are
 *                             read; the upper triangles of L are x's
 *   lu(x)                     the factors of the transposed matrices, with the same determinants:
 *                             their diagonals have U's; row k was exchanged with pivots[k] - 1
 *   solve(a, b, transposed)   x with x a = b, or x a^T = b with `transposed`
 *   qr(x, q)                  of the transposed matrices: the rows of `vectors` are the first q
 *                             columns of Q; `factors` has R^T in its lower triangles */
#include "linalg/cusolver.h"

/* ---- Cholesky -------------------------------------------------------------------------------- */

/* The library has x^T = conj(L) L^T: its upper triangle is the lower one here. */
CUPLUG_ENTRY int cholesky_cuda(const cuplug_call *call) {
  const cuplug_tensor *x = &call->tensors[0], *out = &call->outputs[0];
  factorization j;
  int status = solver_begin(call, &j);
  if (status || !j.n_matrices) return status;
  const int64_t n = j.rows;
  int code = j.f->potrf_size(j.s->handle, j.s->parameters, SOLVER_UPPER, n, j.type, x->data, n,
                             j.type, &j.device_bytes, &j.host_bytes);
  if (code) return solver_status(&j, "Xpotrf_bufferSize", code);
  status = solver_allocate(&j);
  if (!status) status = solver_copy(&j, out->data, x->data, j.n_matrices * j.matrix_bytes);
  for (int64_t k = 0; !status && k < j.n_matrices; k++) {
    code = j.f->potrf(j.s->handle, j.s->parameters, SOLVER_UPPER, n, j.type, matrix_of(out, k), n,
                      j.type, j.device, j.device_bytes, j.s->host, j.host_bytes,
                      info_of(&call->outputs[1], k));
    status = solver_status(&j, "Xpotrf", code);
  }
  return status;
}

/* ---- LU -------------------------------------------------------------------------------------- */

static int lu_begin(const cuplug_call *call, factorization *j) {
  int status = solver_begin(call, j);
  if (status || !j->n_matrices) return status;
  const int code =
      j->f->getrf_size(j->s->handle, j->s->parameters, j->rows, j->rows, j->type,
                       call->tensors[0].data, j->rows, j->type, &j->device_bytes, &j->host_bytes);
  return code ? solver_status(j, "Xgetrf_bufferSize", code) : solver_allocate(j);
}

static int lu(const factorization *j, void *a, int64_t *pivots, int *info) {
  const int code =
      j->f->getrf(j->s->handle, j->s->parameters, j->rows, j->rows, j->type, a, j->rows, pivots,
                  j->type, j->device, j->device_bytes, j->s->host, j->host_bytes, info);
  return solver_status(j, "Xgetrf", code);
}

CUPLUG_ENTRY int lu_cuda(const cuplug_call *call) {
  const cuplug_tensor *x = &call->tensors[0], *outputs = call->outputs;
  factorization j;
  int status = lu_begin(call, &j);
  if (status || !j.n_matrices) return status;
  status = solver_copy(&j, outputs[0].data, x->data, j.n_matrices * j.matrix_bytes);
  for (int64_t k = 0; !status && k < j.n_matrices; k++)
    status = lu(&j, matrix_of(&outputs[0], k), vector_of(&outputs[1], k), info_of(&outputs[2], k));
  return status;
}

/* The library has a^T, b^T and x^T: x a = b is a^T x^T = b^T. */
static int solve_one(const factorization *j, int64_t k, void *factors, int64_t *pivots,
                     int *ignored) {
  const cuplug_tensor *out = &j->call->outputs[0];
  const int operation = j->call->scalars[0].i ? SOLVER_TRANSPOSED : SOLVER_PLAIN;
  const int64_t n = j->rows, n_right = out->shape[out->ndim - 2];
  int status = solver_copy(j, factors, matrix_of(&j->call->tensors[0], k), j->matrix_bytes);
  if (!status) status = lu(j, factors, pivots, info_of(&j->call->outputs[1], k));
  if (status) return status;
  return solver_status(j, "Xgetrs",
                       j->f->getrs(j->s->handle, j->s->parameters, operation, n, n_right, j->type,
                                   factors, n, pivots, j->type, matrix_of(out, k), n, ignored));
}

CUPLUG_ENTRY int solve_cuda(const cuplug_call *call) {
  const cuplug_tensor *b = &call->tensors[1], *out = &call->outputs[0];
  factorization j;
  int status = lu_begin(call, &j);
  if (status || !j.n_matrices) return status;
  void *factors = solver_memory(&j, j.matrix_bytes);
  int64_t *pivots = factors ? solver_memory(&j, j.rows * (int64_t)sizeof *pivots) : NULL;
  int *ignored = pivots ? solver_memory(&j, sizeof *ignored) : NULL;
  if (!ignored) return CUPLUG_ERROR_MEMORY;
  status = solver_copy(&j, out->data, b->data, cuplug_n_elements(b) * cuplug_element_bytes(b));
  for (int64_t k = 0; !status && k < j.n_matrices; k++)
    status = solve_one(&j, k, factors, pivots, ignored);
  return status;
}

/* ---- QR -------------------------------------------------------------------------------------- */

/* The library has matrices of m rows and n columns, which are x's, transposed. */
typedef struct reflectors {
  int64_t m, n, least, n_vectors;
  void *tau, *work;
  int n_work, *ignored;
} reflectors;

static int qr_begin(factorization *j, reflectors *r) {
  const cuplug_tensor *x = &j->call->tensors[0], *vectors = &j->call->outputs[1];
  r->m = j->columns, r->n = j->rows, r->least = r->m < r->n ? r->m : r->n;
  r->n_vectors = vectors->shape[vectors->ndim - 2];
  r->tau = solver_memory(j, r->least * cuplug_element_bytes(x));
  r->ignored = r->tau ? solver_memory(j, sizeof *r->ignored) : NULL;
  if (!r->ignored) return CUPLUG_ERROR_MEMORY;
  int code = j->f->geqrf_size(j->s->handle, j->s->parameters, r->m, r->n, j->type, x->data, r->m,
                              j->type, r->tau, j->type, &j->device_bytes, &j->host_bytes);
  if (code) return solver_status(j, "Xgeqrf_bufferSize", code);
  code = j->f->generate_size[j->kind](j->s->handle, (int)r->m, (int)r->n_vectors, (int)r->least,
                                      vectors->data, (int)r->m, r->tau, &r->n_work);
  if (code) return solver_status(j, "Xungqr_bufferSize", code);
  r->work = solver_memory(j, r->n_work * cuplug_element_bytes(x));
  return r->work ? solver_allocate(j) : CUPLUG_ERROR_MEMORY;
}

static int qr_one(const factorization *j, const reflectors *r, int64_t k) {
  void *factors = matrix_of(&j->call->outputs[0], k), *vectors = matrix_of(&j->call->outputs[1], k);
  const int64_t column = r->m * cuplug_element_bytes(&j->call->tensors[0]);
  int code = j->f->geqrf(j->s->handle, j->s->parameters, r->m, r->n, j->type, factors, r->m,
                         j->type, r->tau, j->type, j->device, j->device_bytes, j->s->host,
                         j->host_bytes, r->ignored);
  if (code) return solver_status(j, "Xgeqrf", code);
  const int status = solver_copy(j, vectors, factors, r->least * column);
  if (status) return status;
  code = j->f->generate[j->kind](j->s->handle, (int)r->m, (int)r->n_vectors, (int)r->least, vectors,
                                 (int)r->m, r->tau, r->work, r->n_work, r->ignored);
  return solver_status(j, "Xungqr", code);
}

CUPLUG_ENTRY int qr_cuda(const cuplug_call *call) {
  factorization j;
  reflectors r;
  int status = solver_begin(call, &j);
  if (status || !j.n_matrices) return status;
  status = qr_begin(&j, &r);
  if (!status)
    status = solver_copy(&j, call->outputs[0].data, call->tensors[0].data,
                         j.n_matrices * j.matrix_bytes);
  for (int64_t k = 0; !status && k < j.n_matrices; k++) status = qr_one(&j, &r, k);
  return status;
}

CUPLUG_CUDA_OPERATOR(cholesky_cuda,
                     "cholesky(x: T[..., n, n]) -> (factors: T[..., n, n], info: int32[...]) "
                     "where n > 0, " SOLVER_ANY,
                     "Cholesky factors of Hermitian matrices, by cuSOLVER." SOLVER_STATE);
CUPLUG_CUDA_OPERATOR(lu_cuda,
                     "lu(x: T[..., n, n]) -> (factors: T[..., n, n], pivots: int64[..., n], "
                     "info: int32[...]) where n > 0, " SOLVER_ANY,
                     "LU factors of transposed matrices, by cuSOLVER." SOLVER_STATE);
CUPLUG_CUDA_OPERATOR(solve_cuda,
                     "solve(a: T[..., n, n], b: T[..., k, n], transposed: bool = False) -> "
                     "(x: T[..., k, n], info: int32[...]) where n > 0, k > 0, " SOLVER_ANY,
                     "x with x @ a = b, or x @ a^T = b, by cuSOLVER." SOLVER_STATE);
CUPLUG_CUDA_OPERATOR(qr_cuda,
                     "qr(x: T[..., n, m], q: int) -> (factors: T[..., n, m], "
                     "vectors: T[..., q, m]) where n > 0, m > 0, min(m, n) <= q <= m, "
                     "m < 2147483648, " SOLVER_ANY,
                     "QR factors of transposed matrices, by cuSOLVER." SOLVER_STATE);
