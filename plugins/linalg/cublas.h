/* SPDX-License-Identifier: Apache-2.0 */
/* The part of cuBLASLt that matmul calls, in CUDA 12 and 13. tests/plugins/test_matmul.py compares
 * the numbers with <cublasLt.h> if that exists. */
#ifndef CUPLUG_PLUGINS_LINALG_CUBLAS_H
#define CUPLUG_PLUGINS_LINALG_CUBLAS_H

#include "linalg/library.h"

enum { /* cudaDataType */
       CUBLAS_R_32F = 0,
       CUBLAS_R_64F = 1,
       CUBLAS_R_16F = 2,
       CUBLAS_C_32F = 4,
       CUBLAS_C_64F = 5,
       CUBLAS_R_16BF = 14
};
enum { CUBLAS_IN_32F = 68, CUBLAS_IN_64F = 70 };          /* cublasComputeType_t */
enum { CUBLAS_TRANSPOSE_A = 3, CUBLAS_TRANSPOSE_B = 4 };  /* cublasLtMatmulDescAttributes_t */
enum { CUBLAS_BATCH_COUNT = 5, CUBLAS_BATCH_OFFSET = 6 }; /* cublasLtMatrixLayoutAttribute_t */
enum {
  CUBLAS_MAX_WORKSPACE = 1,
  CUBLAS_MIN_ALIGNMENT_OF_A = 5
}; /* cublasLtMatmulPreferenceAttributes_t: B, C, D follow */

/* cublasLtMatmulHeuristicResult_t */
typedef struct cublas_choice {
  uint64_t algorithm[8];
  size_t workspace_bytes;
  int32_t status;
  float n_waves;
  int32_t reserved[4];
} cublas_choice;

typedef int cublas_set(void *object, int attribute, const void *value, size_t bytes);

/* The functions of the library, which return 0 on success. */
typedef struct cublas {
  int (*create)(void **handle);
  const char *(*status_text)(int status);
  int (*operation_create)(void **operation, int compute, int scale);
  int (*operation_destroy)(void *operation);
  cublas_set *operation_set;
  int (*layout_create)(void **layout, int type, uint64_t rows, uint64_t columns, int64_t leading);
  int (*layout_destroy)(void *layout);
  cublas_set *layout_set;
  int (*preference_create)(void **preference);
  int (*preference_destroy)(void *preference);
  cublas_set *preference_set;
  int (*choose)(void *handle, void *operation, void *a, void *b, void *c, void *d, void *preference,
                int n_wanted, cublas_choice *choices, int *n_found);
  int (*multiply)(void *handle, void *operation, const void *alpha, const void *a, void *a_layout,
                  const void *b, void *b_layout, const void *beta, const void *c, void *c_layout,
                  void *d, void *d_layout, const void *algorithm, void *workspace, size_t bytes,
                  void *stream);
} cublas;

extern const library cublas_library;

#endif
