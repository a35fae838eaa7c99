/* SPDX-License-Identifier: Apache-2.0 */
/* The part of cuSOLVER that the factorizations call, in CUDA 12 and 13, and shared code.
 * tests/plugins/test_solvers.py compares the types with <cusolverDn.h> if that exists.
 *
 * The library's matrices have contiguous columns. An array in C order is such a matrix, transposed.
 * Each operator documents which of the two it uses, so that nothing is transposed here. */
#ifndef CUPLUG_PLUGINS_LINALG_CUSOLVER_H
#define CUPLUG_PLUGINS_LINALG_CUSOLVER_H

#include "linalg/library.h"

#include <stddef.h>

enum { SOLVER_LOWER = 0, SOLVER_UPPER = 1 };      /* cublasFillMode_t */
enum { SOLVER_PLAIN = 0, SOLVER_TRANSPOSED = 1 }; /* cublasOperation_t */

typedef int solver_generate(void *handle, int m, int n, int k, void *a, int leading,
                            const void *tau, void *work, int n_work, int *info);
typedef int solver_generate_size(void *handle, int m, int n, int k, const void *a, int leading,
                                 const void *tau, int *n_work);

/* The functions of the library, which return 0 on success. Types are values of cudaDataType;
 * workspaces are on the device, then on the host, in bytes; info is on the device. */
typedef struct cusolver {
  int (*create)(void **handle);
  int (*create_parameters)(void **parameters);
  int (*set_stream)(void *handle, void *stream);
  int (*potrf_size)(void *handle, void *parameters, int triangle, int64_t n, int type_a,
                    const void *a, int64_t leading, int compute, size_t *bytes, size_t *on_host);
  int (*potrf)(void *handle, void *parameters, int triangle, int64_t n, int type_a, void *a,
               int64_t leading, int compute, void *device, size_t bytes, void *host, size_t on_host,
               int *info);
  int (*getrf_size)(void *handle, void *parameters, int64_t m, int64_t n, int type_a, const void *a,
                    int64_t leading, int compute, size_t *bytes, size_t *on_host);
  int (*getrf)(void *handle, void *parameters, int64_t m, int64_t n, int type_a, void *a,
               int64_t leading, int64_t *pivots, int compute, void *device, size_t bytes,
               void *host, size_t on_host, int *info);
  int (*getrs)(void *handle, void *parameters, int operation, int64_t n, int64_t n_right,
               int type_a, const void *a, int64_t leading, const int64_t *pivots, int type_b,
               void *b, int64_t leading_b, int *info);
  int (*geqrf_size)(void *handle, void *parameters, int64_t m, int64_t n, int type_a, const void *a,
                    int64_t leading, int type_tau, const void *tau, int compute, size_t *bytes,
                    size_t *on_host);
  int (*geqrf)(void *handle, void *parameters, int64_t m, int64_t n, int type_a, void *a,
               int64_t leading, int type_tau, void *tau, int compute, void *device, size_t bytes,
               void *host, size_t on_host, int *info);
  int (*syevd_size)(void *handle, void *parameters, int has_vectors, int triangle, int64_t n,
                    int type_a, const void *a, int64_t leading, int type_w, const void *w,
                    int compute, size_t *bytes, size_t *on_host);
  int (*syevd)(void *handle, void *parameters, int has_vectors, int triangle, int64_t n, int type_a,
               void *a, int64_t leading, int type_w, void *w, int compute, void *device,
               size_t bytes, void *host, size_t on_host, int *info);
  int (*gesvd_size)(void *handle, void *parameters, signed char which_u, signed char which_vh,
                    int64_t m, int64_t n, int type_a, const void *a, int64_t leading, int type_s,
                    const void *s, int type_u, const void *u, int64_t leading_u, int type_vh,
                    const void *vh, int64_t leading_vh, int compute, size_t *bytes,
                    size_t *on_host);
  int (*gesvd)(void *handle, void *parameters, signed char which_u, signed char which_vh, int64_t m,
               int64_t n, int type_a, void *a, int64_t leading, int type_s, void *s, int type_u,
               void *u, int64_t leading_u, int type_vh, void *vh, int64_t leading_vh, int compute,
               void *device, size_t bytes, void *host, size_t on_host, int *info);
  /* In the order of kind_of: float32, float64, complex64, complex128. */
  solver_generate_size *generate_size[4];
  solver_generate *generate[4];
} cusolver;

/* For several matrices at once, since CUDA 12.6: NULL before. */
typedef struct batched {
  int (*syev_size)(void *handle, void *parameters, int has_vectors, int triangle, int64_t n,
                   int type_a, const void *a, int64_t leading, int type_w, const void *w,
                   int compute, size_t *bytes, size_t *on_host, int64_t n_matrices);
  int (*syev)(void *handle, void *parameters, int has_vectors, int triangle, int64_t n, int type_a,
              void *a, int64_t leading, int type_w, void *w, int compute, void *device,
              size_t bytes, void *host, size_t on_host, int *info, int64_t n_matrices);
} batched;

/* For matrices that need not be Hermitian, since CUDA 12.6: NULL before. */
typedef struct general {
  int (*geev_size)(void *handle, void *parameters, int has_left, int has_right, int64_t n,
                   int type_a, const void *a, int64_t leading, int type_w, const void *w,
                   int type_left, const void *left, int64_t leading_left, int type_right,
                   const void *right, int64_t leading_right, int compute, size_t *bytes,
                   size_t *on_host);
  int (*geev)(void *handle, void *parameters, int has_left, int has_right, int64_t n, int type_a,
              void *a, int64_t leading, int type_w, void *w, int type_left, void *left,
              int64_t leading_left, int type_right, void *right, int64_t leading_right, int compute,
              void *device, size_t bytes, void *host, size_t on_host, int *info);
} general;

/* The state of a GPU. One call at a time uses it. */
typedef struct solver {
  cusolver functions;
  batched at_once;
  general of_any;
  int (*copy)(uint64_t to, uint64_t from, size_t bytes, void *stream); /* cuMemcpyDtoDAsync */
  void *handle, *parameters;
  void *host; /* a workspace that grows */
  size_t host_bytes;
} solver;

int make_solver(const cuplug_call *call, void **state);

/* A call: n_matrices from the first argument, with `rows` and `columns` in C order. */
typedef struct factorization {
  const cuplug_call *call;
  solver *s;
  const cusolver *f;
  int kind, type, real; /* an index of `generate`; cudaDataType of elements and their moduli */
  int64_t rows, columns, n_matrices;
  int64_t matrix_bytes;
  void *device; /* the workspace */
  size_t device_bytes, host_bytes;
} factorization;

/* Begins a call: the handle uses its stream. */
int solver_begin(const cuplug_call *call, factorization *to);
/* Allocates the workspace of device_bytes and host_bytes. */
int solver_allocate(factorization *j);
/* Returns a workspace on the device; NULL if an error was reported. */
static inline void *solver_memory(const factorization *j, int64_t bytes) {
  return cuplug_workspace(j->call, (uint64_t)(bytes ? bytes : 1));
}
/* Copies on the device. */
int solver_copy(const factorization *j, void *to, const void *from, int64_t bytes);
/* Reports the status of a library function, unless it is success. */
int solver_status(const factorization *j, const char *function, int code);

/* Matrix k of an array of them, and element k of the output `info`. */
static inline void *matrix_of(const cuplug_tensor *x, int64_t k) {
  const int64_t n = x->shape[x->ndim - 1] * x->shape[x->ndim - 2];
  return (char *)x->data + k * n * cuplug_element_bytes(x);
}
static inline void *vector_of(const cuplug_tensor *x, int64_t k) {
  return (char *)x->data + k * x->shape[x->ndim - 1] * cuplug_element_bytes(x);
}
static inline int *info_of(const cuplug_tensor *x, int64_t k) { return (int *)x->data + k; }

#define SOLVER_ANY "T: float32 | float64 | complex64 | complex128"
#define SOLVER_STATE CUPLUG_EXCLUSIVE_STATE(make_solver)

#endif
