/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the CUDA driver that kernels and textures use, in addition to the core's: functions,
 * types and constants. tests/cuda/test_driver_types.c compares them with cuda.h. */
#ifndef CUPLUG_RUNTIME_KERNELS_DRIVER_H
#define CUPLUG_RUNTIME_KERNELS_DRIVER_H

#include "cuda/driver.h"

/* The driver's CUDA_ARRAY3D_DESCRIPTOR, CUDA_MEMCPY3D, CUDA_RESOURCE_DESC and CUDA_TEXTURE_DESC. */
typedef struct cuplug__texels {
  size_t width, height, depth; /* 0: no such dimension */
  int32_t format;
  uint32_t n_channels;
  uint32_t flags;
} cuplug__texels;

typedef struct cuplug__copy_end {
  size_t x_bytes, y, z, level;
  int32_t memory_type;
  const void *host;
  unsigned long long device;
  void *array;
  void *reserved;
  size_t pitch_bytes, height;
} cuplug__copy_end;

typedef struct cuplug__copy_3d {
  cuplug__copy_end from, to;
  size_t width_bytes, height, depth;
} cuplug__copy_3d;

typedef struct cuplug__resource {
  int32_t type;
  union {
    void *array;
    int32_t reserved[32];
  } of;
  uint32_t flags;
} cuplug__resource;

typedef struct cuplug__sampler {
  int32_t addressing[3];
  int32_t filter;
  uint32_t flags;
  uint32_t anisotropy;
  int32_t mipmap_filter;
  float mipmap[3];
  float border[4];
  int32_t reserved[12];
} cuplug__sampler;

#ifndef __cuda_cuda_h__
typedef int CUjit_option;
typedef int CUlibraryOption;
typedef int CUfunction_attribute;
typedef size_t (*CUoccupancyB2DSize)(int);
typedef struct CUarray_st *CUarray;
typedef unsigned long long CUtexObject;
typedef unsigned long long CUsurfObject;
typedef cuplug__texels CUDA_ARRAY3D_DESCRIPTOR;
typedef cuplug__copy_3d CUDA_MEMCPY3D;
typedef cuplug__resource CUDA_RESOURCE_DESC;
typedef cuplug__sampler CUDA_TEXTURE_DESC;
typedef struct CUDA_RESOURCE_VIEW_DESC_st CUDA_RESOURCE_VIEW_DESC;
#endif

enum {
  CUPLUG__MAX_BLOCK_DIM_X = 2, /* device attributes; y, z, and those of grids follow */
  CUPLUG__MAX_SHARED_OPTIN = 97,
  CUPLUG__KERNEL_MAX_THREADS = 0, /* kernel attributes */
  CUPLUG__KERNEL_SHARED_BYTES = 1,
  CUPLUG__KERNEL_CONSTANT_BYTES = 2,
  CUPLUG__KERNEL_LOCAL_BYTES = 3,
  CUPLUG__KERNEL_N_REGISTERS = 4,
  CUPLUG__KERNEL_MAX_DYNAMIC_SHARED = 8,
  CUPLUG__JIT_ERROR_LOG = 5, /* options of the compiler of PTX */
  CUPLUG__JIT_ERROR_LOG_BYTES = 6,
  CUPLUG__ARRAY_SURFACE = 2, /* a flag of arrays: surfaces may write them */
  CUPLUG__COPY_DEVICE = 2,   /* types of memory in copies */
  CUPLUG__COPY_ARRAY = 3,
  CUPLUG__RESOURCE_ARRAY = 0,
  CUPLUG__ADDRESS_CLAMP = 1,
  CUPLUG__READ_AS_INTEGER = 1, /* flags of textures */
  CUPLUG__NORMALIZED = 2
};

/* For code that was compiled at run time, since CUDA 12.0: NULL if missing. */
#define CUPLUG__LIBRARY_LIST(X)                                                                    \
  X(cuLibraryLoadData, "cuLibraryLoadData",                                                        \
    (CUlibrary *, const void *, CUjit_option *, void **, unsigned int, CUlibraryOption *, void **, \
     unsigned int))                                                                                \
  X(cuLibraryGetKernel, "cuLibraryGetKernel", (CUkernel *, CUlibrary, const char *))               \
  X(cuLibraryGetGlobal, "cuLibraryGetGlobal", (CUdeviceptr *, size_t *, CUlibrary, const char *))  \
  X(cuKernelGetAttribute, "cuKernelGetAttribute",                                                  \
    (int *, CUfunction_attribute, CUkernel, CUdevice))                                             \
  X(cuKernelSetAttribute, "cuKernelSetAttribute", (CUfunction_attribute, int, CUkernel, CUdevice)) \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor",    \
    (int *, CUfunction, int, size_t))                                                              \
  X(cuOccupancyMaxPotentialBlockSize, "cuOccupancyMaxPotentialBlockSize",                          \
    (int *, int *, CUfunction, CUoccupancyB2DSize, size_t, int))

/* Also NULL if missing: since CUDA 12.4 or 12.5. */
#define CUPLUG__NEWER_LIST(X)                                                             \
  X(cuKernelGetParamInfo, "cuKernelGetParamInfo", (CUkernel, size_t, size_t *, size_t *)) \
  X(cuKernelGetName, "cuKernelGetName", (const char **, CUkernel))

/* For textures: NULL if the driver lacks them. */
#define CUPLUG__TEXTURE_LIST(X)                                                             \
  X(cuArray3DCreate, "cuArray3DCreate_v2", (CUarray *, const CUDA_ARRAY3D_DESCRIPTOR *))    \
  X(cuArrayDestroy, "cuArrayDestroy", (CUarray))                                            \
  X(cuMemcpy3DAsync, "cuMemcpy3DAsync_v2", (const CUDA_MEMCPY3D *, CUstream))               \
  X(cuTexObjectCreate, "cuTexObjectCreate",                                                 \
    (CUtexObject *, const CUDA_RESOURCE_DESC *, const CUDA_TEXTURE_DESC *,                  \
     const CUDA_RESOURCE_VIEW_DESC *))                                                      \
  X(cuTexObjectDestroy, "cuTexObjectDestroy", (CUtexObject))                                \
  X(cuSurfObjectCreate, "cuSurfObjectCreate", (CUsurfObject *, const CUDA_RESOURCE_DESC *)) \
  X(cuSurfObjectDestroy, "cuSurfObjectDestroy", (CUsurfObject))

typedef struct cuplug__kernel_functions {
#define CUPLUG__X(function, symbol, parameters) CUresult(*function) parameters;
  CUPLUG__LIBRARY_LIST(CUPLUG__X)
  CUPLUG__NEWER_LIST(CUPLUG__X)
  CUPLUG__TEXTURE_LIST(CUPLUG__X)
#undef CUPLUG__X
} cuplug__kernel_functions;

/* Returns these functions. The driver has been started. */
const cuplug__kernel_functions *cuplug__kernel_driver(void);

#endif
