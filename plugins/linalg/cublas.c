/* SPDX-License-Identifier: Apache-2.0 */
#include "linalg/cublas.h"

#include <cuplug/format.h>

#include <dlfcn.h>
#include <string.h>

static const char *const files[] = {"libcublasLt.so.13", "libcublasLt.so.12"};

static void *open_library(int flags) {
  void *library = NULL;
  for (size_t k = 0; !library && k < sizeof files / sizeof *files; k++)
    library = dlopen(files[k], flags);
  return library;
}

int cublas_open(const cuplug_call *call, cublas *functions) {
  static const char *const names[] = {
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
  };
  void *addresses[sizeof names / sizeof *names];
  _Static_assert(sizeof addresses == sizeof *functions, "one name for each function");
  void *library = open_library(RTLD_NOW | RTLD_NOLOAD);
  if (!library) library = open_library(RTLD_NOW);
  if (!library)
    return cuplug_fail(call, CUPLUG_ERROR_PLUGIN,
                       "got no libcublasLt.so.13 or libcublasLt.so.12, expected cuBLAS; install "
                       "nvidia-cublas, or add its folder to LD_LIBRARY_PATH");
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    if (!(addresses[k] = dlsym(library, names[k])))
      return cuplug_failf(call, CUPLUG_ERROR_PLUGIN,
                          "got a cuBLAS without %s, expected that of CUDA 12 or 13", names[k]);
  memcpy(functions, addresses, sizeof addresses);
  return CUPLUG_OK;
}
