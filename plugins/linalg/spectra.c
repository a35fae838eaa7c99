/* SPDX-License-Identifier: Apache-2.0 */
/* Eigenvalues and singular values by cuSOLVER. `info` is 0 for success. The caller reads it, so
 * that nothing waits here.
 *
 *   eigh(x, has_vectors)   of Hermitian matrices, whose lower triangles are read: ascending
 *                          eigenvalues; row k of `vectors` is the conjugated vector of value k.
 *                          Without has_vectors, `vectors` is undefined
 *   eig(x, has_vectors)    of any square matrices: eigenvalues of the transposed ones, unordered;
 *                          row k of `vectors` is their vector of value k. Without has_vectors,
 *                          `vectors` is undefined
 *   svd(x, k)              u, s and k rows of vh with u diag(s) vh = x, s descending; only s
 *                          with k = 0. Matrices do not have more rows than columns */
#include "linalg/cusolver.h"

#define MAX_BATCHED_BYTES ((size_t)512 << 20) /* bytes of workspace, for all matrices at once */

/* The library has x^T = conj(x), whose upper triangle is the lower one of x. */
static int eigh_batched(factorization *j, int has_vectors) {
  const cuplug_tensor *outputs = j->call->outputs;
  const int code = j->s->at_once.syev(j->s->handle, j->s->parameters, has_vectors, SOLVER_UPPER,
                                      j->rows, j->type, outputs[1].data, j->rows, j->real,
                                      outputs[0].data, j->type, j->device, j->device_bytes,
                                      j->s->host, j->host_bytes, outputs[2].data, j->n_matrices);
  return solver_status(j, "XsyevBatched", code);
}

static int eigh_one(const factorization *j, int has_vectors, int64_t k) {
  const cuplug_tensor *outputs = j->call->outputs;
  const int code =
      j->f->syevd(j->s->handle, j->s->parameters, has_vectors, SOLVER_UPPER, j->rows, j->type,
                  matrix_of(&outputs[1], k), j->rows, j->real, vector_of(&outputs[0], k), j->type,
                  j->device, j->device_bytes, j->s->host, j->host_bytes, info_of(&outputs[2], k));
  return solver_status(j, "Xsyevd", code);
}

/* Sets the sizes of workspaces for all matrices at once. Returns 0 if they are processed one by
 * one. */
static int is_batched(factorization *j, int has_vectors) {
  const cuplug_tensor *outputs = j->call->outputs;
  if (j->n_matrices == 1 || !j->s->at_once.syev) return 0;
  const int code = j->s->at_once.syev_size(
      j->s->handle, j->s->parameters, has_vectors, SOLVER_UPPER, j->rows, j->type, outputs[1].data,
      j->rows, j->real, outputs[0].data, j->type, &j->device_bytes, &j->host_bytes, j->n_matrices);
  return !code && j->device_bytes <= MAX_BATCHED_BYTES;
}

CUPLUG_ENTRY int eigh_cuda(const cuplug_call *call) {
  const cuplug_tensor *x = &call->tensors[0], *outputs = call->outputs;
  const int has_vectors = call->scalars[0].i != 0; /* cusolverEigMode_t */
  factorization j;
  int status = solver_begin(call, &j);
  if (status || !j.n_matrices) return status;
  const int at_once = is_batched(&j, has_vectors);
  if (!at_once) {
    const int code = j.f->syevd_size(j.s->handle, j.s->parameters, has_vectors, SOLVER_UPPER,
                                     j.rows, j.type, outputs[1].data, j.rows, j.real,
                                     outputs[0].data, j.type, &j.device_bytes, &j.host_bytes);
    if (code) return solver_status(&j, "Xsyevd_bufferSize", code);
  }
  status = solver_allocate(&j);
  if (!status) status = solver_copy(&j, outputs[1].data, x->data, j.n_matrices * j.matrix_bytes);
  if (!status && at_once) return eigh_batched(&j, has_vectors);
  for (int64_t k = 0; !status && k < j.n_matrices; k++) status = eigh_one(&j, has_vectors, k);
  return status;
}

/* ---- Of any matrices --- */

/* The library has x^T, whose vectors are required, and writes to its argument. */
CUPLUG_ENTRY int eig_cuda(const cuplug_call *call) {
  const cuplug_tensor *x = &call->tensors[0], *outputs = call->outputs;
  const int has_vectors = call->scalars[0].i != 0;
  factorization j;
  int status = solver_begin(call, &j);
  if (status || !j.n_matrices) return status;
  const general *g = &j.s->of_any;
  const int64_t n = j.rows;
  if (!g->geev)
    return cuplug_fail(call, CUPLUG_ERROR_UNSUPPORTED,
                       "x: got an array in GPU memory, expected host memory, since this cuSOLVER "
                       "has no cusolverDnXgeev; install that of CUDA 12.6 or later");
  void *scratch = solver_memory(&j, j.matrix_bytes);
  if (!scratch) return CUPLUG_ERROR_MEMORY;
  int code = g->geev_size(j.s->handle, j.s->parameters, 0, has_vectors, n, j.type, scratch, n,
                          j.type, outputs[0].data, j.type, NULL, n, j.type, outputs[1].data, n,
                          j.type, &j.device_bytes, &j.host_bytes);
  status = code ? solver_status(&j, "Xgeev_bufferSize", code) : solver_allocate(&j);
  for (int64_t k = 0; !status && k < j.n_matrices; k++) {
    status = solver_copy(&j, scratch, matrix_of(x, k), j.matrix_bytes);
    if (status) break;
    code =
        g->geev(j.s->handle, j.s->parameters, 0, has_vectors, n, j.type, scratch, n, j.type,
                vector_of(&outputs[0], k), j.type, NULL, n, j.type, matrix_of(&outputs[1], k), n,
                j.type, j.device, j.device_bytes, j.s->host, j.host_bytes, info_of(&outputs[2], k));
    status = solver_status(&j, "Xgeev", code);
  }
  return status;
}

/* ---- Singular values ------------------------------------------------------------------------- */

/* The library has x^T = U S V^H, of n rows and m columns, m <= n: u is (V^H)^T, and vh is U^T. */
typedef struct vectors {
  signed char which_u, which_vh; /* the library writes to it */
  void *scratch;                 /* the library writes to its argument */
} vectors;

static int svd_begin(factorization *j, vectors *v) {
  const cuplug_tensor *x = &j->call->tensors[0], *outputs = j->call->outputs;
  const int64_t k = outputs[2].shape[outputs[2].ndim - 2], m = j->rows, n = j->columns;
  v->which_u = k == n ? 'A' : 'S';
  v->which_vh = 'S';
  if (!k) v->which_u = v->which_vh = 'N';
  v->scratch = solver_memory(j, j->matrix_bytes);
  if (!v->scratch) return CUPLUG_ERROR_MEMORY;
  const int code =
      j->f->gesvd_size(j->s->handle, j->s->parameters, v->which_u, v->which_vh, n, m, j->type,
                       x->data, n, j->real, outputs[1].data, j->type, outputs[2].data, n, j->type,
                       outputs[0].data, m, j->type, &j->device_bytes, &j->host_bytes);
  return code ? solver_status(j, "Xgesvd_bufferSize", code) : solver_allocate(j);
}

CUPLUG_ENTRY int svd_cuda(const cuplug_call *call) {
  const cuplug_tensor *x = &call->tensors[0], *outputs = call->outputs;
  factorization j;
  vectors v;
  int status = solver_begin(call, &j);
  if (status || !j.n_matrices) return status;
  status = svd_begin(&j, &v);
  for (int64_t k = 0; !status && k < j.n_matrices; k++) {
    status = solver_copy(&j, v.scratch, matrix_of(x, k), j.matrix_bytes);
    if (status) break;
    const int code = j.f->gesvd(
        j.s->handle, j.s->parameters, v.which_u, v.which_vh, j.columns, j.rows, j.type, v.scratch,
        j.columns, j.real, vector_of(&outputs[1], k), j.type, matrix_of(&outputs[2], k), j.columns,
        j.type, matrix_of(&outputs[0], k), j.rows, j.type, j.device, j.device_bytes, j.s->host,
        j.host_bytes, info_of(&outputs[3], k));
    status = solver_status(&j, "Xgesvd", code);
  }
  return status;
}

CUPLUG_CUDA_OPERATOR(eigh_cuda,
                     "eigh(x: float32[..., n, n], has_vectors: bool = True) -> "
                     "(values: float32[..., n], vectors: float32[..., n, n], info: int32[...]) "
                     "where n > 0",
                     "Eigenvalues of Hermitian matrices, by cuSOLVER." SOLVER_STATE);
CUPLUG_CUDA_OPERATOR(eigh_cuda,
                     "eigh(x: float64[..., n, n], has_vectors: bool = True) -> "
                     "(values: float64[..., n], vectors: float64[..., n, n], info: int32[...]) "
                     "where n > 0",
                     "Eigenvalues of Hermitian matrices, by cuSOLVER." SOLVER_STATE);
CUPLUG_CUDA_OPERATOR(eigh_cuda,
                     "eigh(x: complex64[..., n, n], has_vectors: bool = True) -> "
                     "(values: float32[..., n], vectors: complex64[..., n, n], info: int32[...]) "
                     "where n > 0",
                     "Eigenvalues of Hermitian matrices, by cuSOLVER." SOLVER_STATE);
CUPLUG_CUDA_OPERATOR(eigh_cuda,
                     "eigh(x: complex128[..., n, n], has_vectors: bool = True) -> "
                     "(values: float64[..., n], vectors: complex128[..., n, n], info: int32[...]) "
                     "where n > 0",
                     "Eigenvalues of Hermitian matrices, by cuSOLVER." SOLVER_STATE);
CUPLUG_CUDA_OPERATOR(eig_cuda,
                     "eig(x: T[..., n, n], has_vectors: bool = True) -> "
                     "(values: T[..., n], vectors: T[..., n, n], info: int32[...]) "
                     "where T: complex64 | complex128, n > 0",
                     "Eigenvalues of transposed matrices, by cuSOLVER." SOLVER_STATE);
CUPLUG_CUDA_OPERATOR(
    svd_cuda,
    "svd(x: float32[..., m, n], k: int) -> (u: float32[..., m, m], s: float32[..., m], "
    "vh: float32[..., k, n], info: int32[...]) "
    "where 0 < m <= n, k == 0 or k == m or k == n",
    "Singular value decompositions, by cuSOLVER." SOLVER_STATE);
CUPLUG_CUDA_OPERATOR(
    svd_cuda,
    "svd(x: float64[..., m, n], k: int) -> (u: float64[..., m, m], s: float64[..., m], "
    "vh: float64[..., k, n], info: int32[...]) "
    "where 0 < m <= n, k == 0 or k == m or k == n",
    "Singular value decompositions, by cuSOLVER." SOLVER_STATE);
CUPLUG_CUDA_OPERATOR(
    svd_cuda,
    "svd(x: complex64[..., m, n], k: int) -> (u: complex64[..., m, m], s: float32[..., m], "
    "vh: complex64[..., k, n], info: int32[...]) "
    "where 0 < m <= n, k == 0 or k == m or k == n",
    "Singular value decompositions, by cuSOLVER." SOLVER_STATE);
CUPLUG_CUDA_OPERATOR(
    svd_cuda,
    "svd(x: complex128[..., m, n], k: int) -> (u: complex128[..., m, m], s: float64[..., m], "
    "vh: complex128[..., k, n], info: int32[...]) "
    "where 0 < m <= n, k == 0 or k == m or k == n",
    "Singular value decompositions, by cuSOLVER." SOLVER_STATE);
