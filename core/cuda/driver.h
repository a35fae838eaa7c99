/* SPDX-License-Identifier: Apache-2.0 */
/* What the core uses of the CUDA driver: functions found at run time, types and constants. No
 * header of the CUDA toolkit is needed; tests/c/test_driver_types.c compares this one with
 * cuda.h, whose own types are taken when it was included before. */
#ifndef CUPLUG_CORE_CUDA_DRIVER_H
#define CUPLUG_CORE_CUDA_DRIVER_H

#include <cuplug/host.h>
#include <stdatomic.h>

#define CUPLUG__MIN_DRIVER 12000         /* CUDA 12.0 */
#define CUPLUG__OVERLAPPING_GRAPHS 12030 /* from which on graphs hold overlapping launches */

typedef struct cuplug__pool_properties {
  int32_t allocation_type;
  int32_t handle_types;
  int32_t location_type;
  int32_t location_id;
  void *security_attributes;
  size_t max_bytes;
  unsigned short usage;
  unsigned char reserved[54];
} cuplug__pool_properties;

/* The driver's CUlaunchAttribute and CUlaunchConfig. */
typedef struct cuplug__launch_attribute {
  int32_t id;
  int32_t reserved;
  union {
    uint32_t cluster[3];
    int32_t is_on;
    char bytes[64];
  } value;
} cuplug__launch_attribute;

typedef struct cuplug__launch_config {
  uint32_t blocks[3];
  uint32_t threads[3];
  uint32_t shared_bytes;
  void *stream;
  cuplug__launch_attribute *attributes;
  uint32_t n_attributes;
} cuplug__launch_config;

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
typedef int CUresult;
typedef int CUdevice;
typedef int CUdevice_attribute;
typedef int CUmemPool_attribute;
typedef int CUpointer_attribute;
typedef int CUstreamCaptureMode;
typedef int CUstreamCaptureStatus;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUfunc_st *CUfunction;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef int CUjit_option;
typedef int CUlibraryOption;
typedef int CUfunction_attribute;
typedef size_t (*CUoccupancyB2DSize)(int);
typedef cuplug__pool_properties CUmemPoolProps;
typedef cuplug__launch_config CUlaunchConfig;
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
  CUPLUG__CU_INVALID_VALUE = 1,
  CUPLUG__CU_OUT_OF_MEMORY = 2,
  CUPLUG__CU_NOT_INITIALIZED = 3,
  CUPLUG__CU_STUB_LIBRARY = 34,
  CUPLUG__CU_INSUFFICIENT_DRIVER = 35, /* cudaErrorInsufficientDriver: of the runtime alone */
  CUPLUG__CU_NO_DEVICE = 100,
  CUPLUG__CU_NO_BINARY_FOR_GPU = 209,
  CUPLUG__CU_UNSUPPORTED_PTX_VERSION = 222,
  CUPLUG__CU_NOT_FOUND = 500,
  CUPLUG__CU_NOT_READY = 600,
  CUPLUG__CU_NOT_SUPPORTED = 801,
  CUPLUG__CU_SYSTEM_NOT_READY = 802,
  CUPLUG__CU_SYSTEM_DRIVER_MISMATCH = 803,
  CUPLUG__CU_CAPTURE_UNSUPPORTED = 900, /* the first of those on captures, and the last */
  CUPLUG__CU_CAPTURE_ISOLATION = 905,
  CUPLUG__CU_CAPTURE_IMPLICIT = 906,
  CUPLUG__CU_CAPTURE_WRONG_THREAD = 908,

  CUPLUG__MAX_BLOCK_DIM_X = 2, /* device attributes; y and z follow */
  CUPLUG__MAX_GRID_DIM_X = 5,
  CUPLUG__N_MULTIPROCESSORS = 16,
  CUPLUG__COOPERATIVE_LAUNCH = 95,
  CUPLUG__MAX_SHARED_OPTIN = 97,
  CUPLUG__CAPABILITY_MAJOR = 75,
  CUPLUG__CAPABILITY_MINOR = 76,
  CUPLUG__MEMORY_POOLS_SUPPORTED = 115,
  CUPLUG__KERNEL_MAX_THREADS = 0, /* kernel attributes */
  CUPLUG__KERNEL_SHARED_BYTES = 1,
  CUPLUG__KERNEL_CONSTANT_BYTES = 2,
  CUPLUG__KERNEL_LOCAL_BYTES = 3,
  CUPLUG__KERNEL_N_REGISTERS = 4,
  CUPLUG__KERNEL_MAX_DYNAMIC_SHARED = 8,
  CUPLUG__POOL_RELEASE_THRESHOLD = 4, /* pool attributes */
  CUPLUG__POOL_RESERVED = 5,
  CUPLUG__POOL_USED = 7,
  CUPLUG__POOL_MOST_USED = 8,
  CUPLUG__ALLOCATION_PINNED = 1,
  CUPLUG__LOCATION_DEVICE = 1,
  CUPLUG__HOST_PORTABLE = 1,
  CUPLUG__HOST_MAPPED = 2,
  CUPLUG__MANAGED_GLOBAL = 1, /* for all streams */
  CUPLUG__STREAM_NON_BLOCKING = 1,
  CUPLUG__EVENT_NO_TIMING = 2,
  CUPLUG__CAPTURE_RELAXED = 2,
  CUPLUG__LAUNCH_COOPERATIVE = 2, /* launch attributes */
  CUPLUG__LAUNCH_CLUSTER = 4,
  CUPLUG__LAUNCH_OVERLAPPING = 6,
  CUPLUG__JIT_ERROR_LOG = 5, /* options of the compiler of PTX */
  CUPLUG__JIT_ERROR_LOG_BYTES = 6,
  CUPLUG__POINTER_MEMORY_TYPE = 2, /* pointer attributes */
  CUPLUG__POINTER_BUFFER_ID = 7,
  CUPLUG__POINTER_IS_MANAGED = 8,
  CUPLUG__POINTER_DEVICE = 9, /* the ordinal */
  CUPLUG__MEMORY_TYPE_HOST = 1,
  CUPLUG__ARRAY_SURFACE = 2, /* a flag of arrays: surfaces may write them */
  CUPLUG__COPY_DEVICE = 2,   /* types of memory in copies */
  CUPLUG__COPY_ARRAY = 3,
  CUPLUG__RESOURCE_ARRAY = 0,
  CUPLUG__ADDRESS_CLAMP = 1,
  CUPLUG__READ_AS_INTEGER = 1, /* flags of textures */
  CUPLUG__NORMALIZED = 2
};

/* X(function, symbol, parameters). All return a CUresult. */
#define CUPLUG__DRIVER_LIST(X)                                                                    \
  X(cuInit, "cuInit", (unsigned int))                                                             \
  X(cuDriverGetVersion, "cuDriverGetVersion", (int *))                                            \
  X(cuGetErrorName, "cuGetErrorName", (CUresult, const char **))                                  \
  X(cuGetErrorString, "cuGetErrorString", (CUresult, const char **))                              \
  X(cuDeviceGetCount, "cuDeviceGetCount", (int *))                                                \
  X(cuDeviceGet, "cuDeviceGet", (CUdevice *, int))                                                \
  X(cuDeviceGetName, "cuDeviceGetName", (char *, int, CUdevice))                                  \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *, CUdevice_attribute, CUdevice))          \
  X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t *, CUdevice))                                \
  X(cuDeviceGetDefaultMemPool, "cuDeviceGetDefaultMemPool", (CUmemoryPool *, CUdevice))           \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice))                \
  X(cuCtxGetCurrent, "cuCtxGetCurrent", (CUcontext *))                                            \
  X(cuCtxSetCurrent, "cuCtxSetCurrent", (CUcontext))                                              \
  X(cuCtxGetDevice, "cuCtxGetDevice", (CUdevice *))                                               \
  X(cuCtxSynchronize, "cuCtxSynchronize", (void))                                                 \
  X(cuPointerGetAttribute, "cuPointerGetAttribute", (void *, CUpointer_attribute, CUdeviceptr))   \
  X(cuPointerGetAttributes, "cuPointerGetAttributes",                                             \
    (unsigned int, CUpointer_attribute *, void **, CUdeviceptr))                                  \
  X(cuMemGetInfo, "cuMemGetInfo_v2", (size_t *, size_t *))                                        \
  X(cuMemPoolCreate, "cuMemPoolCreate", (CUmemoryPool *, const CUmemPoolProps *))                 \
  X(cuMemPoolSetAttribute, "cuMemPoolSetAttribute", (CUmemoryPool, CUmemPool_attribute, void *))  \
  X(cuMemPoolGetAttribute, "cuMemPoolGetAttribute", (CUmemoryPool, CUmemPool_attribute, void *))  \
  X(cuMemPoolTrimTo, "cuMemPoolTrimTo", (CUmemoryPool, size_t))                                   \
  X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync",                                           \
    (CUdeviceptr *, size_t, CUmemoryPool, CUstream))                                              \
  X(cuMemFreeAsync, "cuMemFreeAsync", (CUdeviceptr, CUstream))                                    \
  X(cuMemHostAlloc, "cuMemHostAlloc", (void **, size_t, unsigned int))                            \
  X(cuMemFreeHost, "cuMemFreeHost", (void *))                                                     \
  X(cuMemAllocManaged, "cuMemAllocManaged", (CUdeviceptr *, size_t, unsigned int))                \
  X(cuMemFree, "cuMemFree_v2", (CUdeviceptr))                                                     \
  X(cuMemcpyPeerAsync, "cuMemcpyPeerAsync",                                                       \
    (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream))                           \
  X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (CUdeviceptr, const void *, size_t, CUstream))     \
  X(cuMemsetD8Async, "cuMemsetD8Async", (CUdeviceptr, unsigned char, size_t, CUstream))           \
  X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void *, CUdeviceptr, size_t, CUstream))           \
  X(cuStreamCreate, "cuStreamCreate", (CUstream *, unsigned int))                                 \
  X(cuStreamCreateWithPriority, "cuStreamCreateWithPriority", (CUstream *, unsigned int, int))    \
  X(cuStreamDestroy, "cuStreamDestroy_v2", (CUstream))                                            \
  X(cuStreamQuery, "cuStreamQuery", (CUstream))                                                   \
  X(cuStreamBeginCapture, "cuStreamBeginCapture_v2", (CUstream, CUstreamCaptureMode))             \
  X(cuStreamEndCapture, "cuStreamEndCapture", (CUstream, CUgraph *))                              \
  X(cuGraphInstantiate, "cuGraphInstantiateWithFlags",                                            \
    (CUgraphExec *, CUgraph, unsigned long long))                                                 \
  X(cuGraphDestroy, "cuGraphDestroy", (CUgraph))                                                  \
  X(cuGraphLaunch, "cuGraphLaunch", (CUgraphExec, CUstream))                                      \
  X(cuGraphExecDestroy, "cuGraphExecDestroy", (CUgraphExec))                                      \
  X(cuStreamSynchronize, "cuStreamSynchronize", (CUstream))                                       \
  X(cuStreamWaitEvent, "cuStreamWaitEvent", (CUstream, CUevent, unsigned int))                    \
  X(cuStreamGetCtx, "cuStreamGetCtx", (CUstream, CUcontext *))                                    \
  X(cuStreamIsCapturing, "cuStreamIsCapturing", (CUstream, CUstreamCaptureStatus *))              \
  X(cuEventCreate, "cuEventCreate", (CUevent *, unsigned int))                                    \
  X(cuEventDestroy, "cuEventDestroy_v2", (CUevent))                                               \
  X(cuEventRecord, "cuEventRecord", (CUevent, CUstream))                                          \
  X(cuEventSynchronize, "cuEventSynchronize", (CUevent))                                          \
  X(cuEventQuery, "cuEventQuery", (CUevent))                                                      \
  X(cuEventElapsedTime, "cuEventElapsedTime", (float *, CUevent, CUevent))                        \
  X(cuLaunchKernelEx, "cuLaunchKernelEx", (const CUlaunchConfig *, CUfunction, void **, void **)) \
  X(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", (CUstreamCaptureMode *))

/* Of code that was compiled at run time, from CUDA 12.0 on: NULL where they are missing. */
#define CUPLUG__LIBRARY_LIST(X)                                                                    \
  X(cuLibraryLoadData, "cuLibraryLoadData",                                                        \
    (CUlibrary *, const void *, CUjit_option *, void **, unsigned int, CUlibraryOption *, void **, \
     unsigned int))                                                                                \
  X(cuLibraryGetKernel, "cuLibraryGetKernel", (CUkernel *, CUlibrary, const char *))               \
  X(cuLibraryGetGlobal, "cuLibraryGetGlobal", (CUdeviceptr *, size_t *, CUlibrary, const char *))  \
  X(cuKernelGetFunction, "cuKernelGetFunction", (CUfunction *, CUkernel))                          \
  X(cuKernelGetAttribute, "cuKernelGetAttribute",                                                  \
    (int *, CUfunction_attribute, CUkernel, CUdevice))                                             \
  X(cuKernelSetAttribute, "cuKernelSetAttribute", (CUfunction_attribute, int, CUkernel, CUdevice)) \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor",    \
    (int *, CUfunction, int, size_t))                                                              \
  X(cuOccupancyMaxPotentialBlockSize, "cuOccupancyMaxPotentialBlockSize",                          \
    (int *, int *, CUfunction, CUoccupancyB2DSize, size_t, int))

/* From CUDA 12.4 or 12.5 on, likewise. */
#define CUPLUG__NEWER_LIST(X)                                                                      \
  X(cuKernelGetParamInfo, "cuKernelGetParamInfo", (CUkernel, size_t, size_t *, size_t *))          \
  X(cuKernelGetLibrary, "cuKernelGetLibrary", (CUlibrary *, CUkernel))                             \
  X(cuLibraryGetKernelCount, "cuLibraryGetKernelCount", (unsigned int *, CUlibrary))               \
  X(cuLibraryEnumerateKernels, "cuLibraryEnumerateKernels", (CUkernel *, unsigned int, CUlibrary)) \
  X(cuKernelGetName, "cuKernelGetName", (const char **, CUkernel))                                 \
  X(cuFuncLoad, "cuFuncLoad", (CUfunction))

/* Of textures: NULL where a driver without them stands in for it. */
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

typedef struct cuplug__driver_table {
#define CUPLUG__X(function, symbol, parameters) CUresult(*function) parameters;
  CUPLUG__DRIVER_LIST(CUPLUG__X)
  CUPLUG__LIBRARY_LIST(CUPLUG__X)
  CUPLUG__NEWER_LIST(CUPLUG__X)
  CUPLUG__TEXTURE_LIST(CUPLUG__X)
#undef CUPLUG__X
} cuplug__driver_table;

/* Filled by cuplug__driver_open, constant afterwards. */
extern cuplug__driver_table cuplug__driver;
extern int32_t cuplug__driver_version; /* 12040 for CUDA 12.4 */

/* Launches a CUfunction or CUkernel; returns a CUresult. cuLaunchKernel goes a longer way through
 * the driver. */
int cuplug__driver_launch(void *kernel, const cuplug_grid *grid, void *stream, void **arguments);

/* Opens libcuda.so.1 and finds its functions. */
int cuplug__driver_open(cuplug_error *error);

#endif
