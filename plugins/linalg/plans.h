/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt's choices of algorithms, cached for each combination of dtype, sizes, strides and
 * alignment. */
#ifndef CUPLUG_PLUGINS_LINALG_PLANS_H
#define CUPLUG_PLUGINS_LINALG_PLANS_H

#include "linalg/cublas.h"

#include <pthread.h>

#define MAX_PLANS 256 /* number of cached plans */

enum { PLAIN, TRANSPOSED, ADJOINT }; /* cublasOperation_t */

/* A matrix in the library's form: columns are contiguous, `leading` elements apart. */
typedef struct matrix {
  uint64_t rows, columns;
  int64_t leading, offset; /* elements to the next matrix of the batch */
  int32_t operation;       /* the operation on it: PLAIN ... */
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
  int (*clear)(uint64_t at, unsigned char value, size_t bytes, void *stream); /* cuMemsetD8Async */
  pthread_mutex_t lock;                                                       /* of the plans */
  plan plans[MAX_PLANS];
  int n_plans, oldest;
} blas;

/* The state of operators that call the library: a blas. */
CUPLUG_ENTRY int make_blas(const cuplug_call *call, void **state);

/* Call it with the lock held. Returns 0 or the library's code. */
int find_plan(blas *b, const key *k, plan **found);

#endif
