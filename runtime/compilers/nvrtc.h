/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC, NVIDIA's compiler of CUDA C++, found and opened at run time. */
#ifndef CUPLUG_RUNTIME_COMPILERS_NVRTC_H
#define CUPLUG_RUNTIME_COMPILERS_NVRTC_H

#include <runtime/jit.h>

/* Receives the address of a function. */
typedef struct cuplug__function {
  const char *symbol;
  void *slot;
} cuplug__function;

/* Opens a library that must have all these functions. ERROR_COMPILE with its name if it has not. */
int cuplug__open_compiler(const char *path, const char *name, const cuplug__function *functions,
                          size_t n, cuplug_error *error);

typedef struct _nvrtcProgram *nvrtcProgram;

/* X(function, parameters): all return an nvrtcResult. */
#define CUPLUG__NVRTC_LIST(X)                                                                    \
  X(nvrtcVersion, (int *, int *))                                                                \
  X(nvrtcGetNumSupportedArchs, (int *))                                                          \
  X(nvrtcGetSupportedArchs, (int *))                                                             \
  X(nvrtcCreateProgram,                                                                          \
    (nvrtcProgram *, const char *, const char *, int, const char *const *, const char *const *)) \
  X(nvrtcDestroyProgram, (nvrtcProgram *))                                                       \
  X(nvrtcCompileProgram, (nvrtcProgram, int, const char *const *))                               \
  X(nvrtcGetPTXSize, (nvrtcProgram, size_t *))                                                   \
  X(nvrtcGetPTX, (nvrtcProgram, char *))                                                         \
  X(nvrtcGetCUBINSize, (nvrtcProgram, size_t *))                                                 \
  X(nvrtcGetCUBIN, (nvrtcProgram, char *))                                                       \
  X(nvrtcGetLTOIRSize, (nvrtcProgram, size_t *))                                                 \
  X(nvrtcGetLTOIR, (nvrtcProgram, char *))                                                       \
  X(nvrtcGetProgramLogSize, (nvrtcProgram, size_t *))                                            \
  X(nvrtcGetProgramLog, (nvrtcProgram, char *))                                                  \
  X(nvrtcAddNameExpression, (nvrtcProgram, const char *))                                        \
  X(nvrtcGetLoweredName, (nvrtcProgram, const char *, const char **))

#define CUPLUG__NVRTC_ERROR_OUT_OF_MEMORY 1
#define CUPLUG__NVRTC_ERROR_COMPILATION 6
#define CUPLUG__MAX_ARCHITECTURES 64

typedef struct cuplug__nvrtc {
#define CUPLUG__X(function, parameters) int(*function) parameters;
  CUPLUG__NVRTC_LIST(CUPLUG__X)
#undef CUPLUG__X
  const char *(*nvrtcGetErrorString)(int);
  int version; /* 13000 for 13.0 */
  int n_architectures;
  int architectures[CUPLUG__MAX_ARCHITECTURES]; /* 90 for 9.0, ascending */
} cuplug__nvrtc;

/* The functions of the NVRTC at `path`, which the first call opens. */
int cuplug__nvrtc_open(const char *path, const cuplug__nvrtc **nvrtc, cuplug_error *error);

#endif
