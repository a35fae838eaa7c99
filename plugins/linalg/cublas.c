/* SPDX-License-Identifier: Apache-2.0 */
#include "linalg/cublas.h"

const library cublas_library = {
    "cuBLAS",
    "nvidia-cublas",
    {"libcublasLt.so.13", "libcublasLt.so.12"},
    {
        "cublasLtCreate",
        "cublasLtGetStatusString",
        "cublasLtMatmulDescCreate",
        "cublasLtMatmulDescDestroy",
        "cublasLtMatmulDescSetAttribute",
        "cublasLtMatrixLayoutCreate",
        "cublasLtMatrixLayoutDestroy",
        "cublasLtMatrixLayoutSetAttribute",
        "cublasLtMatmulPreferenceCreate",
        "cublasLtMatmulPreferenceDestroy",
        "cublasLtMatmulPreferenceSetAttribute",
        "cublasLtMatmulAlgoGetHeuristic",
        "cublasLtMatmul",
    },
};
