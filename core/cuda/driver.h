/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the CUDA driver that the core uses: functions found at run time, types and
 * constants. No header of the CUDA toolkit is required; tests/cuda/test_driver_types.c compares
 * this one with cuda.h, whose own types are used if it was included before. Then errors of the
 * driver and of CUDA's runtime, which become error records. */
#ifndef CUPLUG_CORE_CUDA_DRIVER_H
#define CUPLUG_CORE_CUDA_DRIVER_H

#include <cuplug/host.h>
#include <stdatomic.h>

#define CUPLUG__MIN_DRIVER 12000          /* CUDA 12.0 */
#define CUPLUG__PROGRAMMATIC_GRAPHS 12030 /* graphs with programmatic launches */

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
typedef cuplug__pool_properties CUmemPoolProps;
typedef cuplug__launch_config CUlaunchConfig;
#endif

enum {
  CUPLUG__CU_INVALID_VALUE = 1,
  CUPLUG__CU_OUT_OF_MEMORY = 2,
  CUPLUG__CU_NOT_INITIALIZED = 3,
  CUPLUG__CU_STUB_LIBRARY = 34,
  CUPLUG__CU_INSUFFICIENT_DRIVER = 35, /* cudaErrorInsufficientDriver: of the runtime only */
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

  CUPLUG__N_MULTIPROCESSORS = 16,
  CUPLUG__CAPABILITY_MAJOR = 75,
  CUPLUG__CAPABILITY_MINOR = 76,
  CUPLUG__MEMORY_POOLS_SUPPORTED = 115,
  CUPLUG__POOL_RELEASE_THRESHOLD = 4, /* pool attributes */
  CUPLUG__POOL_RESERVED = 5,
  CUPLUG__POOL_USED = 7,
  CUPLUG__POOL_PEAK_USED = 8,
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
  CUPLUG__LAUNCH_PROGRAMMATIC = 6,
  CUPLUG__POINTER_MEMORY_TYPE = 2, /* pointer attributes */
  CUPLUG__POINTER_BUFFER_ID = 7,
  CUPLUG__POINTER_IS_MANAGED = 8,
  CUPLUG__POINTER_DEVICE = 9, /* the ordinal */
  CUPLUG__MEMORY_TYPE_HOST = 1
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

/* To prepare operators, from CUDA 12.0 to 12.5 on: NULL if they are missing. */
#define CUPLUG__LOADING_LIST(X)                                                                    \
  X(cuKernelGetFunction, "cuKernelGetFunction", (CUfunction *, CUkernel))                          \
  X(cuKernelGetLibrary, "cuKernelGetLibrary", (CUlibrary *, CUkernel))                             \
  X(cuLibraryGetKernelCount, "cuLibraryGetKernelCount", (unsigned int *, CUlibrary))               \
  X(cuLibraryEnumerateKernels, "cuLibraryEnumerateKernels", (CUkernel *, unsigned int, CUlibrary)) \
  X(cuFuncLoad, "cuFuncLoad", (CUfunction))

typedef struct cuplug__driver_table {
#define CUPLUG__X(function, symbol, parameters) CUresult(*function) parameters;
  CUPLUG__DRIVER_LIST(CUPLUG__X)
  CUPLUG__LOADING_LIST(CUPLUG__X)
#undef CUPLUG__X
} cuplug__driver_table;

/* Filled by cuplug__driver_open, constant afterwards. */
extern cuplug__driver_table cuplug__driver;
extern int32_t cuplug__driver_version; /* 12040 for CUDA 12.4 */

/* Launches a CUfunction or CUkernel, faster than cuLaunchKernel; returns a CUresult. */
int cuplug__driver_launch(void *kernel, const cuplug_grid *grid, void *stream, void **arguments);

/* Opens libcuda.so.1 and finds its functions. */
int cuplug__driver_open(cuplug_error *error);

/* ---- Errors, with what to do about them ------------------------------------------------------ */

/* Fills the record from a driver or runtime error code: name, text and remedy. For a sticky error,
 * the remedy is to restart the process, and the message names the operator after which it was first
 * seen. Out of memory is ERROR_MEMORY. Returns the status. */
int cuplug__cuda_fail(cuplug_error *error, int code, const char *doing);
/* The same without the remedy: for an entry, whose record gets the remedy when it returns. */
int cuplug__cuda_report(cuplug_error *error, int code, const char *doing);
/* cuda_fail unless `code` is 0. */
int cuplug__cuda_check(cuplug_error *error, int code, const char *doing);
/* Appends the remedy for `code` to the message that a plugin has already made for it. */
void cuplug__cuda_explain(cuplug_error *error, int code);
/* Stores the operator launched last, which messages of sticky errors name. */
void cuplug__cuda_note_operator(const char *name);
/* Stores that `code`, found after operator `name`, made the context unusable, if it is sticky:
 * cuda_enter then fails. Operator names are borrowed until the process exits. */
void cuplug__cuda_note_sticky(int code, const char *name);
/* The sticky error that was noted first: nothing works any more in this process. 0: none. */
int cuplug__cuda_sticky(void);

#endif
