/* SPDX-License-Identifier: Apache-2.0 */
#include "linalg/cusolver.h"

#include "linalg/cublas.h"

#include <cuplug/format.h>

#include <stdlib.h>
#include <string.h>

static const library cusolver_library = {
    "cuSOLVER",
    "nvidia-cusolver",
    {"libcusolver.so.12", "libcusolver.so.11"},
    {
        "cusolverDnCreate",
        "cusolverDnCreateParams",
        "cusolverDnSetStream",
        "cusolverDnXpotrf_bufferSize",
        "cusolverDnXpotrf",
        "cusolverDnXgetrf_bufferSize",
        "cusolverDnXgetrf",
        "cusolverDnXgetrs",
        "cusolverDnXgeqrf_bufferSize",
        "cusolverDnXgeqrf",
        "cusolverDnXsyevd_bufferSize",
        "cusolverDnXsyevd",
        "cusolverDnXgesvd_bufferSize",
        "cusolverDnXgesvd",
        "cusolverDnSorgqr_bufferSize",
        "cusolverDnDorgqr_bufferSize",
        "cusolverDnCungqr_bufferSize",
        "cusolverDnZungqr_bufferSize",
        "cusolverDnSorgqr",
        "cusolverDnDorgqr",
        "cusolverDnCungqr",
        "cusolverDnZungqr",
    },
};

/* Sets a pair of functions, if the library has them. */
static void find_both(const char *size, const char *name, void *to) {
  void *found[] = {library_function(&cusolver_library, size),
                   library_function(&cusolver_library, name)};
  if (found[0] && found[1]) memcpy(to, found, sizeof found);
}

CUPLUG_ENTRY int make_solver(const cuplug_call *call, void **state) {
  static const library driver = {
      "libcuda", "the driver", {"libcuda.so.1"}, {"cuMemcpyDtoDAsync_v2"}};
  void *addresses[CUPLUG_MAX_FUNCTIONS], *copy;
  int status = library_open(call, &driver, &copy), code;
  if (!status) status = library_open(call, &cusolver_library, addresses);
  if (status) return status;
  solver *new = calloc(1, sizeof *new);
  if (!new) return cuplug_fail(call, CUPLUG_ERROR_MEMORY, "no memory for cuSOLVER's handle");
  memcpy(&new->functions, addresses, sizeof new->functions);
  memcpy(&new->copy, &copy, sizeof copy);
  find_both("cusolverDnXsyevBatched_bufferSize", "cusolverDnXsyevBatched", &new->at_once);
  find_both("cusolverDnXgeev_bufferSize", "cusolverDnXgeev", &new->of_any);
  code = new->functions.create(&new->handle);
  if (!code) code = new->functions.create_parameters(&new->parameters);
  if (code) {
    free(new);
    return cuplug_failf(call, CUPLUG_ERROR_CUDA, "cuSOLVER: error %d in cusolverDnCreate", code);
  }
  *state = new;
  return CUPLUG_OK;
}

int solver_status(const factorization *j, const char *function, int code) {
  if (!code) return CUPLUG_OK;
  return cuplug_failf(j->call, CUPLUG_ERROR_CUDA,
                      "cuSOLVER: error %d in cusolverDn%s of %lld by %lld matrices", code, function,
                      (long long)j->rows, (long long)j->columns);
}

int solver_begin(const cuplug_call *call, factorization *to) {
  static const int types[] = {CUBLAS_R_32F, CUBLAS_R_64F, CUBLAS_C_32F, CUBLAS_C_64F};
  const cuplug_tensor *x = &call->tensors[0];
  const uint32_t type = cuplug_type(x);
  const int is_complex = type == CUPLUG_COMPLEX64 || type == CUPLUG_COMPLEX128;
  const int is_double = type == CUPLUG_FLOAT64 || type == CUPLUG_COMPLEX128;
  memset(to, 0, sizeof *to);
  to->call = call;
  to->s = call->state;
  to->f = &to->s->functions;
  to->kind = 2 * is_complex + is_double;
  to->type = types[to->kind];
  to->real = types[is_double];
  to->rows = x->shape[x->ndim - 2];
  to->columns = x->shape[x->ndim - 1];
  to->n_matrices = 1;
  for (int32_t d = 0; d < x->ndim - 2; d++) to->n_matrices *= x->shape[d];
  to->matrix_bytes = to->rows * to->columns * cuplug_element_bytes(x);
  return solver_status(to, "SetStream", to->f->set_stream(to->s->handle, call->stream));
}

int solver_allocate(factorization *j) {
  solver *s = j->s;
  if (j->host_bytes > s->host_bytes) {
    free(s->host);
    s->host = malloc(j->host_bytes);
    s->host_bytes = s->host ? j->host_bytes : 0;
    if (!s->host)
      return cuplug_failf(j->call, CUPLUG_ERROR_MEMORY,
                          "got no memory for cuSOLVER's workspace of %zu bytes", j->host_bytes);
  }
  j->device = solver_memory(j, (int64_t)j->device_bytes);
  return j->device ? CUPLUG_OK : CUPLUG_ERROR_MEMORY;
}

int solver_copy(const factorization *j, void *to, const void *from, int64_t bytes) {
  const uint64_t target = (uint64_t)(uintptr_t)to, source = (uint64_t)(uintptr_t)from;
  if (!bytes || !j->s->copy(target, source, (size_t)bytes, j->call->stream)) return CUPLUG_OK;
  return cuplug_fail(j->call, CUPLUG_ERROR_CUDA, "copying a matrix failed");
}
